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

  // MARK: HLS

  @Test("A poster is one of the tiles, and no media is fetched")
  func poster() async throws {
    let fetcher = try fetcher()
    let poster = try await poster(from: fetcher)
    #expect(poster.track == .images && poster.rung?.id == "images-0")
    #expect(times(poster) == [0, 1, 2, 3, 4, 5])
    #expect(poster.faults.isEmpty && poster.imageFault == nil)
    #expect(names(fetcher) == ["master.m3u8", "images.m3u8", "sheet-0.png", "sheet-1.png"])
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
    #expect(names(fetcher) == ["master.m3u8", "images.m3u8", "sheet-0.png", "sheet-1.png"])
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
      #expect(error?.kind == .unsupported && error?.reason == "it holds images only, and no video")
    }
    let error = await #expect(throws: ReelError.self) {
      _ = try await extract(.first, from: source("images.m3u8"), fetcher: fetcher)
    }
    #expect(error?.reason == "it holds images only, and no video" && error?.advice != nil)
    #expect(names(fetcher).allSatisfy { $0 == "images.m3u8" })
  }

  // MARK: DASH

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
