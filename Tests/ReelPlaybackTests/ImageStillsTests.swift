import Foundation
import ReelCore
import ReelFFmpeg
import ReelManifest
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelPlayback

@Suite("Image tracks as sources of stills", .hangLimit)
struct ImageStillsTests {
  // MARK: Material

  private static let tile = PixelSize(width: 160, height: 90)

  /// The pixels of a tile, which no other tile has.
  private static func pixels(_ seed: Int, _ size: PixelSize = tile) -> [UInt8] {
    var pixels: [UInt8] = []
    pixels.reserveCapacity(size.width * size.height * 3)
    for y in 0..<size.height {
      for x in 0..<size.width {
        let value = UInt8(truncatingIfNeeded: x * (seed + 2) + y * 3 + seed * 20)
        pixels += [value, 255 - value, UInt8(seed * 30)]
      }
    }
    return pixels
  }

  /// A PNG of tiles, the first of which has the number `first`.
  private static func sheet(
    _ first: Int, count: Int = 4, columns: Int = 2, rows: Int = 2, tile: PixelSize = tile
  ) throws -> [UInt8] {
    var sheet = StillSheet(tile: tile, columns: columns, rows: rows)
    for index in 0..<min(count, columns * rows) {
      try sheet.place(
        Still(size: tile, pixels: .eightBit(pixels(first + index, tile)), color: .sRGB), at: index)
    }
    return try StillEncoder.encode(sheet.still, as: .png)
  }

  private static func master(bandwidth: Int = 20_000, size: String? = "160x90", others: String = "")
    -> [UInt8]
  {
    Array(
      """
      #EXTM3U
      #EXT-X-STREAM-INF:BANDWIDTH=1200000,RESOLUTION=320x180,CODECS="avc1.64000d"
      high/playlist.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=400000,RESOLUTION=160x90,CODECS="avc1.64000b"
      low/playlist.m3u8
      #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=\(bandwidth)\(size.map { ",RESOLUTION=\($0)" } ?? ""),URI="images.m3u8"
      \(others)
      """.utf8)
  }

  private static let playlist = """
    #EXTM3U
    #EXT-X-VERSION:7
    #EXT-X-TARGETDURATION:4
    #EXT-X-IMAGES-ONLY
    #EXTINF:4,
    #EXT-X-TILES:RESOLUTION=160x90,LAYOUT=2x2,DURATION=1
    sheet-0.png
    #EXTINF:2,
    #EXT-X-TILES:RESOLUTION=160x90,LAYOUT=2x2,DURATION=1
    sheet-1.png
    #EXT-X-ENDLIST
    """

  private static let template =
    #"<SegmentTemplate timescale="1" duration="1" startNumber="0" initialization="$RepresentationID$/init.mp4" "#
    + #"media="$RepresentationID$/segment-$Number$.m4s"/>"#

  private static let video =
    #"<AdaptationSet mimeType="video/mp4">\#(template)<Representation id="low" codecs="avc1.64000b" "#
    + #"width="160" height="90" bandwidth="400000"/></AdaptationSet>"#

  private static func mpd(_ images: String, video: String = video) -> [UInt8] {
    Array(
      """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT6S"><Period>
      \(video)\(images)</Period></MPD>
      """.utf8)
  }

  private static func imageSet(_ segments: String, layout: String? = "2x2") -> String {
    let property = layout.map {
      #"<EssentialProperty schemeIdUri="http://dashif.org/guidelines/thumbnail_tile" value="\#($0)"/>"#
    }
    let (width, height) = layout == nil ? (160, 90) : (320, 180)
    return """
      <AdaptationSet contentType="image" mimeType="image/png">\(segments)
      <Representation id="thumbs" bandwidth="20000" width="\(width)" height="\(height)">\(property ?? "")
      </Representation></AdaptationSet>
      """
  }

  private static func files() throws -> [String: [UInt8]] {
    [
      "images.m3u8": Array(playlist.utf8), "master.m3u8": master(),
      "sheet-0.png": try sheet(0), "sheet-1.png": try sheet(4, count: 2),
    ]
  }

  private func fetcher(
    _ others: [String: [UInt8]] = [:], faults: [String: FixtureFetcher.Fault] = [:]
  ) throws -> FixtureFetcher {
    let files = try Self.files().merging(others) { $1 }
    return FixtureFetcher { request, _ in
      let path = request.url.path.split(separator: "/").dropFirst().joined(separator: "/")
      return faults[path] ?? files[path].map { .bytes($0) } ?? .none
    }
  }

  private func source(_ name: String = "master.m3u8") throws -> MediaSource {
    try MediaSource(argument: "http://stills.test/stills/\(name)")
  }

  private struct Made: Sendable {
    let storyboard: Storyboard
    let tiles: [Storyboard.Tile]

    var times: [Double] { tiles.map(\.time.seconds) }
    var pixels: [[UInt8]] {
      tiles.map { if case .eightBit(let pixels) = $0.still.pixels { pixels } else { [] } }
    }
  }

