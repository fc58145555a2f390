import Foundation
import ReelCore
import ReelReading
import ReelSources
import ReelTestSupport
import Testing

@Suite("Naming sources")
struct MediaSourceTests {
  @Test(
    "URLs",
    arguments: ["http://host/a.m3u8", "https://host:8443/a?b=c#d", "HTTP://Host/x", "http://127.0.0.1:1/"])
  func urls(argument: String) throws {
    guard case .url(let url) = try MediaSource(argument: argument) else {
      Issue.record("no URL")
      return
    }
    #expect(!url.isFileURL)
    #expect(try MediaSource(argument: argument).name == argument)
  }

  @Test(
    "Paths",
    arguments: [
      "clip.mp4", "/tmp/a b.mp4", "./c:d.mp4", "C:clip.mp4", "a:b", "über/ü.ts", "100%.mp4", "a?b#c.ts",
    ])
  func paths(argument: String) throws {
    let source = try MediaSource(argument: argument)
    guard case .url(let url) = source else {
      Issue.record("no file")
      return
    }
    #expect(url.isFileURL)
    #expect(url.path == URL(fileURLWithPath: argument).path)
    #expect(source.name.hasSuffix(argument.hasPrefix("./") ? String(argument.dropFirst(2)) : argument))
  }

  @Test("File URLs")
  func fileURLs() throws {
    let source = try MediaSource(argument: "file:///tmp/a%20b.mp4")
    #expect(source.name == "/tmp/a b.mp4")
    #expect(source.stem == "a b")
  }

  @Test("Standard input")
  func standardInput() throws {
    #expect(try MediaSource(argument: "-") == .standardInput)
    #expect(MediaSource.standardInput.name == "standard input")
    #expect(MediaSource.standardInput.stem == "stdin")
  }

  @Test(
    "What is refused",
    arguments: [
      ("", ReelError.Kind.usage), ("http://", .usage), ("https:///a.mp4", .usage),
      ("ftp://host/a.mp4", .unsupported),
      ("rtmp://host/live", .unsupported), ("data:video/mp4;base64,AA", .unsupported),
      ("concat://a", .unsupported),
    ])
  func refused(argument: String, kind: ReelError.Kind) {
    let error = #expect(throws: ReelError.self) { try MediaSource(argument: argument) }
    #expect(error?.kind == kind)
  }

  @Test(
    "Stems for file names",
    arguments: [
      ("http://host/path/clip.m3u8?token=1", "clip"), ("http://host/", "host"), ("http://host", "host"),
      ("http://host/clip/master.m3u8?token=1", "clip"), ("http://host/clip/video/Index.m3u8", "clip"),
      ("http://host/stream/manifest.mpd", "host"), ("/a/clip.1/prog_index.m3u8", "clip.1"),
      ("http://host/clip/master2.m3u8", "master2"),
      ("/a/b/clip.tar.mp4", "clip.tar"), ("clip", "clip"), ("http://host/a%20b.ts", "a b"),
    ])
  func stems(argument: String, stem: String) throws {
    #expect(try MediaSource(argument: argument).stem == stem)
  }

  @Test(
    "A URL without a scheme is suggested for a file that does not exist",
    arguments: [
      ("example.com/x.mp4", "http://example.com/x.mp4"), ("host:8080/x", "http://host:8080/x"),
      ("localhost/x", "http://localhost/x"), ("127.0.0.1:80", "http://127.0.0.1:80"),
      ("example.com:443/a?b=c", "https://example.com:443/a?b=c"), ("a.mov", nil), ("folder/a.mp4", nil),
      ("./example.com/x", nil), ("/example.com/x", nil), ("../a", nil), ("v1.2/a.ts", nil),
      ("a b.com/x", nil),
    ] as [(String, String?)])
  func suggestion(argument: String, url: String?) async throws {
    let source = try MediaSource(argument: argument)
    let extractor = FrameExtractor(fetcher: makeFetcher(), logger: silentLogger)
    let error = await reelError { _ = try await extractor.extract(.first, from: source) { _ in } }
    #expect(error?.advice == url.map { "did you mean \($0)?" })
  }
}
