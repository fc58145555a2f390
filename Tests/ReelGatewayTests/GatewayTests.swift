import Foundation
import ReelCore
import ReelGateway
import ReelManifest
import ReelTesting
import ReelTestSupport
import Testing

@Suite(.hangLimit) struct GatewayTests {
  @Test func playlists() async throws {
    try await withFixture("dash-number") { gateway, _ in
      let master = try await http(gateway.url)
      #expect(master.status == 200)
      #expect(master.fields["content-type"] == "application/vnd.apple.mpegurl")
      #expect(master.fields["access-control-allow-origin"] == "*")
      #expect(master.text.hasPrefix("#EXTM3U\n"))
      #expect(master.text.contains("\nmedia/video-1/index.m3u8\n"))
      #expect(master.text.contains("URI=\"media/audio-0/index.m3u8\""))
      #expect(try await http(gateway.url("/")).text == master.text)

      let media = try await http(gateway.url("/media/video-1/index.m3u8"))
      #expect(media.text.contains("#EXT-X-MAP:URI=\"init-"))
      #expect(media.text.contains("\n2.m4s\n"))
    }
  }

  @Test func mediaIsRedirected() async throws {
    try await withFixture("dash-number") { gateway, origin in
      let segment = try await http(gateway.url("/media/video-1/2.m4s"))
      #expect(segment.status == 302)
      #expect(
        segment.fields["location"] == origin.url("dash-number/1/segment-00003.m4s").absoluteString)
      #expect(segment.fields["access-control-allow-origin"] == "*")
      let head = try await http("HEAD", try await gateway.url(of: "init", in: "audio-0"))
      #expect(head.status == 302)
      #expect(head.fields["location"] == origin.url("dash-number/2/init.mp4").absoluteString)
      #expect(!origin.requestLog.contains { $0.path.hasSuffix(".m4s") })
    }
  }

  @Test func clientsAreSentToTheLocationThatAnswers() async throws {
    try await Origin.use { origin in
      let hls = try VirtualHLS(try await presentation(at: origin.url("dash-baseurl/fallback.mpd")))
      let gateway = try await Gateway.start(hls, fetcher: makeFetcher(attempts: 1), logger: silentLogger)
      let map = try await gateway.url(of: "init", in: "video-0")
      for (url, path) in [
        (map, "init.mp4"), (gateway.url("/media/video-0/2.m4s"), "segment-00003.m4s"),
      ] {
        let answer = try await http(url)
        #expect(answer.status == 302)
        #expect(answer.fields["location"] == origin.url("dash-number/1/\(path)").absoluteString)
      }
      await gateway.stop()
    }
  }

  @Test(arguments: ["dash-number", "dash-ondemand", "dash-periods", "dash-segmentlist"])
  func mediaIsPassedThrough(fixture: String) async throws {
    try await withFixture(fixture, isProxy: true) { gateway, origin in
      let text = try await http(gateway.url("/media/video-0/index.m3u8")).text
      let names = Set(text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init))
      #expect(!names.isEmpty)
      for name in names {
        let answer = try await http(gateway.url("/media/video-0/\(name)"))
        #expect(answer.status == 200)
        #expect(answer.fields["content-type"] == "video/mp4")
        #expect(answer.fields["accept-ranges"] == "bytes")
        let path = try #require(origin.requestLog.last?.path)
        #expect(try answer.body == Fixtures.bytes(path), "\(name)")
      }
    }
  }

  @Test func rangesAreOfTheResource() async throws {
    try await withFixture("dash-ondemand", isProxy: true) { gateway, _ in
      let whole = try Fixtures.bytes("dash-ondemand/low.mp4")
      let url = try await gateway.url(of: "file", in: "video-0")
      let size = whole.count
      for (field, part) in [
        ("bytes=0-0", 0..<1), ("bytes=766-841", 766..<842), ("bytes=\(size - 5)-", size - 5..<size),
        ("bytes=-7", size - 7..<size), ("bytes=-\(size + 9)", 0..<size), ("bytes=9-\(size + 50)", 9..<size),
        ("bytes=9-9223372036854775807", 9..<size),
      ] {
        let answer = try await http(url, fields: ["Range": field])
        #expect(answer.status == 206, "\(field)")
        #expect(
          answer.fields["content-range"] == "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(size)",
          "\(field)")
        #expect(answer.fields["content-length"] == String(part.count))
        #expect(answer.body == Array(whole[part]), "\(field)")
      }
      for field in ["bytes=\(size)-", "bytes=\(size + 1)-\(size + 2)", "bytes=-0"] {
        let answer = try await http(url, fields: ["Range": field])
        #expect(answer.status == 416, "\(field)")
        #expect(answer.fields["content-range"] == "bytes */\(size)")
      }
      for field in [
        "bytes=5-2", "bytes=0-1,3-4", "bytes=x-", "lines=0-3", "bytes=-", "bytes=99999999999999999999-",
      ] {
        let answer = try await http(url, fields: ["Range": field])
        #expect(answer.status == 200, "\(field)")
        #expect(answer.body == whole)
      }
    }
  }

  /// An origin that sends everything has the part cut out of it.
  @Test func originWithoutRanges() async throws {
    var configuration = Origin.Configuration(directory: Fixtures.folder)
    configuration.supportsRanges = false
    try await Origin.use(configuration) { origin in
      let list = try await presentation(at: origin.url("dash-segmentlist/manifest.mpd"))
      try await withGateway(list, isProxy: true) { gateway in
        let whole = try Fixtures.bytes("dash-segmentlist/media-0.mp4")
        let url = try await gateway.url(of: "file", in: "video-0")
        let answer = try await http(url, fields: ["Range": "bytes=798-17039"])
        #expect(answer.status == 206)
        #expect(answer.fields["content-range"] == "bytes 798-17039/\(whole.count)")
        #expect(answer.body == Array(whole[798..<17_040]))
        #expect(try await http(url, fields: ["Range": "bytes=\(whole.count)-"]).status == 416)
      }
    }
  }

  @Test func headsHaveNoBody() async throws {
    try await withFixture("dash-number", isProxy: true) { gateway, origin in
      let size = try Fixtures.bytes("dash-number/0/init.mp4").count
      let head = try await http("HEAD", try await gateway.url(of: "init", in: "video-0"))
      #expect(head.status == 200)
      #expect(head.fields["content-length"] == String(size))
      #expect(head.body.isEmpty)
      #expect(origin.requestLog.last?.method == "HEAD")
      let playlist = try await http("HEAD", gateway.url)
      #expect(playlist.status == 200)
      let length = try await http(gateway.url).body.count
      #expect(playlist.fields["content-length"] == String(length))
    }
  }

  @Test func anyPageMayAsk() async throws {
    try await withFixture("dash-number") { gateway, _ in
      let options = try await http(
        "OPTIONS", gateway.url("/media/video-0/0.m4s"),
        fields: ["Origin": "https://page.example", "Access-Control-Request-Headers": "range"])
      #expect(options.status == 204)
      #expect(options.fields["access-control-allow-origin"] == "*")
      #expect(options.fields["access-control-allow-headers"]?.contains("Range") == true)
      #expect(options.fields["access-control-allow-methods"]?.contains("HEAD") == true)
      let missing = try await http(gateway.url("/nothing"))
      #expect(missing.status == 404)
      #expect(missing.fields["access-control-allow-origin"] == "*")
      #expect(missing.fields["access-control-expose-headers"]?.contains("Content-Range") == true)
      let post = try await http("POST", gateway.url)
      #expect(post.status == 405)
      #expect(post.fields["allow"] == "GET, HEAD, OPTIONS")
    }
  }

  @Test func nothingElseCanBeReached() async throws {
    try await withFixture("dash-number", isProxy: true) { gateway, origin in
      let count = origin.requestLog.count
      for path in [
        "/media/video-0/../../../etc/passwd", "/media/..%2f..%2fetc/passwd", "/media/video-0/..%2f0.m4s",
        "/etc/passwd", "//etc/passwd", "/media/video-9/0.m4s", "/media/video-0/3.m4s",
        "/media/video-0/-1.m4s",
        "/media/video-0/00.m4s", "/media/video-0/", "/media/video-0", "/media",
        "/master",
        "/media/video-0/http:%2f%2f127.0.0.1%2f", "/media/video-0/file-0123456789.mp4",
        "/media/video-0/0.m4s/x",
        "/media/video-0/%00.m4s", "/media/video-0/index.m3u8x",
      ] {
        #expect(try await raw("GET \(path) HTTP/1.1\r\n", gateway).hasPrefix("HTTP/1.1 404 "), "\(path)")
      }
      // The absolute form of a request (RFC 9112 §3.2.2) steers no more than a path does.
      #expect(
        try await raw("GET http://127.0.0.1:\(origin.port)/dash-number/manifest.mpd HTTP/1.1\r\n", gateway)
          .hasPrefix("HTTP/1.1 404 "))
      #expect(origin.requestLog.count == count)
      let steered = try await http(
        gateway.url("/media/video-0/0.m4s?url=http://127.0.0.1:\(origin.port)/hls-ts/master.m3u8"))
      #expect(try steered.body == Fixtures.bytes("dash-number/0/segment-00001.m4s"))
      #expect(origin.requestLog.last?.target == "/dash-number/0/segment-00001.m4s")
    }
  }

  @Test func originThatFails() async throws {
    try await withFixture("dash-number", isProxy: true) { gateway, origin in
      origin.setFaults([FaultRule("segment-00001.m4s", .status(404)), FaultRule("init.mp4", .status(503))])
      let missing = try await http(gateway.url("/media/video-0/0.m4s"))
      #expect(missing.status == 502)
      #expect(missing.text.hasPrefix("origin: 404 Not Found"))
      #expect(missing.fields["access-control-allow-origin"] == "*")
      #expect(try await http(try await gateway.url(of: "init", in: "video-0")).status == 502)
      let range = try await http(gateway.url("/media/video-0/0.m4s"), fields: ["Range": "bytes=0-9"])
      #expect(range.status == 502)
      // The connection and the gateway go on.
      #expect(try await http(gateway.url("/media/video-0/1.m4s")).status == 200)
    }
  }

  @Test func originThatIsSilent() async throws {
    try await Origin.use { origin in
      let number = try await presentation(at: origin.url("dash-number/manifest.mpd"))
      origin.setFaults([FaultRule("segment-00001.m4s", .silence)])
      try await withGateway(
        number, isProxy: true, fetcher: makeFetcher(firstByteTimeout: .milliseconds(50), attempts: 1)
      ) { gateway in
        let answer = try await http(gateway.url("/media/video-0/0.m4s"))
        #expect(answer.status == 504)
      }
    }
  }

  /// What is cut off can't pass for the whole.
  @Test func originThatBreaksOff() async throws {
    try await withFixture("dash-number", isProxy: true) { gateway, origin in
      origin.setFaults([FaultRule("segment-00001.m4s", .close(after: 4_000))])
      let answer = try await raw("GET /media/video-0/0.m4s HTTP/1.1\r\n", gateway)
      let size = try Fixtures.bytes("dash-number/0/segment-00001.m4s").count
      #expect(answer.lowercased().contains("content-length: \(size)\r\n"))
      let body = try #require(answer.range(of: "\r\n\r\n")).upperBound
      #expect(answer[body...].unicodeScalars.count < size)
    }
  }

  @Test func otherURLsAreTried() async throws {
    try await Origin.use { origin in
      let number = try await presentation(at: origin.url("dash-number/manifest.mpd"))
      let moved = number.mapSegments { segment in
        var segment = segment
        segment.alternateURLs = [origin.url("missing-too.m4s"), segment.url]
        segment.url = origin.url("missing.m4s")
        return segment
      }
      try await withGateway(moved, isProxy: true) { gateway in
        let answer = try await http(gateway.url("/media/video-0/0.m4s"))
        #expect(answer.status == 200)
        #expect(try answer.body == Fixtures.bytes("dash-number/0/segment-00001.m4s"))
        #expect(
          origin.requestLog.suffix(3).map(\.path)
            == ["/missing.m4s", "/missing-too.m4s", "/dash-number/0/segment-00001.m4s"])
      }
    }
  }

  /// What a client could not fetch itself is relayed in either mode.
  @Test func localFilesAndData() async throws {
    let local = try await presentation(at: Fixtures.folder.appending(path: "dash-number/manifest.mpd"))
    let data = Data("some bytes".utf8).base64EncodedString()
    let embedded = local.mapSegments { segment in
      var segment = segment
      if segment.number == 2 { segment.url = URL(string: "data:video/mp4;base64,\(data)") ?? segment.url }
      if segment.number == 3 { segment.url = URL(string: "data:,a%20b%FF") ?? segment.url }
      return segment
    }
    try await withGateway(embedded) { gateway in
      let first = try Fixtures.bytes("dash-number/0/segment-00001.m4s")
      let file = try await http(gateway.url("/media/video-0/0.m4s"))
      #expect(file.status == 200)
      #expect(file.body == first)
      let tail = try await http(gateway.url("/media/video-0/0.m4s"), fields: ["Range": "bytes=-10"])
      #expect(tail.body == Array(first.suffix(10)))
      let beyond = try await http(
        gateway.url("/media/video-0/0.m4s"), fields: ["Range": "bytes=\(first.count)-"])
      #expect(beyond.status == 416)
      #expect(
        try await http("HEAD", gateway.url("/media/video-0/0.m4s")).fields["content-length"]
          == "\(first.count)")
      #expect(try await http(gateway.url("/media/video-0/1.m4s")).text == "some bytes")
      let part = try await http(gateway.url("/media/video-0/1.m4s"), fields: ["Range": "bytes=5-"])
      #expect(part.status == 206)
      #expect(part.text == "bytes")
      #expect(try await http(gateway.url("/media/video-0/2.m4s")).body == [0x61, 0x20, 0x62, 0xff])
    }
  }

  /// A player that passes over EXT-X-GAP gets something that it can pass over too.
  @Test func gapsHaveAnAnswer() async throws {
    try await Origin.use { origin in
      var list = try await presentation(at: origin.url("dash-number/manifest.mpd"))
      let three = MediaTime(value: 3, timescale: 1)
      let later = list.mapSegments { segment in
        var segment = segment
        segment.start = segment.start + three
        return segment
      }
      var second = try #require(later.periods.first)
      second.start = three
      second.trackGroups.removeAll { $0.kind == .audio }
      list.periods.append(second)
      try await withGateway(list) { gateway in
        let playlist = try await http(gateway.url("/media/audio-0/index.m3u8"))
        #expect(playlist.text.hasSuffix("#EXT-X-GAP\n#EXTINF:1,\n5.m4s\n#EXT-X-ENDLIST\n"))
        let gap = try await http(gateway.url("/media/audio-0/5.m4s"))
        #expect(gap.status == 200)
        #expect(gap.body == [0, 0, 0, 8] + Array("free".utf8))
      }
    }
  }
}