  private func storyboard(
    _ name: String = "master.m3u8", from fetcher: FixtureFetcher, every: Double = 1, width: Int = 160,
    clock: any MonotonicClock = ManualMonotonicClock(), noteTile: @escaping @Sendable () -> Void = {}
  ) async throws -> Made {
    let extractor = StoryboardExtractor(
      fetcher: fetcher, configuration: LoadingConfiguration(), size: .width(width),
      stillLimit: .seconds(30), clock: clock, gate: nil, logger: silentLogger)
    return try await extractor.storyboard(.every(every), of: source(name)) { tiles in
      var found: [Storyboard.Tile] = []
      while let tile = try tiles.next() {
        found.append(tile)
        noteTile()
      }
      return Made(storyboard: try tiles.storyboard(), tiles: found)
    }
  }

  private func poster(
    _ choice: Poster.Choice = .best(of: 6), _ name: String = "master.m3u8", from fetcher: FixtureFetcher,
    width: Int? = 160
  ) async throws -> Poster {
    let extractor = PosterExtractor(
      fetcher: fetcher, configuration: LoadingConfiguration(), size: width.map { .width($0) }, gate: nil,
      logger: silentLogger)
    return try await extractor.poster(choice, of: source(name)) { _ in }.poster
  }

  private func times(_ poster: Poster) -> [Double] { poster.candidates.map(\.time.seconds) }

  private func names(_ fetcher: FixtureFetcher) -> [String] { fetcher.requests.map(\.url.lastPathComponent) }

  /// In alphabetical order. The playlist of the video states how long it is.
  private static let requests = [
    "images.m3u8", "master.m3u8", "playlist.m3u8", "sheet-0.png", "sheet-1.png",
  ]

  // MARK: HLS

