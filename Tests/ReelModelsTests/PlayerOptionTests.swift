import ReelCore
import ReelModels
import Testing

@Suite("Options of a modelled player")
struct PlayerOptionTests {
  private func items(_ players: Int?, _ preload: String?, of name: String = "hls.js") throws -> String {
    let model = try PlayerModel(argument: name).using(players: players, preload: preload)
    let items = model.preload.items.prefix(model.preload.players - 1)
    return "\(model.preload.players): "
      + items.map { "\($0.offset) \($0.forwardS) after \($0.after.map { "\($0)" } ?? "-")" }
      .joined(separator: ", ")
  }

  @Test("A number of players and a policy replace what the model says")
  func replaced() throws {
    #expect(try items(nil, nil) == "1: ")
    #expect(try items(2, nil) == "2: 1 30.0 after 0")
    #expect(try items(4, nil) == "4: 1 30.0 after 0, 2 30.0 after 1, 3 30.0 after 2")
    #expect(try items(nil, "none", of: "media3") == "1: ")
    #expect(try items(nil, "ahead:2,1s") == "3: 1 1.0 after 0, 2 1.0 after 1")
    #expect(try items(2, "ahead:2,1s") == "2: 1 1.0 after 0")
    #expect(try items(nil, "Adjacent:500ms") == "3: 1 0.5 after 0, -1 0.5 after 1")
    #expect(try items(nil, "adjacent", of: "media3") == "3: 1 1.0 after -, -1 1.0 after 1")
  }

  @Test(
    "What a model can't do is refused by name",
    arguments: [
      "adaptive", "budget:64MB", "ahead", "ahead:0", "ahead:2,3", "ahead:1,1s,2s", "none:1s", "adjacent:-1s",
    ])
  func refused(text: String) throws {
    let model = try PlayerModel(argument: "hls.js")
    let error = #expect(throws: ReelError.self) { try model.using(players: nil, preload: text) }
    #expect(error?.kind == .usage && error?.reason == "hls.js can't preload by \"\(text)\"")
  }

  @Test("Reports name the player and what it preloads")
  func names() throws {
    let model = try PlayerModel(argument: "hls.js")
    #expect(model.policyName == "hls.js")
    #expect(try model.using(players: 2, preload: nil).policyName == "hls.js preloading one item ahead (30 s)")
    let media = try PlayerModel(argument: "media3").using(players: nil, preload: "none")
    #expect(media.policyName == "media3 (from documentation, not measured)")
  }
}
