import Foundation
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@Suite("Image tracks on the command line", .hangLimit)
struct ImageTrackCommandTests {
  private let clip = Fixtures.path("stills/poor-start.mp4")

  private func json(_ line: String?) throws -> [String: Any] {
    let text = try #require(line)
    return try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  /// A folder with a storyboard: a playlist of images, a multivariant playlist and an MPD.
  private func made(_ format: String = "png") async throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "storyboard", clip, "--every", "1", "--size", "80", "--grid", "2x2", "--format", format, "--write",
      "hls,dash", "-o", folder.path)
    try #require(result.status == 0, "\(result.errorText)")
    return folder
  }

  /// Runs `body` with an origin that serves the folder, and returns the paths of the requests.
  private func serving(
    _ folder: TemporaryFolder, _ body: (Origin) async throws -> Void
  ) async throws -> [String] {
    try await Origin.use(Origin.Configuration(directory: folder.url)) { origin in
      try await body(origin)
      return origin.snapshot.requests.map(\.path)
    }
  }

  private static let manifests = [
    ("poor-start.m3u8", ["/poor-start.m3u8", "/poor-start-images.m3u8"], "images-0"),
    ("poor-start-images.m3u8", ["/poor-start-images.m3u8"], "0"),
    ("poor-start.mpd", ["/poor-start.mpd"], "thumbnails"),
  ]

  @Test("A storyboard that reel wrote is read back", arguments: manifests)
  func roundTrip(name: String, requests: [String], rung: String) async throws {
    let folder = try await made()
    let sheets = ["/poor-start-001.png", "/poor-start-002.png"]
    let again = try TemporaryFolder()
    let paths = try await serving(folder) { origin in
      let result = try await Command.run(
        "storyboard", origin.url(name).absoluteString, "--every", "1", "--size", "80", "--grid", "2x2",
        "--format", "png", "--write", "hls", "-o", again.path, "--json")
      #expect(result.status == 0, "\(result.errorText)")
      #expect(result.errorText.isEmpty)
      let record = try json(result.outputLines.first)
      #expect(record["track"] as? String == "images" && record["rung"] as? String == rung)
      #expect(record["stills"] as? Int == 6 && record["duration"] as? Double == 6)
    }
    // Images are fetched at the same time.
    #expect(paths.sorted() == (requests + sheets).sorted())
    // Without a loss, they are the same.
    let stem = (name as NSString).deletingPathExtension
    for number in ["001", "002"] {
      #expect(try again.bytes("\(stem)-\(number).png") == folder.bytes("poor-start-\(number).png"))
    }
    let posters = try await serving(folder) { origin in
      let result = try await Command.run(
        "poster", origin.url(name).absoluteString, "--size", "80", "-o", again.path, "--json")
      #expect(result.status == 0, "\(result.errorText)")
      let record = try json(result.outputLines.first)
      #expect(record["track"] as? String == "images" && record["rung"] as? String == rung)
      #expect((record["candidates"] as? [Any])?.count == 6)
      #expect((record["file"] as? [String: Any])?["width"] as? Int == 80)
      #expect((record["time"] as? Double ?? 0) >= 4)
      #expect(record["pts"] == nil)
    }
    #expect(posters.sorted() == (requests + sheets).sorted())
  }

  @Test("JPEG and WebP", arguments: ["jpeg", "webp"])
  func formats(format: String) async throws {
    let folder = try await made(format)
    for name in ["poor-start.m3u8", "poor-start.mpd"] {
      let result = try await Command.run(
        "poster", folder.path(name), "--size", "80", "-o", folder.path("\(name)-poster"))
      #expect(result.status == 0, "\(result.errorText)")
      let line = try #require(result.outputLines.first)
      #expect(line.contains("\t80x45\tbest of 6") && line.hasSuffix("\tfrom images"), "\(line)")
    }
  }

  @Test("Probe and manifest list the images")
  func listing() async throws {
    let folder = try await made()
    let probed = try await Command.run("probe", folder.path("poor-start.mpd"))
    #expect(probed.outputText.contains("images thumbnails  "))
    #expect(probed.outputText.contains(", 80x45, 2x2 tiles per image, image/png"), "\(probed.outputText)")
    let hls = try await Command.run("probe", folder.path("poor-start.m3u8"), "--json")
    let images = try #require(try json(hls.outputLines.first)["images"] as? [[String: Any]])
    #expect(images.first?["width"] as? Int == 80 && images.first?["columns"] as? Int == 2)
    #expect(probed.status == 0 && hls.status == 0 && probed.errorText.isEmpty && hls.errorText.isEmpty)
    let playlist = try await Command.run("probe", folder.path("poor-start-images.m3u8"))
    #expect(
      playlist.status == 0 && playlist.outputText.contains("2x2 tiles per image"), "\(playlist.errorText)")
    for name in ["poor-start.m3u8", "poor-start-images.m3u8", "poor-start.mpd"] {
      let result = try await Command.run("manifest", folder.path(name))
      #expect(result.status == 0, "\(result.errorText)")
      let record = try json(result.outputText)
      let period = try #require((record["periods"] as? [[String: Any]])?.first)
      let group = try #require((period["track_groups"] as? [[String: Any]])?.first)
      #expect(group["kind"] as? String == "image")
      let tiles = try #require((group["rungs"] as? [[String: Any]])?.first?["tiles"] as? [String: Any])
      #expect(tiles["columns"] as? Int == 2 && tiles["rows"] as? Int == 2, "\(name)")
      #expect(tiles["width"] as? Int == 80 && tiles["duration"] as? Double == 1, "\(name)")
    }
  }

  @Test("Images are not played", arguments: ["poor-start.m3u8", "poor-start-images.m3u8", "poor-start.mpd"])
  func playing(name: String) async throws {
    let folder = try await made()
    for command in [["play"], ["frames", "-o", folder.path]] {
      let result = try await Command.run([command[0], folder.path(name)] + command.dropFirst())
      #expect(result.status != 0)
      #expect(result.errorText.contains("it contains only images, no video"), "\(result.errorText)")
    }
  }

  @Test("A warning says why key frames were taken")
  func fallback() async throws {
    let folder = try TemporaryFolder()
    let text = String(decoding: try Fixtures.bytes("stills/master.m3u8"), as: UTF8.self)
      .replacingOccurrences(of: "high/", with: Fixtures.path("stills/high") + "/")
      .replacingOccurrences(of: "low/", with: Fixtures.path("stills/low") + "/")
    let master = text + #"#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=1,RESOLUTION=160x90,URI="none.m3u8""# + "\n"
    try Data(master.utf8).write(to: folder.url.appending(path: "master.m3u8"))
    let warning = "the images of 'images-0' can't be used, so key frames are: no such file"
    let poster = try await Command.run(
      "poster", folder.path("master.m3u8"), "--size", "160", "-o", folder.path, "--json")
    #expect(poster.status == 0)
    #expect(poster.errorText.contains("warning") && poster.errorText.contains(warning), "\(poster.errorText)")
    let record = try json(poster.outputLines.first)
    #expect(record["track"] as? String == "video" && (record["faults"] as? [Any])?.count == 1)
    let board = try await Command.run(
      "storyboard", folder.path("master.m3u8"), "--size", "160", "--every", "1", "-o", folder.path)
    #expect(board.status == 0)
    #expect(board.errorText.contains("warning") && board.errorText.contains(warning), "\(board.errorText)")
    #expect(board.outputText.contains("\trung 1"))
  }

  /// A folder with a presentation, and the images of `made()` in another one.
  private func presentation(images: String) throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    try FileManager.default.copyItem(atPath: Fixtures.path("stills/low"), toPath: folder.path("low"))
    let master = """
      #EXTM3U
      #EXT-X-STREAM-INF:BANDWIDTH=400000,RESOLUTION=160x90,CODECS="avc1.64000b"
      low/playlist.m3u8
      #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=1,RESOLUTION=160x90,URI="\(images)"

      """
    try Data(master.utf8).write(to: folder.url.appending(path: "master.m3u8"))
    return folder
  }

  @Test("Images that a server does not have cost no still, and are no failure")
  func serverFallback() async throws {
    let folder = try presentation(images: "none.m3u8")
    let list =
      "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-TILES:LAYOUT=2x3\n#EXTINF:6,\nnone.png\n#EXT-X-ENDLIST\n"
    for playlist in [nil, list] {
      if let playlist { try Data(playlist.utf8).write(to: folder.url.appending(path: "none.m3u8")) }
      _ = try await serving(folder) { origin in
        let url = origin.url("master.m3u8").absoluteString
        let output = try TemporaryFolder()
        for command in [["poster"], ["storyboard", "--every", "1"]] {
          let result = try await Command.run(command + [url, "--size", "160", "-o", output.path])
          #expect(result.status == 0, "\(result.errorText)")
          #expect(result.errorText.split(separator: "\n").count == 1, "\(result.errorText)")
          #expect(result.errorText.contains("warning") && result.errorText.contains("404"))
        }
      }
    }
  }

  @Test("What is not shown is not fetched")
  func notFetched() async throws {
    let folder = try presentation(images: "none.m3u8")
    let paths = try await serving(folder) { origin in
      let url = origin.url("master.m3u8").absoluteString
      let text = try await Command.run("manifest", url, "--output", "hls")
      #expect(text.status == 0)
      #expect(text.errorText.contains("image playlists are left out"), "\(text.errorText)")
      let played = try await Command.run("play", url, "--rate", "max")
      #expect(played.status == 0, "\(played.errorText)")
    }
    #expect(!paths.contains("/none.m3u8"))
    let probed = try await serving(folder) { origin in
      let result = try await Command.run("probe", origin.url("master.m3u8").absoluteString)
      #expect(result.status == 0 && result.outputText.contains("404"), "\(result.outputText)")
    }
    #expect(probed.contains("/none.m3u8"))
  }
}
