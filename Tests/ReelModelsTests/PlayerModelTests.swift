import Foundation
import ReelCore
import ReelModels
import ReelTestSupport
import Testing

@Suite("Models of players as files")
struct PlayerModelTests {
  private static func json(_ name: String = "hls.js") throws -> String {
    String(decoding: try #require(PlayerModel.json(of: name)), as: UTF8.self)
  }

  private func failure(_ text: String) -> ReelError? {
    do {
      _ = try PlayerModel(json: Array(text.utf8), path: "mine.json")
      return nil
    } catch { return error }
  }

  @Test("Each model that Reel has can be read, written and read again", arguments: PlayerModel.shippedNames)
  func shipped(name: String) throws {
    let model = try PlayerModel(argument: name.uppercased())
    #expect(model.name == name)
    #expect(try PlayerModel(json: Array(try model.json().utf8), path: name) == model)
    let isMeasured = name != "media3" && name != "avplayer"
    #expect(model.isMeasured == isMeasured)
    #expect(model.title == (isMeasured ? name : "\(name) (from documentation, not measured)"))
  }

  @Test("Each model has the form of its schema", arguments: PlayerModel.shippedNames)
  func schema(name: String) throws {
    let root = Fixtures.folder.deletingLastPathComponent()
    let schema = try JSONSchema(contentsOf: root.appending(path: "Docs/schemas/player-model.json"))
    try schema.check(try JSONSerialization.jsonObject(with: Data(try Self.json(name).utf8)))
    let file = root.appending(path: "Sources/Tools/Models/Shipped/\(name).json")
    #expect(try Data(contentsOf: file) == Data(try Self.json(name).utf8))
  }

  @Test("Each value has the nearest source above it")
  func sources() throws {
    let model = try PlayerModel(argument: "hls.js")
    #expect(model.source(of: "costs.append_ms")?.measurement != nil)
    #expect(model.source(of: "buffer.forward_s")?.version == "0.14.3")
    #expect(model.source(of: "start.formats") != model.source(of: "start.rung"))
  }

  @Test(
    "A value that is wrong gives one line with its path",
    arguments: [
      ("\"refill\": 1", "\"refill\": 1, \"size_mb\": 60", "buffer.size_mb: unknown field"),
      ("\"swap_ms\": ", "\"swap_ms\": -", "costs.swap_ms: can't be negative"),
      ("\"create_ms\": ", "\"create\": ", "costs.create_ms: the field is missing"),
      (
        "\"media\": \"segments\"", "\"media\": \"parts\"",
        "start.media: must be one of segments, bytes, not \"parts\""
      ),
      ("\"media\": \"segments\"", "\"media\": 3", "start.media: must be a string"),
      (
        "\"forward_s\": 30, \"refill\"", "\"forward_s\": \"30\", \"refill\"",
        "buffer.forward_s: must be a number"
      ),
      ("\"refill\": 1", "\"refill\": 1.5", "buffer.refill: must be above 0 and at most 1"),
      ("\"per_host\": 6", "\"per_host\": 0", "connections.per_host: must be from 1 to 1000"),
      ("\"players\": 1", "\"players\": 0", "preload.players: must be from 1 to 1000"),
      ("\"after\": 0", "\"after\": 2", "preload.items[0].after: 2 is not the offset of a preloaded item"),
      ("\"after\": 0", "\"after\": 1", "preload.items[0].after: a cycle"),
      ("\"offset\": 1", "\"offset\": 0", "preload.items[0].offset: must be"),
      ("[\"manifest\"],", "[\"manifest\", \"playlist\"],", "start.requests[1][0]: playlist appears twice"),
      ("[\"manifest\"],", "", "start.requests: must have manifest and segment"),
      (
        "\"buffer\": {\n      \"code\"", "\"bufer\": {\n      \"code\"",
        "sources: \"bufer\" is not a value of the model"
      ),
      (
        "\"code\": \"src/config.js: maxBufferLength\",", "",
        "sources[\"buffer\"]: must have one of measurement"
      ),
    ])
  func wrong(text: String, replacement: String, reason: String) throws {
    let json = try Self.json()
    #expect(json.contains(text), "\(text)")
    let error = try #require(
      failure(json.replacing(text, with: replacement, maxReplacements: 1)), "\(reason)")
    #expect(error.kind == .badManifest && error.location == "mine.json")
    #expect(error.reason.hasPrefix(reason), "\(error.reason)")
    #expect(!"\(error)".contains("\n"))
  }

  @Test("Preloads that wait for each other are a cycle")
  func cycle() throws {
    let items =
      "\"items\": [{\"offset\": 1, \"forward_s\": 3, \"after\": 2}, {\"offset\": 2, \"forward_s\": 3, \"after\": 1}]"
    let json = try Self.json().replacing(
      "\"items\": [{\"offset\": 1, \"forward_s\": 30, \"after\": 0}]", with: items)
    #expect(
      failure(json)?.reason
        == "preload.items[0].after: a cycle: preloads that wait for each other never begin")
  }

  @Test("What is no model, and an unknown name, are errors")
  func others() {
    #expect(failure("[]")?.reason == "must be an object")
    #expect(failure("{")?.kind == .badManifest)
    let unknown = #expect(throws: ReelError.self) { try PlayerModel(argument: "hsl.js") }
    #expect(unknown?.kind == .usage && unknown?.advice?.contains("hls.js") == true)
  }
}
