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
    #expect(ReelError(.usage, "an empty source").description == "an empty source")
    #expect(ReelError(.server, "status 404", at: "u").description == "u: status 404")
    #expect(ReelError(.badMedia, "cut", place: .byte(0)).description == "byte 0: cut")
    #expect(ReelError(.badManifest, "odd", place: .line(2)).description == "line 2: odd")
    let element = ReelError(.badManifest, "no duration", at: "u", place: .element("MPD/Period[1]"))
    #expect(element.description == "u: MPD/Period[1]: no duration")
    #expect(ReelError(.usage, "odd", advice: "mend it").description == "odd; mend it")
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
}
