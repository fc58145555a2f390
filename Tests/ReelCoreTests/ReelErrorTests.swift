import Foundation
import ReelCore
import Testing

@Suite("Errors as text")
struct ReelErrorTests {
  @Test("Where, why, and what to do, on one line")
  func wholeText() {
    let error = ReelError(
      .badManifest, "no segments", at: "http://host/a.m3u8", place: .line(7, column: 3),
      advice: "ask the server")
    #expect(error.description == "http://host/a.m3u8: line 7, column 3: no segments; ask the server")
    #expect("\(error)" == error.description)
  }

  @Test("What is not known is left out")
  func partialText() {
    #expect(ReelError(.usage, "the source is empty").description == "the source is empty")
    #expect(ReelError(.server, "status 404", at: "u").description == "u: status 404")
    #expect(ReelError(.badMedia, "cut", place: .byte(0)).description == "byte 0: cut")
    #expect(ReelError(.badManifest, "odd", place: .line(2)).description == "line 2: odd")
    let element = ReelError(.badManifest, "no duration", at: "u", place: .element("MPD/Period[1]"))
    #expect(element.description == "u: MPD/Period[1]: no duration")
    #expect(ReelError(.usage, "odd", advice: "mend it").description == "odd; mend it")
  }

  @Test(
    "User names and passwords of URLs are left out",
    arguments: [
      ("http://user:secret@host:80/a@b.mp4", "http://host:80/a@b.mp4"),
      ("HTTPS://user@host?q=c@d", "HTTPS://host?q=c@d"), ("http://u:p@x@host", "http://host"),
      ("http://a/b: redirected to http://u:p@c/d", "http://a/b: redirected to http://c/d"),
      ("a@b.mp4", "a@b.mp4"), ("http://host mail@host", "http://host mail@host"), ("://@", "://"),
    ])
  func userInformation(text: String, clean: String) {
    #expect(text.withoutUserInformation == clean)
    let error = ReelError(.server, "x \(text)", at: text, advice: text)
    #expect(error.description == "\(clean): x \(clean); \(clean)")
    // Programs compare locations with the URLs that they have.
    #expect(error.location == text)
  }

  @Test("A location is filled in once")
  func location() {
    let bare = ReelError(.network, "refused", advice: "start it")
    #expect(bare.located(at: "first").location == "first")
    #expect(bare.located(at: "first").located(at: "second").location == "first")
    #expect(bare.located(at: "first").advice == "start it")
    #expect(bare.located(at: "first").kind == .network)
    #expect(bare.location == nil)
  }

  @Test("A location leaves the status as it is, and the status makes errors different")
  func status() {
    let error = ReelError(.server, "503 Service Unavailable", status: 503)
    #expect(error.located(at: "u").status == 503)
    #expect(error != ReelError(.server, "503 Service Unavailable"))
    #expect(error.description == "503 Service Unavailable")
  }

  @Test("What may pass is temporary")
  func isTemporary() {
    #expect(ReelError(.network, "refused").isTemporary)
    #expect(ReelError(.timedOut, "no answer").isTemporary)
    #expect(ReelError(.server, "no HTTP").isTemporary)
    let temporary = (100...599).filter { ReelError(.server, "x", status: $0).isTemporary }
    #expect(temporary == [408, 425, 429, 500, 502, 503, 504])
    let final: [ReelError.Kind] = [
      .usage, .badMedia, .badManifest, .unsupported, .noSuchFile, .cannotCreateOutput, .cannotWriteOutput,
      .internalFault, .init(rawValue: "later"),
    ]
    for kind in final { #expect(!ReelError(kind, "x").isTemporary, "\(kind)") }
    var expired = ReelError(.network, "expired", isTemporary: false)
    #expect(!expired.isTemporary)
    #expect(expired != ReelError(.network, "expired"))
    expired.isTemporary = true
    #expect(expired == ReelError(.network, "expired"))
  }
}

@Suite("Errors for programs") struct ReelErrorConformanceTests {
  @Test("A kind that Reel does not know yet is compared by its name")
  func kinds() {
    func answer(to kind: ReelError.Kind) -> Int {
      switch kind {
      case .usage: 400
      case .timedOut: 504
      default: 500
      }
    }
    #expect([.usage, .timedOut, .init(rawValue: "later")].map(answer) == [400, 504, 500])
    #expect(ReelError.Kind(rawValue: "badMedia") == .badMedia)
    #expect("\(ReelError.Kind.badMedia)" == "badMedia")
  }

  @Test("The texts of LocalizedError")
  func localized() {
    let error: any Error = ReelError(
      .badManifest, "no segments at http://u:p@c/d", at: "http://host/a.m3u8", place: .line(7),
      advice: "ask the server")
    #expect(error.localizedDescription == "http://host/a.m3u8: line 7: no segments at http://c/d")
    let localized = error as? any LocalizedError
    #expect(localized?.failureReason == "no segments at http://c/d")
    #expect(localized?.recoverySuggestion == "ask the server")
    #expect(ReelError(.usage, "odd").recoverySuggestion == nil)
  }

  @Test("An error is the same after a round trip through JSON")
  func codable() throws {
    var decoding = ReelError(.badMedia, "no moov", at: "a.mp4", place: .byte(48), isTemporary: true)
    decoding.ffmpegCode = -1_094_995_529
    let errors = [
      decoding, ReelError(.server, "404 Not Found", at: "http://h/a", advice: "look", status: 404),
      ReelError(.badManifest, "odd", place: .line(2)),
      ReelError(.badManifest, "odd", place: .line(2, column: 3)),
      ReelError(.badManifest, "odd", place: .element("MPD/Period[1]")),
      ReelError(found: .unsupportedContainer, "odd"), ReelError(.network, "gone", isTemporary: false),
      ReelError(.init(rawValue: "later"), "odd"),
    ]
    let copies = try JSONDecoder().decode([ReelError].self, from: JSONEncoder().encode(errors))
    #expect(copies == errors)
    #expect(copies.map(\.isTemporary) == errors.map(\.isTemporary))
    let kind = try JSONEncoder().encode([ReelError.Kind.badMedia])
    #expect(String(decoding: kind, as: UTF8.self) == #"["badMedia"]"#)
  }
}
