import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import ReelTesting
import Testing

#if canImport(FoundationXML)
  import FoundationXML
#endif

@Suite("reel storyboard", .hangLimit)
struct StoryboardCommandTests {
  private let clip = Fixtures.path("stills/poor-start.mp4")

  @Test("WebVTT names each tile of the sheet")
  func webVTT() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "storyboard", clip, "--every", "2", "--size", "160", "--grid", "2x2", "-o", folder.path, status: 0)
    #expect(folder.names() == ["poor-start-001.jpg", "poor-start.vtt"])
    #expect(
      try folder.text("poor-start.vtt") == """
        WEBVTT

        00:00:00.000 --> 00:00:02.000
        poor-start-001.jpg#xywh=0,0,160,90

        00:00:02.000 --> 00:00:04.000
        poor-start-001.jpg#xywh=160,0,160,90

        00:00:04.000 --> 00:00:06.000
        poor-start-001.jpg#xywh=0,90,160,90

        """)
    let line = try #require(result.outputLines.first)
    #expect(line.contains("3 stills of 160x90, every 2 s\t2 files\tread "), "\(line)")
  }

  @Test("Further sheets, in each format", arguments: [("jpeg", "jpg"), ("png", "png"), ("webp", "webp")])
  func sheets(format: String, fileExtension: String) async throws {
    let folder = try TemporaryFolder()
    let record = try await Command.run(
      "storyboard", clip, "--every", "1", "--size", "80", "--grid", "2x2", "--format", format, "-o",
      folder.path, "--json", status: 0
    ).object
    let files = try #require(record["files"] as? [[String: Any]])
    let sheets = files.filter { $0["kind"] as? String == "sheet" }
    #expect(sheets.map { $0["width"] as? Int } == [160, 160])
    #expect(sheets.map { $0["height"] as? Int } == [90, 45])
    #expect(sheets.allSatisfy { ($0["path"] as? String)?.hasSuffix(".\(fileExtension)") == true })
    #expect(
      try folder.text("poor-start.vtt").contains("poor-start-002.\(fileExtension)#xywh=80,0,80,45"))
    #expect(record["stills"] as? Int == 6)
    #expect((record["frames"] as? [[String: Any]])?.count == 6)
    let read = try #require(record["read"] as? [String: Any])
    for key in ["requests", "bytes", "key_frame_bytes", "index_bytes"] { #expect(read[key] is NSNumber) }
    #expect(record["wall_ms"] is NSNumber && record["cpu_ms"] is NSNumber)
  }

  @Test("HLS: a sheet of equal tiles for each part of the time")
  func playlists() async throws {
    let folder = try TemporaryFolder()
    try await Command.run(
      "storyboard", clip, "--every", "1", "--size", "80", "--grid", "2x2", "--write", "hls", "-o",
      folder.path, status: 0)
    #expect(
      try folder.text("poor-start-images.m3u8") == """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-TARGETDURATION:4
        #EXT-X-MEDIA-SEQUENCE:1
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXT-X-IMAGES-ONLY
        #EXTINF:4,
        #EXT-X-TILES:RESOLUTION=80x45,LAYOUT=2x2,DURATION=1
        poor-start-001.jpg
        #EXTINF:2,
        #EXT-X-TILES:RESOLUTION=80x45,LAYOUT=2x2,DURATION=1
        poor-start-002.jpg
        #EXT-X-ENDLIST

        """)
    let playlist = try ManifestReader().mediaPlaylist(
      from: folder.bytes("poor-start-images.m3u8"), url: folder.url.appending(path: "poor-start-images.m3u8"),
      variables: [:])
    #expect(playlist.segments.count == 2 && playlist.live == nil)
    let master = try folder.text("poor-start.m3u8")
    #expect(
      master.contains(#"RESOLUTION=80x45,CODECS="jpeg",URI="poor-start-images.m3u8""#)
        && master.contains("#EXT-X-IMAGE-STREAM-INF:BANDWIDTH="))
    // The peak is a sheet's size over its own duration: the last one lasts 2 s, not 4.
    let rates = try [(1, 4.0), (2, 2.0)].map { number, duration in
      try (Double(folder.bytes("poor-start-00\(number).jpg").count) * 8 / duration).rounded(.up)
    }
    #expect(master.contains("BANDWIDTH=\(Int(rates.max() ?? 0)),"), "\(rates) \(master)")
  }

  @Test("A missing key frame: its slot repeats the one before, and a warning says so")
  func missing() async throws {
    let folder = try TemporaryFolder()
    try await withSource("stills/high/playlist.m3u8", faults: "stills/high/segment-2.m4s=status:404") {
      source in
      let result = try await Command.run(
        "storyboard", source, "--every", "1", "--write", "vtt,hls", "-o", folder.path, "--json", status: 69)
      #expect(result.errorText.contains("\(source): 1 of 6 stills is missing"), "\(result.errorText)")
      let record = try result.object
      #expect(record["stills"] as? Int == 5)
      #expect(record["repeated"] as? Int == 1)
      #expect((record["missing"] as? [Any])?.count == 1)
      #expect((record["error"] as? [String: Any])?["exit_code"] as? Int == 69)
      #expect(folder.names() == ["high-001.jpg", "high-images.m3u8", "high.m3u8", "high.vtt"])
      #expect(result.errorText.contains("warning"))
    }
  }

  @Test("A rung that is missing costs nothing if another has all stills, and is named once")
  func missingRung() async throws {
    let folder = try TemporaryFolder()
    try await withSource("stills/master.m3u8", faults: "stills/low/playlist.m3u8=status:404") { source in
      let record = try await Command.run(
        "storyboard", source, "--every", "1", "--size", "160", "-o", folder.path, "--json", status: 0
      ).object
      #expect(record["stills"] as? Int == 6)
      #expect(record["missing"] == nil && record["error"] == nil)
      #expect((record["faults"] as? [Any])?.count == 1)
    }
  }

  @Test("A segment that never comes costs its own still")
  func silentSegment() async throws {
    let folder = try TemporaryFolder()
    try await withSource("stills/high/playlist.m3u8", faults: "stills/high/segment-2.m4s=silence") { source in
      let record = try await Command.run(
        "storyboard", source, "--every", "1", "-o", folder.path, "--json", "--timeout", "5", status: 69
      ).object
      let missing = try #require(record["missing"] as? [[String: Any]])
      let found = try #require(missing.first { $0["slot"] as? Int == 2 })
      let error = try #require(found["error"] as? [String: Any])
      #expect(error["kind"] as? String == "timedOut")
      #expect((error["location"] as? String)?.hasSuffix("segment-2.m4s") == true)
    }
  }

  @Test("A file that is cut off: what is there is written, and the exit code says that it is damaged")
  func truncated() async throws {
    let folder = try TemporaryFolder()
    let bytes = try Fixtures.bytes("stills/poor-start.mp4")
    try folder.write(bytes.prefix(bytes.count * 2 / 3), to: "cut.mp4")
    try await Command.run(
      "storyboard", folder.path("cut.mp4"), "--every", "1", "-o", folder.path + "/out", status: 65)
    #expect(folder.names("out") == ["cut-001.jpg", "cut.vtt"])
  }

  @Test("A file that is cut off behind its key frames: all stills, a warning, and exit code 0")
  func truncatedAtTheEnd() async throws {
    let folder = try TemporaryFolder()
    for (name, bytes) in [
      ("cut.mp4", try Fixtures.bytes("stills/poor-start.mp4").dropLast(100)),
      ("stream.ts", try Fixtures.bytes("stills/poor-start.ts").dropLast(100)),
    ] {
      try folder.write(bytes, to: name)
      for command in [["storyboard", "--every", "1"], ["poster"]] {
        // A poster of a stream is made from its beginning.
        if command == ["poster"], name == "stream.ts" { continue }
        let result = try await Command.run(
          [command[0], folder.path(name), "-o", folder.path("out"), "--json"] + command.dropFirst(), status: 0
        )
        #expect(result.errorText.contains("warning: \(folder.path(name))"), "\(result.errorText)")
        let record = try result.object
        let faults = try #require(record["faults"] as? [[String: Any]])
        #expect((faults.first?["message"] as? String)?.contains("cut off") == true, "\(faults)")
        #expect(record["error"] == nil && record["missing"] == nil)
      }
    }
    let result = try await Command.run("probe", folder.path("cut.mp4"))
    #expect(result.status == 0 && result.outputText.contains("cut off"), "\(result.outputText)")
  }

  @Test("A connection that breaks while a source is read through: the exit code says so")
  func brokenConnection() async throws {
    let folder = try TemporaryFolder()
    try await withSource("stills/poor-start.ts", faults: "stills/poor-start.ts=close:100000") { source in
      let record = try await Command.run(
        "storyboard", source, "--every", "1", "-o", folder.path, "--json", "--retries", "0", status: 69
      ).object
      #expect((record["stills"] as? Int ?? 0) > 0)
      #expect((record["error"] as? [String: Any])?["exit_code"] as? Int == 69)
      #expect(folder.names().contains("poor-start-001.jpg"))
    }
  }

  @Test("Standard input: the bytes that were read")
  func standardInput() async throws {
    let folder = try TemporaryFolder()
    let bytes = try Fixtures.bytes("stills/poor-start.ts")
    let record = try await Command.run(
      "storyboard", "-", "--every", "1", "-o", folder.path, "--json", input: bytes, status: 0
    ).object
    let read = try #require(record["read"] as? [String: Any])
    #expect(read["bytes"] as? Int == bytes.count)
    #expect(read["requests"] as? Int == 1)
  }

  @Test("Turned and tone mapped")
  func geometry() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "storyboard", Fixtures.path("media/rotate-90.mp4"), Fixtures.path("media/colour-hdr10-pq.mp4"), "-o",
      folder.path, "--json", "--size", "54", status: 0)
    let records = try result.objects.sorted {
      ($0["source"] as? String ?? "") > ($1["source"] as? String ?? "")
    }
    #expect(records[0]["tile_width"] as? Int == 32 && records[0]["tile_height"] as? Int == 54)
    #expect(records[1]["hdr"] as? String == "pq")
  }

  @Test("Several sources; one that fails does not end the others, and leaves no file")
  func several() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "storyboard", clip, Fixtures.path("bad/audio-only.mp4"), goodSource, "-o", folder.path, status: 1)
    #expect(
      folder.names() == [
        "h264-faststart-001.jpg", "h264-faststart.vtt", "poor-start-001.jpg", "poor-start.vtt",
      ])
    expectErrorLine(result, names: "audio-only.mp4", words: "no video")
  }

  @Test("An existing file is kept, unless --overwrite is given")
  func existing() async throws {
    let folder = try TemporaryFolder()
    try folder.write("mine", to: "poor-start.vtt")
    try await Command.run("storyboard", clip, "-o", folder.path, status: 73)
    #expect(folder.names() == ["poor-start.vtt"])
    #expect(try await Command.run("storyboard", clip, "-o", folder.path, "--overwrite").status == 0)
    try await Command.run("storyboard", clip, "-o", folder.path + "/poor-start.vtt", status: 64)
  }

  @Test("The source itself is never replaced, not even with --overwrite")
  func source() async throws {
    let folder = try TemporaryFolder()
    let media = folder.url.appending(path: "clip.vtt")
    try Data(contentsOf: URL(fileURLWithPath: clip)).write(to: media)
    let link = folder.url.appending(path: "link.vtt")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: media)
    for path in [media.path, link.path] {
      let result = try await Command.run("storyboard", path, "-o", folder.path, "--overwrite", status: 73)
      expectErrorLine(result, names: path, words: "would replace its own source")
    }
    #expect(
      try folder.bytes("clip.vtt") == folder.bytes("link.vtt") && folder.names() == ["clip.vtt", "link.vtt"])
  }

  @Test("A sheet that is too large is refused before any file is written")
  func tooLarge() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run("storyboard", clip, "--grid", "100x10", "-o", folder.path, status: 64)
    expectErrorLine(result, names: "--grid", words: "32000x1800")
    #expect(folder.names().isEmpty)
  }
}
