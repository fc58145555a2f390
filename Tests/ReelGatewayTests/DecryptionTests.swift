import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelGateway
import ReelGatewayKeys
import ReelReading
import ReelSources
import ReelTestSupport
import ReelTesting
import Testing

@Suite("Decryption on the way", .hangLimit) struct DecryptionTests {
  /// The hexadecimal digits and the text of the keys of the fixtures.
  private static let secrets = [
    "32333435363738393031323334353637", "33343536373839303132333435363732", "2345678901234567",
    "3456789012345672",
  ]

  /// Runs `body` with a gateway that decrypts a presentation below Fixtures/encrypted.
  private static func withGateway(
    _ path: String, keys: any KeyProvider = KeyList.fixtures, faults: [FaultRule] = [],
    logger: Logger = silentLogger, _ body: (Gateway, Origin) async throws -> Void
  ) async throws {
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let gateway = try await Gateway.start(
        origin.url("encrypted/\(path)"), fetcher: makeFetcher(attempts: 1),
        decryption: MediaDecryptor(keys: keys), logger: logger)
      do {
        try await body(gateway, origin)
        await gateway.stop()
      } catch {
        await gateway.stop()
        throw error
      }
    }
  }

  /// The names of a media playlist: of the initialization, and of the segments.
  private static func names(_ playlist: String) throws -> (initialization: String, segments: [String]) {
    let map = try #require(playlist.firstMatch(of: /#EXT-X-MAP:URI="([^"]*)"/))
    let segments = playlist.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
    return (String(map.1), segments)
  }

  @Test(
    "Every scheme plays like the original",
    arguments: [
      "cenc/manifest.mpd", "cens/manifest.mpd", "cbc1/manifest.mpd", "cbcs/manifest.mpd",
      "clear-lead/manifest.mpd", "rotation/manifest.mpd", "cbcs/master.m3u8", "clear-lead/master.m3u8",
    ])
  func frames(path: String) async throws {
    try await Self.withGateway(path) { gateway, _ in
      // A player without keys.
      let extractor = FrameExtractor(
        fetcher: makeFetcher(attempts: 1), configuration: LoadingConfiguration(), logger: silentLogger)
      let found = Locked<[String]>([])
      _ = try await extractor.extract(.count(0), from: .url(gateway.url)) { frame in
        let md5 = try frame.md5()
        found.withLock { $0.append(md5) }
      }
      let golden = try Golden("encrypted-clear").frames.map(\.md5)
      #expect(found.withLock { $0 } == golden)

      for track in ["video-0", "audio-0"] {
        let playlist = try await http(gateway.url("/media/\(track)/index.m3u8")).text
        #expect(!playlist.contains("EXT-X-KEY"))
        #expect(!playlist.contains("BYTERANGE"))
        let names = try Self.names(playlist)
        #expect(names.segments.count == 3)
        for name in [names.initialization] + names.segments {
          let answer = try await http(gateway.url("/media/\(track)/\(name)"))
          #expect(answer.status == 200)
          #expect(answer.fields["content-length"] == "\(answer.body.count)")
          let text = String(decoding: answer.body, as: Unicode.ASCII.self)
          for type in ["encv", "enca", "sinf", "senc", "saiz", "saio", "pssh"] {
            #expect(!text.contains(type), "\(name) \(type)")
          }
        }
      }
    }
  }

  @Test("A segment keeps its size, the initialization is fetched once, and ranges are of the clear bytes")
  func resources() async throws {
    try await Self.withGateway("cbcs/manifest.mpd") { gateway, origin in
      let playlist = try await http(gateway.url("/media/video-0/index.m3u8")).text
      let names = try Self.names(playlist)
      #expect(names.segments == ["0.m4s", "1.m4s", "2.m4s"])
      let start = origin.requestLog.count
      let whole = try await http(gateway.url("/media/video-0/1.m4s"))
      _ = try await http(gateway.url("/media/video-0/2.m4s"))
      _ = try await http(gateway.url("/media/video-0/\(names.initialization)"))
      // The initialization and two segments.
      #expect(origin.requestLog.count == start + 3)
      let part = try await http(gateway.url("/media/video-0/1.m4s"), fields: ["Range": "bytes=8-19"])
      #expect(part.status == 206)
      #expect(part.body == Array(whole.body[8..<20]))
      #expect(part.fields["content-range"] == "bytes 8-19/\(whole.body.count)")
      let outside = try await http(gateway.url("/media/video-0/1.m4s"), fields: ["Range": "bytes=9999999-"])
      #expect(outside.status == 416)
      let head = try await http("HEAD", gateway.url("/media/video-0/1.m4s"))
      #expect(head.status == 200)
      #expect(head.fields["content-length"] == "\(whole.body.count)")
      #expect(try await http(gateway.url("/media/video-0/3.m4s")).status == 404)
    }
  }

  @Test("Clients get a missing key as 403 with the ID of the key")
  func missingKey() async throws {
    var list = KeyList()
    try list.add(parsing: "31323334353637383930313233343536:32333435363738393031323334353637")
    try await Self.withGateway("rotation/manifest.mpd", keys: list) { gateway, _ in
      #expect(try await http(gateway.url("/media/video-0/0.m4s")).status == 200)
      let answer = try await http(gateway.url("/media/video-0/2.m4s"))
      #expect(answer.status == 403)
      #expect(answer.text.hasPrefix("decryption: the avc1 samples are encrypted"))
      #expect(answer.text.contains("key id 3233343536373839303132333435363"))
      #expect(answer.text.split(separator: "\n").count == 1)
    }
  }

  @Test("Clients get media that can't be read or fetched as 502 with the reason")
  func damage() async throws {
    let faults = try FaultRule.parse("v-2.m4s=status:404") + FaultRule.parse("v-3.m4s=truncate:3000")
    try await Self.withGateway("rotation/manifest.mpd", faults: faults) { gateway, _ in
      for (name, part) in [("1.m4s", "origin: "), ("2.m4s", "decryption: ")] {
        let answer = try await http(gateway.url("/media/video-0/\(name)"))
        #expect(answer.status == 502)
        #expect(answer.text.hasPrefix(part))
      }
      #expect(try await http(gateway.url("/media/video-0/0.m4s")).status == 200)
    }
    let gone = try FaultRule.parse("v-init.mp4=status:404x1")
    try await Self.withGateway("rotation/manifest.mpd", faults: gone) { gateway, _ in
      let failed = try await http(gateway.url("/media/video-0/0.m4s"))
      #expect(failed.status == 502)
      // It is fetched again.
      let answer = try await http(gateway.url("/media/video-0/0.m4s"))
      #expect(answer.status == 200)
    }
  }

  @Test("A provider is asked for each key once, and its failure is an answer")
  func provider() async throws {
    let provider = CountingProvider()
    try await Self.withGateway("rotation/manifest.mpd", keys: provider) { gateway, _ in
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<4 {
          for name in ["0.m4s", "1.m4s", "2.m4s"] {
            group.addTask { try await http(gateway.url("/media/video-0/\(name)")).status }
          }
        }
        for try await status in group { #expect(status == 200) }
      }
      #expect(provider.requests.withLock { $0.count } == 2)
      provider.isFailing.withLock { $0 = true }
      // The key of its second segment is that of the third one of the video.
      #expect(try await http(gateway.url("/media/audio-0/1.m4s")).status == 200)
    }
    provider.requests.withLock { $0 = [] }
    try await Self.withGateway("rotation/manifest.mpd", keys: provider) { gateway, _ in
      let answer = try await http(gateway.url("/media/video-0/2.m4s"))
      #expect(answer.status == 502)
      #expect(answer.text == "decryption: the keys can't be requested\n")
    }
  }

  @Test("No key is in a playlist, an answer or a log")
  func secrecy() async throws {
    let lines = Locked<[String]>([])
    let logger = Logger(label: "gateway") { _ in LineHandler(lines: lines) }
    var list = KeyList()
    try list.add(parsing: "31323334353637383930313233343536:32333435363738393031323334353637")
    var texts: [String] = []
    try await Self.withGateway("rotation/manifest.mpd", keys: list, logger: logger) { gateway, _ in
      texts.append(try await http(gateway.url).text)
      for name in ["index.m3u8", "1.m4s", "2.m4s", "9.m4s", "key.bin"] {
        let answer = try await raw("GET /media/video-0/\(name) HTTP/1.1\r\n", gateway)
        texts.append(answer)
      }
    }
    texts += lines.withLock { $0 }
    #expect(lines.withLock { $0.contains { $0.contains("key id") } })
    for secret in Self.secrets { #expect(!texts.contains { $0.contains(secret) }) }
  }

  private struct LineHandler: LogHandler {
    let lines: Locked<[String]>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      lines.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") }
    }
  }
}

/// A provider that counts the requests for its keys.
private final class CountingProvider: KeyProvider {
  let requests = Locked<[KeyRequest]>([])
  let isFailing = Locked(false)

  private struct Failure: Error {}

  func key(for request: KeyRequest) async throws -> ContentKey? {
    if isFailing.withLock({ $0 }) { throw Failure() }
    requests.withLock { $0.append(request) }
    return try await KeyList.fixtures.key(for: request)
  }
}
