import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelManifest

@Suite struct URLResolverTests {
  @Test(arguments: [
    ("a.ts", "https://h.example/p/a.ts"), ("../a.ts", "https://h.example/a.ts"),
    ("/a.ts?x", "https://h.example/a.ts?x"),
    ("//o.example/a", "https://o.example/a"), ("?x=2", "https://h.example/p/m.mpd?x=2"),
    ("http://o.example:8080/a?b=c", "http://o.example:8080/a?b=c"),
    ("a b/ü.ts", "https://h.example/p/a%20b/%C3%BC.ts"),
    ("", "https://h.example/p/m.mpd?x=1"), ("a%2Fb", "https://h.example/p/a%2Fb"),
    ("t/12:30.ts", "https://h.example/p/t/12:30.ts"),
  ])
  func resolves(reference: String, url: String) throws {
    let base = try #require(URL(string: "https://h.example/p/m.mpd?x=1"))
    #expect(try URLResolver(base: base).resolve(reference).absoluteString == url)
    #expect(URLResolver(base: base).url(reference).absoluteString == url)
  }

  /// What is passed as plain is never refused by Foundation, and never leads to another scheme.
  @Test func plainReferencesAreURLs() throws {
    let base = try #require(URL(string: "https://h.example/p/m.mpd"))
    let pieces = [
      "a", "Z", "9", "/", "//", ".", "..", ":", "?", "=", "&", "%", "%41", "%4", " ", "ü", "@", "#", "[", "]",
      "\\", "file:",
      "http://", "https://", "h.example", ":80", ":99999", "$", "(", "*", "\u{7F}", "^",
    ]
    var generator = SystemRandomNumberGenerator()
    var plainCount = 0
    for _ in 0..<20_000 {
      let reference = (0..<Int.random(in: 1...6, using: &generator)).map { _ in pieces.randomElement() ?? "" }
        .joined()
      guard URLResolver.isPlain(Array(reference.utf8)[...]) else { continue }
      plainCount += 1
      let url = URL(string: reference, relativeTo: base)?.absoluteURL
      #expect(url?.scheme == "https" || url?.scheme == "http", "\(reference)")
    }
    #expect(plainCount > 100)
  }
}