  @Test("A poster is one of the tiles, and no media is fetched")
  func poster() async throws {
    let fetcher = try fetcher()
    let poster = try await poster(from: fetcher)
    #expect(poster.track == .images && poster.rung?.id == "images-0")
    #expect(times(poster) == [0, 1, 2, 3, 4, 5])
    #expect(poster.faults.isEmpty && poster.imageFault == nil)
    #expect(names(fetcher).first == "master.m3u8" && names(fetcher).sorted() == Self.requests)
    let index = try #require([0.0, 1, 2, 3, 4, 5].firstIndex(of: poster.chosen.time.seconds))
    let (size, ticks) = (poster.frame.frame.decoded.size, poster.frame.frame.decoded.presentationTicks)
    #expect(size == Self.tile && ticks == nil)
    let row = poster.frame.frame.decoded.withPlane(0) { base, _, count, _ in
      Array(UnsafeRawBufferPointer(start: base, count: count))
    }
    #expect(row == Array(Self.pixels(index).prefix(480)))
    // The bytes of an image are counted once.
    let bytes = try Self.files()
    #expect(
      poster.traffic.keyFrameByteCount
        == Int64((bytes["sheet-0.png"]?.count ?? 0) + (bytes["sheet-1.png"]?.count ?? 0)))
    #expect(poster.candidates.reduce(0) { $0 + Int64($1.byteCount) } == poster.traffic.keyFrameByteCount)
  }

  @Test("The tiles of a storyboard are those of the images, pixel by pixel")
  func storyboard() async throws {
    let fetcher = try fetcher()
    let made = try await storyboard(from: fetcher)
    #expect(made.times == [0, 1, 2, 3, 4, 5])
    #expect(made.pixels == (0..<6).map { Self.pixels($0) })
    #expect(made.storyboard.track == .images && made.storyboard.rung?.id == "images-0")
    #expect(made.storyboard.missing.isEmpty && made.storyboard.faults.isEmpty)
    #expect(made.storyboard.duration == 6000 && made.storyboard.interval == 1000)
    #expect(names(fetcher).first == "master.m3u8" && names(fetcher).sorted() == Self.requests)
    let some = try await storyboard(from: fetcher, every: 2)
    #expect(some.times == [0, 2, 4])
  }

  @Test("Only for a size that the tiles have")
  func size() async throws {
    #expect(try await poster(from: fetcher(), width: 161).track == .video)
    #expect(try await poster(from: fetcher(), width: nil).track == .video)
    #expect(try await poster(.first, from: fetcher()).track == .video)
    #expect(try await poster(.at(MediaTime(seconds: 2)), from: fetcher()).track == .video)
    #expect(try await storyboard(from: fetcher(), width: 161).storyboard.track == .video)
    // A size that is not stated is not known.
    let unstated = try fetcher(["master.m3u8": Self.master(size: nil)])
    #expect(try await poster(from: unstated).track == .video)
  }

  @Test("Not if key frames that are large enough are cheaper")
  func cheaper() async throws {
    for (bandwidth, track) in [(400_000, StillTrack.images), (400_001, .video)] {
      let fetcher = try fetcher(["master.m3u8": Self.master(bandwidth: bandwidth)])
      #expect(try await poster(from: fetcher).track == track)
      #expect(try await storyboard(from: fetcher).storyboard.track == track)
    }
    let iFrames =
      #"#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=200000,RESOLUTION=320x180,CODECS="avc1.64000d",URI="i-frames.m3u8""#
    let large = try fetcher([
      "master.m3u8": Self.master(bandwidth: 300_000, size: "320x180", others: iFrames)
    ])
    #expect(try await poster(from: large, width: 320).track == .keyFrames)
  }

  @Test("The cheapest images that are large enough")
  func cheapestImages() async throws {
    let others = """
      #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=5000,RESOLUTION=80x45,URI="none.m3u8"
      #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=10000,RESOLUTION=160x90,URI="images.m3u8"
      """
    let fetcher = try fetcher(["master.m3u8": Self.master(others: others)])
    #expect(try await poster(from: fetcher).rung?.id == "images-2")
  }

  @Test("Byte ranges of one file, gaps, and single images")
  func otherPlaylists() async throws {
    let (first, second) = (try Self.sheet(0), try Self.sheet(4, count: 2))
    let ranges = Self.playlist.replacingOccurrences(
      of: "sheet-0.png", with: "#EXT-X-BYTERANGE:\(first.count)@0\nsheets"
    ).replacingOccurrences(of: "sheet-1.png", with: "#EXT-X-BYTERANGE:\(second.count)\nsheets")
    let ranged = try fetcher(["images.m3u8": Array(ranges.utf8), "sheets": first + second])
    #expect(try await storyboard(from: ranged).pixels == (0..<6).map { Self.pixels($0) })

    let gaps = Self.playlist.replacingOccurrences(of: "#EXTINF:4", with: "#EXT-X-GAP\n#EXTINF:4")
    let gap = try fetcher(["images.m3u8": Array(gaps.utf8)])
    #expect(try await storyboard(from: gap).times == [4, 5])
    #expect(times(try await poster(from: gap)) == [4, 5])

    var single = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-IMAGES-ONLY\n"
    var files: [String: [UInt8]] = [:]
    for index in 0..<3 {
      single += "#EXTINF:2,\nimage-\(index).png\n"
      files["image-\(index).png"] = try Self.sheet(index, columns: 1, rows: 1)
    }
    files["images.m3u8"] = Array((single + "#EXT-X-ENDLIST\n").utf8)
    let images = try await storyboard(from: fetcher(files))
    #expect(images.times == [0, 2, 4] && images.pixels == (0..<3).map { Self.pixels($0) })
  }

  @Test("An image playlist without its master")
  func alone() async throws {
    for width in [nil, 80, 160, 1000] {
      let fetcher = try fetcher()
      let poster = try await poster(.best(of: 6), "images.m3u8", from: fetcher, width: width)
      #expect(poster.track == .images && times(poster).count == 6)
    }
    #expect(try await storyboard("images.m3u8", from: fetcher(), width: 320).pixels.count == 6)
    let fetcher = try fetcher()
    for choice in [Poster.Choice.first, .at(.zero)] {
      let error = await #expect(throws: ReelError.self) {
        _ = try await poster(choice, "images.m3u8", from: fetcher)
      }
      #expect(error?.kind == .unsupported && error?.reason == "it contains only images, no video")
    }
    let error = await #expect(throws: ReelError.self) {
      _ = try await extract(.first, from: source("images.m3u8"), fetcher: fetcher)
    }
    #expect(error?.reason == "it contains only images, no video" && error?.advice != nil)
    #expect(names(fetcher).allSatisfy { $0 == "images.m3u8" })
  }

  /// The playlist with other lines in place of some, and with images after the last one.
  private static func playlist(_ replaced: String = "", by other: String = "", more: String = "") -> [UInt8] {
    var text = playlist
    if !replaced.isEmpty { text = text.replacingOccurrences(of: replaced, with: other) }
    return Array(text.replacingOccurrences(of: "#EXT-X-ENDLIST", with: more + "#EXT-X-ENDLIST").utf8)
  }

  @Test("Tiles after the end of the video are not looked for")
  func beyondEnd() async throws {
    let surplus = (2..<5).map { "#EXTINF:4,\nsheet-\($0).png\n" }.joined()
    let long = Self.playlist("#EXTINF:2", by: "#EXTINF:4", more: surplus)
    let fetcher = try fetcher(["images.m3u8": long])
    let made = try await storyboard(from: fetcher)
    #expect(made.times == [0, 1, 2, 3, 4, 5] && made.storyboard.duration == 6000)
    #expect(made.storyboard.track == .images && made.storyboard.missing.isEmpty)
    let poster = try await poster(.best(of: 20), from: fetcher)
    #expect(times(poster) == [0, 1, 2, 3, 4, 5] && poster.faults.isEmpty)
    #expect(Set(names(fetcher)) == Set(Self.requests))
  }

  @Test("If no playlist says how long the video is, the images do")
  func unknownEnd() async throws {
    for fault in [FixtureFetcher.Fault.error(ReelError(.server, "404 Not Found", status: 404)), .never] {
      let fetcher = try fetcher(faults: ["low/playlist.m3u8": fault])
      #expect(try await storyboard(from: fetcher).times == [0, 1, 2, 3, 4, 5])
      try await until { fetcher.underWayCount == 0 }
    }
    // Stills of a live presentation are key frames.
    let live = String(decoding: try Fixtures.bytes("stills/low/playlist.m3u8"), as: UTF8.self)
      .replacingOccurrences(of: "#EXT-X-ENDLIST", with: "")
      .replacingOccurrences(of: "#EXT-X-PLAYLIST-TYPE:VOD", with: "")
    let made = try await storyboard(from: fetcher(["low/playlist.m3u8": Array(live.utf8)]))
    #expect(made.storyboard.isLive && made.storyboard.track == .video)
  }

  @Test("Images that end long before the video are not taken")
  func early() async throws {
    let short = Self.playlist(
      "#EXTINF:2,\n#EXT-X-TILES:RESOLUTION=160x90,LAYOUT=2x2,DURATION=1\nsheet-1.png\n")
    let fetcher = try fetcher(["images.m3u8": short])
    let made = try await storyboard(from: fetcher)
    #expect(made.times.count == 6 && made.storyboard.track == .video)
    #expect(
      made.storyboard.faults.first?.reason
        == "the images of 'images-0' can't be used, so key frames are: the images end at 4 s, and the video ends at 6 s"
    )
    // A last image that is missing by intention does not count.
    let gap = Self.playlist("#EXTINF:2,", by: "#EXT-X-GAP\n#EXTINF:2,")
    #expect(try await storyboard(from: self.fetcher(["images.m3u8": gap])).times == [0, 1, 2, 3])
  }

  @Test(
    "A layout that can't be used",
    arguments: [
      ("LAYOUT=0x0", "'0x0'"), ("LAYOUT=100000x100000", "'100000x100000'"), ("LAYOUT=abc", "'abc'"),
      ("X=1", "the tile layout is missing"), ("LAYOUT=1x2", "does not hold 1x2 tiles of about 160x90"),
      ("LAYOUT=5x1", "does not hold 5x1 tiles"),
    ])
  func layouts(layout: String, reason: String) async throws {
    let fetcher = try fetcher(["images.m3u8": Self.playlist("LAYOUT=2x2", by: layout)])
    let made = try await storyboard(from: fetcher)
    #expect(made.times == [0, 1, 2, 3, 4, 5] && made.storyboard.track == .video)
    #expect(made.storyboard.faults.count == 1)
    #expect(made.storyboard.faults.first?.reason.contains(reason) == true, "\(made.storyboard.faults)")
    let poster = try await poster(from: fetcher)
    #expect(poster.track == .video && poster.imageFault?.reason.contains(reason) == true)
    for isPoster in [true, false] {
      let error = await #expect(throws: ReelError.self) {
        if isPoster {
          _ = try await self.poster(.best(of: 6), "images.m3u8", from: fetcher)
        } else {
          _ = try await storyboard("images.m3u8", from: fetcher)
        }
      }
      #expect(error?.reason.contains(reason) == true && [.badManifest, .badMedia].contains(error?.kind))
    }
  }

  @Test("Durations of nothing, and of almost nothing", arguments: ["0", "0.000000001"])
  func noDuration(text: String) async throws {
    let many = (0..<2000).map { "#EXTINF:\(text),\nsheet-\($0).png\n" }.joined()
    let playlist =
      "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-TILES:LAYOUT=2x2,RESOLUTION=160x90,DURATION=0\n\(many)#EXT-X-ENDLIST"
    let fetcher = try fetcher(["images.m3u8": Array(playlist.utf8)])
    let made = try await storyboard("images.m3u8", from: fetcher)
    #expect(made.times.count == 1 && made.storyboard.missing.isEmpty)
  }

  @Test("Images that are encrypted as a whole")
  func encrypted() async throws {
    let fetcher = FixtureFetcher()
    let extractor = PosterExtractor(
      fetcher: fetcher, configuration: LoadingConfiguration(), size: nil, gate: nil, logger: silentLogger)
    let source = try MediaSource(argument: "http://stills.test/hls-aes128/images.m3u8")
    let poster = try await extractor.poster(.best(of: 1), of: source) { _ in }.poster
    let clear = try ImageSheet(decoding: Fixtures.bytes("posters/poster.jpg"), name: "", logger: silentLogger)
    #expect(try poster.frame.frame.decoded.md5() == clear.part(x: 0, y: 0, size: clear.size).md5())
    #expect(names(fetcher).sorted() == ["image.jpg", "images.m3u8", "key.bin"])
    // With another key, and with samples that are encrypted.
    for (method, key) in [("AES-128", "other.bin"), ("SAMPLE-AES", "key.bin")] {
      let playlist = Self.playlist("#EXTINF:4", by: "#EXT-X-KEY:METHOD=\(method),URI=\"\(key)\"\n#EXTINF:4")
      let fetcher = try self.fetcher([
        "images.m3u8": playlist, "other.bin": Array("another-fix-key!".utf8),
        "key.bin": Array("another-fix-key!".utf8),
      ])
      let made = try await storyboard(from: fetcher)
      #expect(made.times.count == 6 && made.storyboard.track == .video)
      let reason = try #require(made.storyboard.faults.first?.reason)
      #expect(reason.contains("crypt"), "\(reason)")
    }
  }

  // MARK: DASH

  @Test("Tiles before the start of a period are left out, and one that reaches into it begins with it")
  func beforePeriod() async throws {
    let files = ["sheet-1.png": try Self.sheet(4)]
    func timeline(_ offset: Int) -> [UInt8] {
      Self.mpd(
        Self.imageSet(
          """
          <SegmentTemplate media="sheet-$Number$.png" startNumber="0" timescale="2" presentationTimeOffset="\(offset)">
          <SegmentTimeline><S t="0" d="8" r="1"/></SegmentTimeline></SegmentTemplate>
          """))
    }
    let whole = try await storyboard(
      "images.mpd", from: fetcher(files.merging(["images.mpd": timeline(4)]) { $1 }))
    #expect(whole.times == [0, 1, 2, 3, 4, 5] && whole.pixels == (2..<8).map { Self.pixels($0) })
    let half = try await storyboard(
      "images.mpd", from: fetcher(files.merging(["images.mpd": timeline(5)]) { $1 }), every: 0.5)
    #expect(half.times == [0, 0.5, 1.5, 2.5, 3.5, 4.5] && half.pixels == (2..<8).map { Self.pixels($0) })
    let poster = try await poster(
      .best(of: 6), "images.mpd", from: fetcher(files.merging(["images.mpd": timeline(4)]) { $1 }))
    #expect(times(poster).min() == 0)
  }

  @Test("One image for all, with and without a duration of the presentation")
  func dashFile() async throws {
    let images = """
      <AdaptationSet contentType="image" mimeType="image/png"><Representation id="t" width="320" height="180">
      <BaseURL>sheet-0.png</BaseURL>
      <EssentialProperty schemeIdUri="http://dashif.org/thumbnail_tile" value="2x2"/></Representation></AdaptationSet>
      """
    let fetcher = try fetcher(["images.mpd": Self.mpd(images)])
    #expect(try await storyboard("images.mpd", from: fetcher).times == [0, 1.5, 3, 4.5])
    let endless = String(decoding: Self.mpd(images, video: ""), as: UTF8.self)
      .replacingOccurrences(of: #" mediaPresentationDuration="PT6S""#, with: "")
    let alone = try self.fetcher(["images.mpd": Array(endless.utf8)])
    #expect(try await storyboard("images.mpd", from: alone).times == [0])
  }

  @Test("A layout of an MPD that can't be read")
  func dashLayout() async throws {
    for layout in ["0x0", "abc", "100000x100000"] {
      let images = Self.imageSet(
        #"<SegmentTemplate media="sheet-$Number$.png" startNumber="0" duration="4"/>"#, layout: layout)
      let fetcher = try fetcher([
        "images.mpd": Self.mpd(images), "alone.mpd": Self.mpd(images, video: ""),
        "both.mpd": Self.mpd(
          images
            + Self.imageSet(#"<SegmentTemplate media="sheet-$Number$.png" startNumber="0" duration="4"/>"#)),
      ])
      let made = try await storyboard("images.mpd", from: fetcher)
      #expect(made.times.count == 6 && made.storyboard.track == .video)
      #expect(made.storyboard.faults.first?.reason.contains("'\(layout)'") == true)
      let error = await #expect(throws: ReelError.self) {
        _ = try await storyboard("alone.mpd", from: fetcher)
      }
      #expect(error?.kind == .badManifest && error?.reason.contains("'\(layout)'") == true)
      #expect(try await storyboard("both.mpd", from: fetcher).storyboard.track == .images)
    }
  }

  @Test(
    "Tiles of a template, of a list, and of a timeline",
    arguments: [
      #"<SegmentTemplate media="sheet-$Number$.png" startNumber="0" duration="4"/>"#,
      #"<SegmentTemplate media="sheet-$Number$.png" startNumber="0" timescale="1000" duration="4000"/>"#,
      #"<SegmentList duration="4"><SegmentURL media="sheet-0.png"/><SegmentURL media="sheet-1.png"/></SegmentList>"#,
      """
      <SegmentTemplate media="sheet-$Number$.png" startNumber="0"><SegmentTimeline><S t="0" d="4" r="1"/>
      </SegmentTimeline></SegmentTemplate>
      """,
      """
      <SegmentTemplate media="sheet-$Number$.png" startNumber="0"><SegmentTimeline><S t="0" d="4"/><S d="2"/>
      </SegmentTimeline></SegmentTemplate>
      """,
    ])
  func dash(segments: String) async throws {
    let fetcher = try fetcher(["images.mpd": Self.mpd(Self.imageSet(segments))])
    let made = try await storyboard("images.mpd", from: fetcher)
    // The last image has four places, and the presentation ends after two of them.
    #expect(made.times == [0, 1, 2, 3, 4, 5])
    #expect(made.pixels == (0..<6).map { Self.pixels($0) })
    #expect(made.storyboard.track == .images && made.storyboard.rung?.id == "thumbs")
    #expect(names(fetcher) == ["images.mpd", "sheet-0.png", "sheet-1.png"])
    let poster = try await poster(.best(of: 6), "images.mpd", from: fetcher)
    #expect(times(poster) == [0, 1, 2, 3, 4, 5] && poster.rung?.id == "thumbs")
  }

  @Test("One image a segment, without a property")
  func dashSingle() async throws {
    let images = Self.imageSet(
      #"<SegmentTemplate media="image-$Number$.png" startNumber="0" duration="3"/>"#, layout: nil)
    let fetcher = try fetcher([
      "images.mpd": Self.mpd(images), "image-0.png": try Self.sheet(0, columns: 1, rows: 1),
      "image-1.png": try Self.sheet(1, columns: 1, rows: 1),
    ])
    #expect(try await storyboard("images.mpd", from: fetcher).times == [0, 3])
  }

  @Test("A whole sheet for less than it has room for")
  func dashShort() async throws {
    let images = Self.imageSet(
      #"<SegmentTemplate media="sheet-$Number$.png" startNumber="0" duration="16"/>"#)
    let fetcher = try fetcher(["images.mpd": Self.mpd(images)])
    // Each tile lasts 4 s.
    #expect(try await storyboard("images.mpd", from: fetcher).times == [0, 4])
  }

  @Test("Periods")
  func periods() async throws {
    func period(_ number: Int, images: Bool = true) -> String {
      let set = Self.imageSet(
        #"<SegmentTemplate media="sheet-$Number$.png" startNumber="\#(number)" duration="4"/>"#)
      let video = Self.video.replacingOccurrences(
        of: #"startNumber="0""#, with: "startNumber=\"\(number * 3)\"")
      return "<Period id=\"\(number)\" duration=\"PT3S\">\(video)\(images ? set : "")</Period>"
    }
    func mpd(_ second: String) -> [UInt8] {
      Array(
        """
        <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT6S">
        \(period(0))\(second)</MPD>
        """.utf8)
    }
    let both = try await storyboard("images.mpd", from: fetcher(["images.mpd": mpd(period(1))]))
    #expect(both.times == [0, 1, 2, 3, 4, 5] && both.storyboard.track == .images)
    #expect(both.pixels.prefix(5) == ([0, 1, 2, 4, 5].map { Self.pixels($0) })[...])
    // Without images in one of them, stills would be missing.
    let one = try await storyboard("images.mpd", from: fetcher(["images.mpd": mpd(period(1, images: false))]))
    #expect(one.times.count == 6 && one.storyboard.track == .video)
  }

  @Test("An MPD with nothing but images")
  func dashAlone() async throws {
    let images = Self.imageSet(#"<SegmentTemplate media="sheet-$Number$.png" startNumber="0" duration="4"/>"#)
    let fetcher = try fetcher(["images.mpd": Self.mpd(images, video: "")])
    #expect(try await storyboard("images.mpd", from: fetcher, width: 500).pixels.count == 6)
    #expect(try await poster(.best(of: 2), "images.mpd", from: fetcher, width: nil).candidates.count == 3)
  }

  @Test("An MPD with nothing but trick mode has stills, but is not played")
  func trickModeAlone() async throws {
    let property = #"<EssentialProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>"#
    let video = Self.video.replacingOccurrences(of: "video/mp4\">", with: "video/mp4\">\(property)")
    let fetcher = try fetcher(["trick.mpd": Self.mpd("", video: video)])
    #expect(try await storyboard("trick.mpd", from: fetcher).storyboard.track == .keyFrames)
    #expect(try await poster(.best(of: 6), "trick.mpd", from: fetcher).track == .keyFrames)
    let error = await #expect(throws: ReelError.self) {
      _ = try await extract(.first, from: source("trick.mpd"), fetcher: fetcher)
    }
    #expect(
      error?.reason == "the only video is for trick mode (fast forward and rewind), which is not played")
    #expect(error?.advice != nil)
  }

  // MARK: Faults

  private func badImages() throws -> [(String, FixtureFetcher.Fault)] {
    let whole = try Self.sheet(0)
    let huge = try Self.sheet(0, columns: 1, rows: 1, tile: PixelSize(width: 16, height: 16))
    var bomb = huge
    bomb.replaceSubrange(16..<24, with: [0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff])
    return [
      ("404", .error(ReelError(.server, "404 Not Found", status: 404))),
      ("text", .bytes(Array("<html>no image</html>".utf8))), ("empty", .bytes([])),
      ("cut off", .bytes(Array(whole.prefix(whole.count / 2)))),
      ("more bytes than an image may have", .bytes(whole + [UInt8](repeating: 0, count: 33 << 20))),
      ("more pixels than an image may have", .bytes(bomb)),
      (
        "fewer pixels than tiles",
        .bytes(try Self.sheet(0, columns: 1, rows: 1, tile: PixelSize(width: 1, height: 9)))
      ),
      ("tiles that are too small", .bytes(try Self.sheet(0, tile: PixelSize(width: 80, height: 45)))),
      ("a lost connection", .cut(100)),
    ]
  }

  @Test("If the first image can't be read, key frames are, with a warning")
  func fallback() async throws {
    for (what, fault) in try badImages() {
      let fetcher = try fetcher(faults: ["sheet-0.png": fault])
      let poster = try await poster(from: fetcher)
      #expect(poster.track == .video && poster.candidates.count == 6, "\(what)")
      let reason = poster.imageFault?.reason
      #expect(
        reason?.hasPrefix("the images of 'images-0' can't be used, so key frames are: ") == true, "\(what)")
      #expect(
        poster.imageFault?.location?.hasSuffix("sheet-0.png") == true || what.hasPrefix("tiles"), "\(what)")
      #expect(poster.faults == [poster.imageFault].compactMap(\.self), "\(what)")
      let made = try await storyboard(from: fetcher)
      #expect(made.times == [0, 1, 2, 3, 4, 5] && made.storyboard.track == .video, "\(what)")
      #expect(made.storyboard.faults.count == 1 && made.storyboard.missing.isEmpty, "\(what)")
    }
  }

  @Test("If the playlist of images can't be read, key frames are, with a warning")
  func playlistFallback() async throws {
    let faults: [FixtureFetcher.Fault] = [
      .error(ReelError(.server, "404 Not Found", status: 404)), .bytes(Array("#EXTM3U\n#EXT-X-ENDLIST".utf8)),
      .bytes(
        Array(
          Self.playlist.replacingOccurrences(
            of: "#EXTINF:4", with: "#EXT-X-KEY:METHOD=AES-128,URI=\"key\"\n#EXTINF:4"
          ).utf8)),
      .bytes(
        Array(
          Self.playlist.replacingOccurrences(of: "2x2,DURATION=1", with: "1000x1000,DURATION=0.000001").utf8)),
    ]
    for fault in faults {
      let fetcher = try fetcher(faults: ["images.m3u8": fault])
      let poster = try await poster(from: fetcher)
      #expect(poster.track == .video && poster.candidates.count == 6 && poster.imageFault != nil)
      let made = try await storyboard(from: fetcher)
      #expect(made.times.count == 6 && made.storyboard.track == .video)
      #expect(made.storyboard.faults.count == 1)
    }
    // One that goes on is not read, and nothing is wrong.
    let live = Self.playlist.replacingOccurrences(of: "#EXT-X-ENDLIST", with: "")
    let poster = try await poster(from: fetcher(["images.m3u8": Array(live.utf8)]))
    #expect(poster.track == .video && poster.faults.isEmpty)
  }

  @Test("A later image that can't be read costs its own tiles")
  func laterImage() async throws {
    for (what, fault) in try badImages() where !what.hasPrefix("tiles") {
      let fetcher = try fetcher(faults: ["sheet-1.png": fault])
      let poster = try await poster(from: fetcher)
      #expect(times(poster) == [0, 1, 2, 3] && poster.track == .images, "\(what)")
      #expect(poster.faults.count == 1 && poster.imageFault == nil, "\(what)")
      let made = try await storyboard(from: fetcher)
      #expect(made.times == [0, 1, 2, 3] && made.storyboard.missing.map(\.slot) == [4, 5], "\(what)")
      let found = made.storyboard.missing.first?.error
      #expect(found?.location?.hasSuffix("sheet-1.png") == true, "\(what): \(String(describing: found))")
    }
  }

  @Test("A last image that has only the tiles it needs")
  func cutSheet() async throws {
    let last = try Self.sheet(4, count: 2, columns: 2, rows: 1)
    let made = try await storyboard(from: fetcher(["sheet-1.png": last]))
    #expect(made.pixels == (0..<6).map { Self.pixels($0) })
  }

  @Test("Without video, the error of the images is that of the source")
  func failureAlone() async throws {
    for (what, fault) in try badImages() where !what.hasPrefix("tiles") {
      let fetcher = try fetcher(faults: ["sheet-0.png": fault, "sheet-1.png": fault])
      for isPoster in [true, false] {
        let error = await #expect(throws: ReelError.self, "\(what)") {
          if isPoster {
            _ = try await poster(.best(of: 6), "images.m3u8", from: fetcher)
          } else {
            _ = try await storyboard("images.m3u8", from: fetcher)
          }
        }
        #expect(error?.location?.hasSuffix("sheet-0.png") == true, "\(what): \(String(describing: error))")
      }
    }
  }

  @Test("A poster does not spend all its time on an image that never comes")
  func silentPoster() async throws {
    let clock = ManualMonotonicClock()
    let fetcher = try fetcher(faults: ["sheet-0.png": .never])
    let extractor = PosterExtractor(
      fetcher: fetcher, configuration: LoadingConfiguration(), size: .width(160), stillLimit: .seconds(30),
      clock: clock, gate: nil, logger: silentLogger)
    let making = Task { try await extractor.poster(.best(of: 6), of: source()) { _ in }.poster }
    try await until { names(fetcher).contains("sheet-0.png") }
    let url = try #require(fetcher.requests.first { $0.url.lastPathComponent == "sheet-0.png" }?.url)
    while fetcher.underWayCount(of: url) > 0 {
      clock.advance(by: .seconds(15))
      try await Task.sleep(for: .milliseconds(20))
    }
    let poster = try await making.value
    #expect(poster.track == .video && poster.imageFault?.kind == .timedOut)
  }

  // MARK: Descriptions

  private func probe(_ name: String, _ fetcher: FixtureFetcher) async throws -> SourceDescription {
    try await SourceProber(fetcher: fetcher, logger: silentLogger).probe(source(name))
  }

  @Test("A probe reads the layout of image playlists, and needs no image playlist")
  func probing() async throws {
    let fetcher = try fetcher()
    let description = try await probe("master.m3u8", fetcher)
    #expect(description.failure == nil && description.firstFrame != nil && description.faults.isEmpty)
    let tiles = description.presentation?.periods[0].trackGroups.last?.rungs.first?.tiles
    #expect(tiles?.columns == 2 && tiles?.rows == 2)
    #expect(!names(fetcher).contains { $0.hasSuffix("png") })
    let faults: [(FixtureFetcher.Fault, ReelError.Kind)] = [
      (.error(ReelError(.server, "404 Not Found", status: 404)), .server), (.never, .timedOut),
      (.bytes(Self.playlist("2x2", by: "0x0")), .badManifest),
    ]
    for (fault, kind) in faults {
      let fetcher = try self.fetcher(faults: ["images.m3u8": fault])
      let description = try await probe("master.m3u8", fetcher)
      #expect(description.failure == nil && description.firstFrame != nil)
      #expect(description.faults.map(\.kind) == [kind])
      try await until { fetcher.underWayCount == 0 }
    }
  }

  @Test("A probe of images alone succeeds", arguments: ["images.m3u8", "only.m3u8", "images.mpd"])
  func probingImages(name: String) async throws {
    let images = Self.imageSet(#"<SegmentTemplate media="sheet-$Number$.png" startNumber="0" duration="4"/>"#)
    let only = #"#EXTM3U\#n#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=1,RESOLUTION=160x90,URI="images.m3u8""#
    let fetcher = try fetcher([
      "images.mpd": Self.mpd(images, video: ""), "only.m3u8": Array(only.utf8),
    ])
    let description = try await probe(name, fetcher)
    #expect(description.failure == nil && description.firstFrame == nil && description.faults.isEmpty)
    #expect(description.presentation?.periods[0].trackGroups[0].rungs[0].tiles?.count == 4)
    #expect(description.duration == 6)
    let missing = try self.fetcher(
      ["only.m3u8": Array(only.utf8)],
      faults: ["images.m3u8": .error(ReelError(.server, "404 Not Found", status: 404))])
    #expect(try await probe("only.m3u8", missing).failure?.kind == .server)
  }

  @Test("What is played or served needs no images")
  func loading() async throws {
    let fetcher = try fetcher(faults: ["images.m3u8": .never])
    let loader = ManifestLoader(fetcher: fetcher, logger: silentLogger)
    let loaded = try await loader.load(source())
    #expect(loaded.failures.isEmpty && loaded.hasSegments)
    #expect(!names(fetcher).contains("images.m3u8"))
    // Who wants to know them does not wait for them long.
    let described = try await loader.load(source(), readsImages: true)
    #expect(described.failures.map(\.error.kind) == [.timedOut] && described.hasSegments)
    let whole = try await ManifestLoader(fetcher: self.fetcher(), logger: silentLogger)
      .load(source(), readsImages: true)
    #expect(
      whole.failures.isEmpty && whole.presentation.periods[0].trackGroups.last?.rungs[0].tiles?.count == 4)
  }

  @Test("An image that never comes costs its own tiles", arguments: ["sheet-0.png", "sheet-1.png"])
  func silence(name: String) async throws {
    let (clock, count) = (ManualMonotonicClock(), Locked(0))
    let fetcher = try fetcher(faults: [name: .never])
    let isFirst = name == "sheet-0.png"
    let making = Task {
      try await storyboard(from: fetcher, clock: clock) { count.withLock { $0 += 1 } }
    }
    try await until {
      names(fetcher).contains(name) && (isFirst || count.withLock { $0 } == 4)
    }
    let url = try #require(fetcher.requests.first { $0.url.lastPathComponent == name }?.url)
    while fetcher.underWayCount(of: url) > 0 {
      clock.advance(by: .seconds(30))
      try await Task.sleep(for: .milliseconds(20))
    }
    let made = try await making.value
    // Only the first one can be replaced.
    #expect(made.storyboard.track == (isFirst ? .video : .images))
    let faults = isFirst ? made.storyboard.faults : made.storyboard.missing.map(\.error)
    #expect(faults.first?.kind == .timedOut)
    #expect(made.times.count + made.storyboard.missing.count == 6)
    try await until { fetcher.underWayCount == 0 }
  }

  // MARK: I-frames

  @Test("A playlist of I-frames without its master: every frame, and no fault")
  func iFramesAlone() async throws {
    let extraction = try await extract(.count(0), path: "stills/i-frames.m3u8")
    #expect(extraction.report.faults.isEmpty, "\(extraction.report.faults)")
    #expect(extraction.report.damagedCount == 0)
    #expect(extraction.frames.count == 6)
  }
}
