import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

/// Formats that the first bytes of a source or the names in a manifest only hint at.
@Suite("Formats", .hangLimit)
struct FormatCommandTests {
  // MARK: WebM on demand

  private static let webM = Fixtures.path("dash-webm/manifest.mpd")

  @Test("VP8 plays under each of its names", arguments: ["vp8", "vp8.0", "vp08.00.10.08"])
  func names(codec: String) async throws {
    let manifest = String(decoding: try Fixtures.bytes("dash-webm/manifest.mpd"), as: UTF8.self)
      .replacing("codecs=\"vp8\"", with: "codecs=\"\(codec)\"")
    try await withOrigin(routes: ["/dash-webm/named.mpd": Origin.Response(manifest)]) { origin in
      let events = try await PlayEvents.play(
        origin.url("dash-webm/named.mpd").absoluteString, "--rate", "max", "--md5")
      #expect(try events.md5s == Fixtures.golden("dash-webm-high"))
    }
  }

  @Test("An HLS variant with VP8 and Vorbis plays")
  func variant() async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("media.webm"), withDestinationPath: Fixtures.path("media/vp8.webm"))
    try folder.write(
      """
      #EXTM3U
      #EXT-X-STREAM-INF:BANDWIDTH=400000,CODECS="vp08.00.10.08,vorbis",RESOLUTION=192x108
      video.m3u8
      """, to: "master.m3u8")
    try folder.write(
      """
      #EXTM3U
      #EXT-X-TARGETDURATION:1
      #EXT-X-PLAYLIST-TYPE:VOD
      #EXTINF:0.8,
      media.webm
      #EXT-X-ENDLIST
      """, to: "video.m3u8")
    let events = try await PlayEvents.play(folder.path("master.m3u8"), "--rate", "max", "--md5")
    #expect(try events.md5s == Fixtures.golden("vp8.webm"))
  }

  @Test("WebM with Cues plays from its start and from a position, in all rungs", arguments: ["low", "high"])
  func webM(rung: String) async throws {
    let golden = try Fixtures.golden("dash-webm-\(rung)")
    let cap = ["--bandwidth", rung == "low" ? "1k" : "3M"]
    let all = try await Command.run(["play", Self.webM, "--rate", "max", "--md5", "--json"] + cap)
    #expect(try PlayEvents(all).md5s == golden)
    #expect(all.errorText.isEmpty, "\(all.errorText)")
    let rest = try await Command.run(
      ["play", Self.webM, "--rate", "max", "--md5", "--json", "--start", "1.5"] + cap, status: 0)
    // 25 frames a second: the one on show at 1.5 s begins at 1.48 s.
    #expect(try PlayEvents(rest).md5s == Array(golden.dropFirst(37)))
  }

  @Test("Of WebM with Cues, only the initialization, the index and the segment at a position are fetched")
  func position() async throws {
    let golden = try Fixtures.golden("dash-webm-high")
    let folder = try TemporaryFolder()
    try await withOrigin { origin in
      let url = origin.url("dash-webm/manifest.mpd").absoluteString
      let late = try await Command.run(
        "frames", url, "--at", "2.5", "--md5", "--json", "--overwrite", directory: folder.path, status: 0)
      #expect(late.outputText.contains(golden[62]), "\(late.outputText)")
      let requests = origin.requestLog.filter { $0.path.hasSuffix("high.webm") }
      #expect(requests.count == 3)
      #expect(requests.allSatisfy { $0.range != nil })
      let byteCount = requests.reduce(0) { $0 + $1.bodyBytesSent }
      #expect(byteCount < 30_000, "\(byteCount)")
    }
    try await withOrigin { origin in
      let url = origin.url("dash-webm/manifest.mpd").absoluteString
      let first = try await Command.run(
        "frames", url, "--md5", "--json", "--overwrite", directory: folder.path)
      #expect(first.outputText.contains(golden[0]), "\(first.outputText)")
      // The file from its start, and the index beside it.
      #expect(origin.requestLog.filter { $0.path.hasSuffix("high.webm") }.count == 2)
    }
  }

  @Test("A player adapts from one rung of WebM to another without a lost or repeated frame")
  func adaptation() async throws {
    let golden = (low: try Fixtures.golden("dash-webm-low"), high: try Fixtures.golden("dash-webm-high"))
    try await Command.run(
      "feed", "-", "--virtual", "--link", "120k/50ms", "--swipes", "1", "--dwell", "fixed:3s", "--bandwidth",
      "auto", "--json", input: Array("\(Self.webM)\n".utf8), status: 0)
    let events = try await PlayEvents.play(Self.webM, "--rate", "max", "--md5", "--bandwidth", "auto")
    let shown = events.md5s
    #expect(shown.count == golden.low.count)
    for (index, md5) in shown.enumerated() {
      #expect([golden.low[index], golden.high[index]].contains(md5), "frame \(index)")
    }
    // It begins with the rung that suits an unknown link, and goes up.
    #expect(shown.last == golden.high.last)
  }

  @Test("manifest and probe list the segments of WebM with Cues")
  func segments() async throws {
    let result = try await Command.run("manifest", Self.webM)
    #expect(result.status == 0 && result.errorText.isEmpty, "\(result.errorText)")
    let manifest = try result.object
    let periods = try #require(manifest["periods"] as? [[String: Any]])
    let groups = try #require(periods.first?["track_groups"] as? [[String: Any]])
    #expect(groups.count == 2)
    for group in groups {
      for rung in try #require(group["rungs"] as? [[String: Any]]) {
        let segments = try #require(rung["segments"] as? [[String: Any]])
        #expect(segments.count >= 3)
        #expect(
          segments.compactMap { $0["start"] as? Double }
            == segments.compactMap { $0["start"] as? Double }.sorted())
        // The segments follow each other from the initialization to the index.
        let initialization = try #require((rung["initializations"] as? [[String: Any]])?.first)
        var end = try #require(initialization["byte_length"] as? Int)
        for segment in segments {
          #expect(segment["byte_offset"] as? Int == end)
          end += try #require(segment["byte_length"] as? Int)
        }
        let name = try #require(segments.first?["url"] as? String).split(separator: "/").last
        let bytes = try Fixtures.bytes("dash-webm/\(name ?? "")")
        #expect(Array(bytes[end..<(end + 4)]) == [0x1c, 0x53, 0xbb, 0x6b])
      }
    }
    let probe = try await Command.run("probe", Self.webM)
    #expect(probe.outputText.contains("segments 3, 1 s"), "\(probe.outputText)")
  }

  @Test(
    "HLS can't have WebM, and serve and manifest say so",
    arguments: [
      ["serve", "--port", "0"], ["manifest", "--output", "hls"],
    ])
  func noHLS(arguments: [String]) async throws {
    let result = try await Command.run(arguments + [Self.webM])
    #expect(result.status == 65, "\(result.outputText)")
    #expect(result.errorText.contains("HLS has no WebM segments"), "\(result.errorText)")
  }

  @Test("An index that can't be read is reported; from its start, the file plays nevertheless")
  func damagedIndex() async throws {
    let manifest = String(decoding: try Fixtures.bytes("dash-webm/manifest.mpd"), as: UTF8.self)
      .replacing(#/indexRange="\d+-/#, with: "indexRange=\"30000-")
    try await withOrigin(routes: ["/dash-webm/damaged.mpd": Origin.Response(manifest)]) { origin in
      let source = origin.url("dash-webm/damaged.mpd").absoluteString
      let events = try await Command.run("play", source, "--rate", "max", "--md5", "--json")
      #expect(try PlayEvents(events).md5s == Fixtures.golden("dash-webm-high"))
      let listed = try await Command.run("manifest", source)
      #expect(listed.errorText.contains("where the segment list is expected"), "\(listed.errorText)")
    }
  }

  // MARK: Files that are recognized late

  /// Files, and the golden files of their frames.
  static let files = [
    "media/h264-void-tracks-last.mkv", "media/h264-leading-bytes.ts", "media/h264-timed-leading-bytes.ts",
  ]

  @Test(
    "Tracks after the media, and bytes before the first packet: locally, redirected, and from a pipe",
    arguments: files)
  func local(path: String) async throws {
    let golden = try Fixtures.golden(path.replacing("media/", with: ""))
    let folder = try TemporaryFolder()
    let arguments = ["frames", "--count", "0", "--md5", "--json", "--overwrite"]
    for (source, shell) in [
      (Fixtures.path(path), "exec \"$@\""), ("-", "exec \"$@\" <'\(Fixtures.path(path))'"),
    ] {
      let result = try await Command.run(arguments + [source], directory: folder.path, shell: shell)
      #expect(try Self.md5s(result) == golden, "\(shell)")
    }
    let piped = try await Command.run(
      arguments + ["-"], input: try Fixtures.bytes(path), directory: folder.path)
    #expect(try Self.md5s(piped) == golden, "pipe")
  }

  @Test("The same over HTTP, with ranges and without", arguments: files, [true, false])
  func remote(path: String, hasRanges: Bool) async throws {
    let golden = try Fixtures.golden(path.replacing("media/", with: ""))
    let configuration = Origin.Configuration(directory: Fixtures.folder, supportsRanges: hasRanges)
    try await Origin.use(configuration) { origin in
      let events = try await PlayEvents.play(origin.url(path).absoluteString, "--rate", "max", "--md5")
      #expect(events.md5s == golden)
      guard hasRanges else { return }
      let rest = try await PlayEvents.play(
        origin.url(path).absoluteString, "--rate", "max", "--md5", "--start", "0.6")
      #expect(!rest.md5s.isEmpty && rest.md5s == Array(golden.suffix(rest.md5s.count)))
    }
  }

  @Test("Segments of HLS that begin with other bytes", arguments: [[0], [1], [0, 1, 2]])
  func segments(damaged: [Int]) async throws {
    var routes: [String: Origin.Response] = [:]
    let file = try Fixtures.bytes("media/h264-leading-bytes.ts")
    for index in damaged {
      let segment = try Fixtures.bytes("hls-ts/low/segment-\(index).ts")
      routes["/hls-ts/low/segment-\(index).ts"] = Origin.Response(Array(file.prefix(9001)) + segment)
    }
    try await withOrigin(routes: routes) { origin in
      let events = try await PlayEvents.play(
        origin.url("hls-ts/low/index.m3u8").absoluteString, "--rate", "max", "--md5")
      #expect(try events.md5s == Fixtures.golden("hls-ts-low"))
    }
  }

  @Test("Bytes without any packets are an unknown format")
  func noPackets() async throws {
    let folder = try TemporaryFolder()
    let bytes = Array(try Fixtures.bytes("media/h264-leading-bytes.ts").prefix(9001))
    try folder.write(bytes + bytes, to: "a.ts")
    let result = try await Command.run("frames", folder.path("a.ts"), directory: folder.path, status: 65)
    #expect(result.errorText.contains("not media: an unknown format"), "\(result.errorText)")
  }

  // MARK: - Private

  private static func md5s(_ result: CommandResult) throws -> [String] {
    #expect(result.status == 0, "\(result.errorText)")
    let record = try result.object
    return (record["frames"] as? [[String: Any]] ?? []).compactMap { $0["md5"] as? String }
  }
}
