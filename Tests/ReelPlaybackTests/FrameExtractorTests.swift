import Foundation
import HTTPTypes
import ReelCore
import ReelFFmpeg
import ReelTesting
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelReading
@testable import ReelSources

@Suite("Extracting frames", .hangLimit)
struct FrameExtractorTests {
  @Test("The first frame of the chosen rung", arguments: PresentationCase.all, [true, false])
  func first(presentation: PresentationCase, isRemote: Bool) async throws {
    let expected = try presentation.expected()
    let extraction = try await run(.first, presentation, isRemote: isRemote)
    #expect(extraction.frames == [expected[0]])
    #expect(extraction.report.frameCount == 1)
    #expect(extraction.report.damagedCount == 0)
    #expect(extraction.report.firstFrameEnd != nil)
  }

  @Test("All frames of the chosen rung", arguments: PresentationCase.all, [true, false])
  func all(presentation: PresentationCase, isRemote: Bool) async throws {
    let expected = try presentation.expected()
    let extraction = try await run(.count(0), presentation, isRemote: isRemote)
    #expect(extraction.frames.map(\.md5) == expected.map(\.md5))
    #expect(extraction.frames.map(\.time) == expected.map(\.time))
    #expect(extraction.report.frameCount == expected.count)
    #expect(extraction.report.damagedCount == 0)
  }

  @Test("The first few frames, also beyond a segment's end", arguments: PresentationCase.all)
  func count(presentation: PresentationCase) async throws {
    let expected = try presentation.expected()
    #expect(try await run(.count(1), presentation).frames == [expected[0]])
    #expect(try await run(.count(35), presentation).frames == Array(expected.prefix(35)))
    #expect(try await run(.count(100_000), presentation).frames == expected)
  }

  @Test("The frames on show at some times, in the order of time", arguments: PresentationCase.all)
  func times(presentation: PresentationCase) async throws {
    let expected = try presentation.expected()
    let times = [0.0, 0.51, 1.02, 1.999, 2.0, 0.3, 1.5, 0.0].map { MediaTime(seconds: $0) }
      .filter { $0 < expected[expected.count - 1].time }
    let extraction = try await run(.times(times), presentation)
    #expect(extraction.frames == times.sorted().map { shown(at: $0, in: expected) })
  }

  @Test("A frame's own time names it", arguments: PresentationCase.all)
  func ownTimes(presentation: PresentationCase) async throws {
    let expected = try presentation.expected()
    let wanted = [0, 29, expected.count / 2, 45, expected.count - 1].sorted().map { expected[$0] }
    #expect(try await run(.times(wanted.reversed().map(\.time)), presentation).frames == wanted)
    // As printed with six decimals, too.
    let printed = wanted.map { MediaTime(seconds: ($0.time.seconds * 1e6).rounded() / 1e6) }
    #expect(try await run(.times(printed), presentation).frames == wanted)
  }

  @Test("A frame at every step", arguments: PresentationCase.all)
  func every(presentation: PresentationCase) async throws {
    let expected = try presentation.expected()
    let step = MediaTime(value: 7, timescale: 20)
    let end = expected[expected.count - 1].time
    var wanted: [Shown] = []
    var time = MediaTime.zero
    while time <= end {
      wanted.append(shown(at: time, in: expected))
      time = time + step
    }
    let extraction = try await run(.every(step), presentation)
    #expect(Array(extraction.frames.prefix(wanted.count)) == wanted)
    // One more may fall within the time that the last frame is on show.
    #expect(extraction.frames.count - wanted.count <= 1)
  }

  @Test(
    "An interval that is not greater than 0 is refused before anything is read", arguments: [Int64(0), -1])
  func noInterval(value: Int64) async throws {
    let error = await reelError {
      _ = try await extract(.every(MediaTime(value: value, timescale: 1)), path: "none.mp4")
    }
    #expect(error?.kind == .usage)
    #expect(error?.location == "none.mp4" || error?.location?.hasSuffix("/none.mp4") == true)
  }

  @Test(
    "A time behind the end is an error that says so",
    arguments: [
      "hls-ts/master.m3u8", "dash-number/manifest.mpd", "media/h264-faststart.mp4", "media/h264.ts",
    ])
  func afterEnd(path: String) async throws {
    let error = await reelError {
      _ = try await extract(.times([MediaTime(value: 100, timescale: 1)]), path: path)
    }
    #expect(error?.kind == .usage)
    #expect(error?.reason.contains("100") == true)
  }

  @Test(
    "Files of every container",
    arguments: [
      "h264-faststart.mp4", "h264-moov-last.mp4", "h264-fragmented.mp4", "h264-fragmented-sidx.mp4",
      "h264.ts",
      "h264.flv", "h264.mkv", "vp9.webm", "av1.mp4", "hevc-hvc1.mp4", "hevc.ts", "editlist.mp4",
      "editlist-bframes.mp4", "h264-quicktime.mov", "h264-open-gop-mid.ts", "h264-one-frame.mp4",
      "annexb.h264", "annexb-bframes.h264", "annexb.hevc", "hevc-hev1-inband.mp4", "h264-avc3-inband.mp4",
      "annexb-recovery-point.h264", "annexb-no-sets.h264", "h264-tracks-last.mkv", "container-rows.mp4",
      "mpeg1.mpg", "mpeg2.mpg", "mpeg2-ac3.vob", "mpeg2-interlaced.mpg", "mpeg2.ts", "mpeg2-422.mov",
      "mpeg4.avi", "mpeg4-packed.avi", "mpeg4.mp4", "mpeg4.ts", "h263.3gp", "h263-plus.avi", "flv1.flv",
      "vp8.webm", "mjpeg.avi", "mjpeg-422.mov", "prores.mov", "prores-alpha.mov",
    ], [true, false])
  func files(name: String, isRemote: Bool) async throws {
    let golden = try Golden(name).frames.map(\.md5)
    let presentation = PresentationCase(path: "media/\(name)", parts: [])
    #expect(try await run(.first, presentation, isRemote: isRemote).frames.map(\.md5) == [golden[0]])
    #expect(try await run(.count(0), presentation, isRemote: isRemote).frames.map(\.md5) == golden)
  }

  @Test(
    "Times in a file",
    arguments: [
      "h264-gops.mp4", "h264-moov-last.mp4", "h264.mkv", "h264-fragmented.mp4", "h264.ts", "h264.flv",
      "hevc-gops.mp4", "mpeg4.mp4", "mpeg4.avi", "mpeg2.mpg", "mpeg2.ts", "vp8.webm",
    ], [true, false])
  func fileTimes(name: String, isRemote: Bool) async throws {
    let golden = try Golden(name)
    // All formats but MP4 and Matroska count from their first frame.
    let origin =
      [".ts", ".flv", ".avi", ".mpg"].contains { name.hasSuffix($0) } ? golden.frames[0].ticks : 0
    let expected = golden.frames.map { Shown(time: golden.time($0.ticks - origin), md5: $0.md5) }
    let times = [0.7, 0.2, 0.55, 0.0].map { MediaTime(seconds: $0) }
    let presentation = PresentationCase(path: "media/\(name)", parts: [])
    let extraction = try await run(.times(times), presentation, isRemote: isRemote)
    #expect(extraction.frames.map(\.md5) == times.sorted().map { shown(at: $0, in: expected).md5 })
  }

  @Test("An index at the end, and a server that serves no ranges: the file is kept for the time being")
  func withoutRanges() async throws {
    let before = try spooledFiles()
    let configuration = Origin.Configuration(directory: Fixtures.folder, supportsRanges: false)
    try await Origin.use(configuration) { origin in
      let golden = try Golden("h264-moov-last.mp4").frames.map(\.md5)
      let source = try origin.source("media/h264-moov-last.mp4")
      #expect(try await extract(.count(0), from: source).frames.map(\.md5) == golden)
      #expect(origin.requestLog.count == 1)
    }
    // It goes with the last of what the extraction held.
    try await until { try spooledFiles().subtracting(before).isEmpty }
  }

  @Test("An index at the end, and a server that never states the size: the file is kept for the time being")
  func withoutSize() async throws {
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder)) { origin in
      let golden = try Golden("h264-moov-last.mp4").frames.map(\.md5)
      let source = try origin.source("media/h264-moov-last.mp4")
      let extraction = try await extract(.count(0), from: source, fetcher: SizelessFetcher())
      #expect(extraction.frames.map(\.md5) == golden)
    }
  }

  @Test("Byte ranges from a server that serves none")
  func byteRangesWithoutRanges() async throws {
    let configuration = Origin.Configuration(directory: Fixtures.folder, supportsRanges: false)
    try await Origin.use(configuration) { origin in
      for (path, golden) in [
        ("hls-byterange-ts/index.m3u8", "hls-byterange-ts"),
        ("hls-byterange-fmp4/index.m3u8", "hls-byterange-fmp4"),
        ("dash-segmentlist/manifest.mpd", "dash-number-1"),
      ] {
        let extraction = try await extract(.count(0), from: origin.source(path))
        #expect(extraction.frames.map(\.md5) == (try Golden(golden)).frames.map(\.md5), "\(path)")
      }
    }
  }

  @Test("Compressed manifests")
  func gzip() async throws {
    let faults = try FaultRule.parse("*.m3u8=gzip,*.mpd=gzip")
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      for (path, golden) in [
        ("hls-ts/master.m3u8", "hls-ts-high"), ("dash-number/manifest.mpd", "dash-number-1"),
      ] {
        let extraction = try await extract(.first, from: origin.source(path))
        #expect(extraction.frames.map(\.md5) == [(try Golden(golden)).frames[0].md5])
      }
    }
  }

  @Test("A redirected manifest: its segments are relative to where it came from")
  func redirect() async throws {
    let faults = try FaultRule.parse("start.m3u8=redirect:/hls-ts/master.m3u8")
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let extraction = try await extract(.first, from: origin.source("start.m3u8"))
      #expect(extraction.frames.map(\.md5) == [(try Golden("hls-ts-high")).frames[0].md5])
    }
  }

  @Test("A connection that breaks in mid-segment is taken up where it broke")
  func brokenTransfer() async throws {
    let faults = try FaultRule.parse("segment-*.ts=close:9000x1,segment-1.ts=close:3000x1")
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let extraction = try await extract(.count(0), from: origin.source("hls-ts/master.m3u8"))
      #expect(extraction.frames.map(\.md5) == (try Golden("hls-ts-high")).frames.map(\.md5))
      #expect(extraction.report.damagedCount == 0)
    }
  }

  @Test("A report tells rung, bytes and requests by stage")
  func report() async throws {
    try await Origin.use { origin in
      let extraction = try await extract(.first, from: origin.source("hls-fmp4/master.m3u8"))
      let report = extraction.report
      #expect(report.rungBitsPerSecond == 900_000)
      #expect(report.startup[.open].requestCount == 1)
      #expect(report.startup[.manifest].requestCount == 1)
      #expect(report.startup[.initialization].requestCount == 1)
      #expect(report.startup[.initialization].byteCount == 847)
      #expect(report.startup[.segment].requestCount == 1)
      #expect(report.startup[.segment].byteCount > 1000)
      // Without the time that threads waited for a core, little may be left.
      #expect(report.startup[.decode].duration >= .zero && report.startup.total >= .zero)
      // The init segment and what of the first segment came before its first frame's end.
      #expect(try #require(report.firstFrameEnd) < 847 + 13977)
    }
    let file = try await extract(.first, path: "media/h264-faststart.mp4").report
    #expect(file.rungBitsPerSecond == nil)
  }

  @Test("What the handler throws ends the extraction")
  func handlerError() async throws {
    struct Full: Error {}
    let extractor = FrameExtractor(fetcher: makeFetcher(), logger: silentLogger)
    let source = try MediaSource(argument: Fixtures.folder.appending(path: "media/h264.ts").path)
    let count = Locked(0)
    await #expect(throws: Full.self) {
      try await extractor.extract(.count(0), from: source) { _ in
        let seen = count.withLock { count in
          count += 1
          return count
        }
        if seen == 3 { throw Full() }
      }
    }
    #expect(count.withLock { $0 } == 3)
  }

  @Test(
    "Cancelling ends at once, wherever it waits",
    arguments: [
      "master.m3u8=silence", "index.m3u8=stall:50", "segment-0.ts=silence", "segment-0.ts=stall:500",
      "segment-1.ts=stall:4000",
    ])
  func cancellation(fault: String) async throws {
    let configuration = Origin.Configuration(directory: Fixtures.folder, faults: try FaultRule.parse(fault))
    try await Origin.use(configuration) { origin in
      let source = try origin.source("hls-ts/master.m3u8")
      let task = Task { try await extract(.count(0), from: source) }
      let name = fault.prefix { $0 != "=" }
      await origin.wait { snapshot in
        snapshot.requests.contains { $0.path.hasSuffix(name) && ($0.status == nil || $0.bodyBytesSent > 0) }
      }
      task.cancel()
      await #expect(throws: CancellationError.self) { _ = try await task.value }
    }
  }

  @Test("A cancelled reader of images gets an error, while it waits and between images")
  func cancelledImages() async throws {
    let url = try #require(URL(string: "http://fixtures.test/hls-ts/master.m3u8"))
    let held = FixtureFetcher { _, _ in .hold }
    let waiting = Task {
      for try await _ in FrameExtractor(fetcher: held, logger: silentLogger).images(at: [.first], of: url) {}
    }
    try await until { !held.keys.isEmpty }
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    let extractor = FrameExtractor(fetcher: FixtureFetcher(), logger: silentLogger)
    let between = Task {
      for try await _ in extractor.images(at: (0..<20).map { MediaTime(value: $0, timescale: 10) }, of: url) {
        withUnsafeCurrentTask { $0?.cancel() }
      }
    }
    await #expect(throws: CancellationError.self) { try await between.value }
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await FrameExtractor(fetcher: held, logger: silentLogger).image(at: .first, of: url)
    }
    await #expect(throws: CancellationError.self) { try await cancelled.value }
  }

  @Test("Sources of many kinds at once, with two permits")
  func concurrency() async throws {
    try await Origin.use { origin in
      let cores = CoreGate(permits: 2)
      let extractor = FrameExtractor(
        TrackOpener(
          fetcher: makeFetcher(), configuration: LoadingConfiguration(), cores: cores, logger: silentLogger))
      let cases = PresentationCase.all.filter { $0.peakBitRate == nil }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for presentation in cases + cases + cases {
          group.addTask {
            let seen = Locked<[String]>([])
            try await extractor.extract(.count(3), from: origin.source(presentation.path)) { frame in
              let md5 = try frame.md5()
              seen.withLock { $0.append(md5) }
            }
            let expected = try presentation.expected().prefix(3).map(\.md5)
            #expect(seen.withLock { $0 } == Array(expected), "\(presentation.path)")
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test("Of many extractions a few run at a time; one that waits ends at once when it is cancelled")
  func limit() async throws {
    let url = try #require(URL(string: "http://fixtures.test/media/h264.ts"))
    let (fetcher, limit) = (FixtureFetcher { _, _ in .hold }, CoreGate(permits: 3))
    let extractor = FrameExtractor(
      TrackOpener(
        fetcher: fetcher, configuration: LoadingConfiguration(), limit: limit, logger: silentLogger))
    let extractions = (0..<40).map { _ in Task { try await extractor.image(at: .first, of: url) } }
    try await until { fetcher.underWayCount == 3 && limit.isContended }
    let cancelled = Task { try await extractor.image(at: .first, of: url) }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    #expect(fetcher.requests.count == 3)
    // A sequence whose reader pauses keeps nobody waiting.
    let times = (0..<9).map { MediaTime(value: $0, timescale: 10) }
    fetcher.release()
    let sequences = (0..<4).map { _ in extractor.images(at: times, of: url) }
    for extraction in extractions { _ = try await extraction.value }
    for sequence in sequences {
      var count = 0
      for try await _ in sequence { count += 1 }
      #expect(count == times.count)
    }
  }

  @Test("The wait for a core is told apart from the start-up time", arguments: [true, false])
  func queue(isRemote: Bool) async throws {
    try await Origin.use { origin in
      let (cores, clock) = (CoreGate(permits: 1), SystemMonotonicClock())
      let extractor = FrameExtractor(
        TrackOpener(
          fetcher: makeFetcher(), configuration: LoadingConfiguration(), cores: cores, logger: silentLogger))
      let path = "hls-ts/master.m3u8"
      let source = try isRemote ? origin.source(path) : MediaSource(argument: Fixtures.path(path))
      cores.acquire()
      let start = clock.now
      async let extraction = extractor.extract(.first, from: source) { _ in }
      try await until { cores.isContended }
      let queued = clock.now
      // Nothing is asked for before there is a core.
      #expect(origin.requestLog.isEmpty)
      let held = clock.now - queued
      cores.release()
      let startup = try await extraction.startup
      #expect(startup.queued >= held)
      #expect(startup.total + startup.queued <= clock.now - start)
      #expect(startup.total >= .zero && startup[.decode].duration >= .zero)
    }
  }

  // MARK: - Private

  private func run(
    _ selection: FrameSelection, _ presentation: PresentationCase, isRemote: Bool = false
  ) async throws -> Extraction {
    guard isRemote else {
      return try await extract(selection, path: presentation.path, peakBitRate: presentation.peakBitRate)
    }
    return try await Origin.use { origin in
      try await extract(
        selection, from: origin.source(presentation.path), peakBitRate: presentation.peakBitRate)
    }
  }

  private func spooledFiles() throws -> Set<String> {
    let names = try FileManager.default.contentsOfDirectory(
      atPath: FileManager.default.temporaryDirectory.path)
    return Set(names.filter { $0.hasSuffix(".spool") })
  }

  /// The last frame that begins at or before `time`; before the first, the first.
  private func shown(at time: MediaTime, in frames: [Shown]) -> Shown {
    frames.last { $0.time <= time } ?? frames[0]
  }
}

@Suite("Requests for frames", .hangLimit)
struct FrameExtractorRequestTests {
  private func paths(_ origin: Origin) -> [String] { origin.requestLog.map(\.path) }

  @Test(
    "The manifests, the init segment and the first segment of one rung, and nothing else",
    arguments: [
      ["hls-ts/master.m3u8", "hls-ts/high/index.m3u8", "hls-ts/high/segment-0.ts"],
      [
        "hls-fmp4/master.m3u8", "hls-fmp4/high/index.m3u8", "hls-fmp4/high/init.mp4",
        "hls-fmp4/high/segment-0.m4s",
      ],
      ["dash-gpac/multirate.mpd", "dash-gpac/video_8000k_init.mp4", "dash-gpac/video_8000k_1.mp4"],
      // A file whose index is not needed.
      ["dash-ondemand/manifest.mpd", "dash-ondemand/high.mp4"],
    ])
  func first(expected: [String]) async throws {
    try await Origin.use { origin in
      _ = try await extract(.first, from: origin.source(expected[0]))
      let found = paths(origin).map { String($0.dropFirst()) }
      #expect(found.count == expected.count)
      // The last two may be requested at the same time.
      #expect(found.dropLast(2) == expected.dropLast(2))
      #expect(Set(found.suffix(2)) == Set(expected.suffix(2)))
    }
  }

  @Test("Byte ranges are asked for as such")
  func byteRanges() async throws {
    try await Origin.use { origin in
      _ = try await extract(.first, from: origin.source("hls-byterange-fmp4/index.m3u8"))
      let ranges = origin.requestLog.filter { $0.path.hasSuffix("media.mp4") }.map(\.range)
      #expect(Set(ranges) == ["bytes=0-846", "bytes=847-17088"])
      #expect(origin.requestLog.count == 3)
    }
  }

  @Test("All frames take each segment once, in order")
  func allSegments() async throws {
    try await Origin.use { origin in
      _ = try await extract(.count(0), from: origin.source("hls-ts/master.m3u8"))
      #expect(
        paths(origin).dropFirst(2) == [
          "/hls-ts/high/segment-0.ts", "/hls-ts/high/segment-1.ts", "/hls-ts/high/segment-2.ts",
        ])
    }
  }

  @Test(
    "A late time takes its own segment only",
    arguments: ["hls-ts/master.m3u8", "dash-number/manifest.mpd", "dash-ondemand/manifest.mpd"])
  func lateTime(path: String) async throws {
    try await Origin.use { origin in
      _ = try await extract(.times([MediaTime(value: 5, timescale: 2)]), from: origin.source(path))
      #expect(!paths(origin).contains { $0.hasSuffix("segment-0.ts") || $0.hasSuffix("segment-00001.m4s") })
      #expect(!paths(origin).contains { $0.contains("low") || $0.contains("/0/") })
      // In a single file, nothing of the first two segments.
      let early = origin.requestLog.filter { record in
        record.path.hasSuffix("high.mp4") && record.range == nil
      }
      #expect(early.isEmpty)
    }
  }

  @Test(
    "Init and first segment are asked for at the same time, over two connections", .hangLimit,
    arguments: ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd"])
  func parallelInit(path: String) async throws {
    // Neither is answered: whoever waits for one before asking for the other never asks.
    let faults = try FaultRule.parse("*init.mp4=silence,*.m4s=silence")
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let source = try origin.source(path)
      let task = Task { try await extract(.first, from: source) }
      let snapshot = await origin.wait { snapshot in
        ["init.mp4", ".m4s"].allSatisfy { name in snapshot.requests.contains { $0.path.hasSuffix(name) } }
      }
      task.cancel()
      await #expect(throws: CancellationError.self) { _ = try await task.value }
      let initialization = try #require(snapshot.requests.first { $0.path.hasSuffix("init.mp4") })
      let segment = try #require(snapshot.requests.first { $0.path.hasSuffix(".m4s") })
      #expect(initialization.connection != segment.connection)
    }
  }

  @Test(
    "The transfer is cut when the frame is there",
    arguments: [
      ("hls-ts/master.m3u8", "high/segment-0.ts"), ("hls-fmp4/master.m3u8", "high/segment-0.m4s"),
      ("dash-number/manifest.mpd", "1/segment-00001.m4s"), ("dash-ondemand/manifest.mpd", "high.mp4"),
      ("media/h264-faststart.mp4", "h264-faststart.mp4"), ("media/h264.ts", "h264.ts"),
      ("media/h264-fragmented.mp4", "h264-fragmented.mp4"), ("media/h264.mkv", "h264.mkv"),
    ])
  func cut(path: String, media: String) async throws {
    let folder = path.split(separator: "/")[0]
    let size = Int64(try Fixtures.bytes("\(folder)/\(media)").count)
    // A frame is 3 to 6 kB. The last third of the file never comes, so whoever waits for it gets nothing.
    let name = media.split(separator: "/").last ?? ""
    let faults = try FaultRule.parse("\(name)=stall:\(size * 2 / 3)")
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let extraction = try await extract(.first, from: origin.source(path))
      #expect(extraction.frames.count == 1)
      let records = origin.requestLog.filter { $0.path.hasSuffix(media) }
      #expect(records.count == 1)
      #expect(records.first?.isComplete == false)
      await origin.wait { $0.openConnectionCount < $0.acceptedConnectionCount }
    }
  }

  @Test("An index at the end of a large file is fetched by range, not with all that stands before it")
  func indexLast() async throws {
    // The media box is made larger by what no sample refers to.
    var bytes = try Fixtures.bytes("media/h264-moov-last.mp4")
    let (mediaBox, mediaBoxSize) = (40, 21053)
    #expect(bytes[(mediaBox + 4)..<(mediaBox + 8)].elementsEqual("mdat".utf8))
    let padding = 24 << 20
    bytes.insert(contentsOf: [UInt8](repeating: 0, count: padding), at: mediaBox + mediaBoxSize)
    let size = UInt32(mediaBoxSize + padding)
    bytes.replaceSubrange(
      mediaBox..<(mediaBox + 4),
      with: (0..<4).map { UInt8(truncatingIfNeeded: size >> (24 - 8 * UInt32($0))) })
    let golden = try Golden("h264-moov-last.mp4").frames
    let configuration = Origin.Configuration(
      routes: ["/large.mp4": Origin.Response(bytes)], link: try LinkSpec(parsing: "10Mbit/10ms"))
    try await Origin.use(configuration) { origin in
      let extraction = try await extract(.first, from: origin.source("large.mp4"))
      #expect(extraction.frames.map(\.md5) == [golden[0].md5])
      let records = origin.requestLog
      try #require(!records.isEmpty)
      #expect(records[0].range == nil)
      #expect(records.count <= 3)
      #expect(records.contains { $0.range?.hasPrefix("bytes=\(mediaBox + mediaBoxSize + padding)-") == true })
      let sent = records.map(\.bodyBytesSent).reduce(0, +)
      // What the first answer's buffers hold is on its way before the index is known to be elsewhere.
      #expect(sent < 8 << 20, "\(sent) bytes")
    }
  }

  @Test("A second source reuses what connections there are")
  func reuse() async throws {
    try await Origin.use { origin in
      let fetcher = makeFetcher()
      for _ in 0..<4 {
        _ = try await extract(.count(0), from: origin.source("hls-ts/master.m3u8"), fetcher: fetcher)
      }
      // Not exactly one: a connection becomes free a moment after its response, and the next request may come before
      // that.
      #expect(origin.snapshot.acceptedConnectionCount < origin.requestLog.count / 2)
      #expect(origin.requestLog.count == 20)
    }
  }

  @Test("Headers go with every request")
  func headers() async throws {
    try await Origin.use { origin in
      var configuration = LoadingConfiguration()
      configuration.headers = [.init("X-Token")!: "secret"]
      let extractor = FrameExtractor(
        fetcher: makeFetcher(), configuration: configuration, logger: silentLogger)
      try await extractor.extract(.first, from: origin.source("hls-fmp4/master.m3u8")) { _ in }
      #expect(origin.requestLog.count == 4)
      #expect(origin.requestLog.allSatisfy { $0.header("X-Token") == "secret" })
    }
  }
}

@Suite("Sources that fail", .hangLimit)
struct FrameExtractorErrorTests {
  @Test(
    "Kind and place of what is wrong, over the network",
    arguments: [
      ("bad/html.m3u8", ReelError.Kind.badMedia, "/bad/html.m3u8", "HTML"),
      ("bad/text.mp4", .badMedia, "/bad/text.mp4", "text"),
      ("bad/empty.mp4", .badMedia, "/bad/empty.mp4", "empty"),
      ("bad/missing-segment.m3u8", .server, "/bad/missing.ts", "404"),
      ("bad/html-segment.m3u8", .badMedia, "/bad/html.m3u8", "HTML"),
      ("bad/local-file.m3u8", .badManifest, "/bad/local-file.m3u8", "local file"),
      ("bad/no-segments.m3u8", .badManifest, "/bad/no-segments.m3u8", "segment"),
      ("bad/no-period.mpd", .badManifest, "/bad/no-period.mpd", "Period"),
      ("bad/no-duration.mpd", .badManifest, "/bad/no-duration.mpd", "duration"),
      ("bad/unclosed.mpd", .badManifest, "/bad/unclosed.mpd", "line 4"),
      ("bad/entities.mpd", .badManifest, "/bad/entities.mpd", "entities"),
      ("bad/loop.m3u8", .badManifest, "/bad/loop.m3u8", "multivariant"),
      ("bad/audio-only.mpd", .unsupported, "/bad/audio-only.mpd", "no video"),
      ("bad/encrypted.mpd", .unsupported, "/bad/encrypted-cenc-fragmented.mp4", "Common Encryption"),
      ("hls-sample-aes/index.m3u8", .unsupported, "", "FairPlay"),
      ("bad/wrong-key.m3u8", .badMedia, "/hls-aes128/segment-0.ts", "key"),
      ("bad/empty-key.m3u8", .badMedia, "/bad/empty.mp4", "the key has 0 bytes, not 16"),
      ("bad/nowhere.mp4", .server, "/bad/nowhere.mp4", "404"),
      ("bad/codec-png.mp4", .unsupported, "/bad/codec-png.mp4", "png"),
      ("bad/audio-only.mp4", .badMedia, "/bad/audio-only.mp4", "no video"),
    ])
  func errors(path: String, kind: ReelError.Kind, location: String, words: String) async throws {
    try await Origin.use { origin in
      let error = await reelError { _ = try await extract(.first, from: origin.source(path)) }
      #expect(error?.kind == kind, "\(error?.description ?? "none")")
      #expect(error?.location?.hasSuffix(location) == true, "\(error?.location ?? "nowhere")")
      #expect(
        error?.description.lowercased().contains(words.lowercased()) == true,
        "\(error?.description ?? "none")")
    }
  }

  @Test("A remote manifest can't reach a local file by any way of writing it")
  func localFiles() async throws {
    let secret = FileManager.default.temporaryDirectory.appending(path: "reel-test-\(UUID().uuidString).ts")
    try Data(try Fixtures.bytes("media/h264.ts")).write(to: secret)
    defer { try? FileManager.default.removeItem(at: secret) }
    let path = secret.path
    let spellings = ["file://\(path)", "FILE://\(path)", "file:\(path)", "file://localhost\(path)"]
    for spelling in spellings {
      let playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n\(spelling)\n#EXT-X-ENDLIST\n"
      let multivariant = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(spelling)\n"
      let manifest = """
        <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1S"><Period>
        <AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1"><BaseURL>\(spelling)</BaseURL>
        </Representation></AdaptationSet></Period></MPD>
        """
      for text in [playlist, multivariant, manifest] {
        let configuration = Origin.Configuration(routes: ["/list": Origin.Response(text)])
        try await Origin.use(configuration) { origin in
          let error = await reelError { _ = try await extract(.first, from: origin.source("list")) }
          #expect(
            error?.kind == .unsupported || error?.kind == .badManifest,
            "\(spelling): \(error?.description ?? "none")")
        }
      }
    }
  }

  @Test("A redirect to a local file is refused")
  func redirectToFile() async throws {
    let faults = try FaultRule.parse("segment-*.ts=redirect:file:///etc/hostname")
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let error = await reelError { _ = try await extract(.first, from: origin.source("hls-ts/master.m3u8")) }
      #expect(error != nil)
      #expect([.server, .unsupported].contains(error?.kind), "\(error?.description ?? "none")")
    }
  }

  @Test("A segment that ends too early is an error, not an end")
  func shortSegment() async throws {
    let faults = try FaultRule.parse("segment-1.ts=close:8000")
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let golden = try Golden("hls-ts-high").frames.map(\.md5)
      let seen = Locked<[String]>([])
      let extractor = FrameExtractor(fetcher: makeFetcher(attempts: 0), logger: silentLogger)
      let source = try origin.source("hls-ts/master.m3u8")
      let error = await reelError {
        try await extractor.extract(.count(0), from: source) { frame in
          let md5 = try frame.md5()
          seen.withLock { $0.append(md5) }
        }
      }
      #expect(error?.kind == .network, "\(error?.description ?? "none")")
      #expect(error?.location?.hasSuffix("segment-1.ts") == true)
      // What came out before is sound.
      let frames = seen.withLock { $0 }
      #expect(frames == Array(golden.prefix(frames.count)))
      #expect(frames.count >= 25)
    }
  }

  @Test(
    "A segment that is of no use is left out, and told",
    arguments: ["segment-1.ts=redirect:/bad/html.m3u8", "segment-1.ts=status:404"])
  func badSegment(fault: String) async throws {
    let faults = try FaultRule.parse(fault)
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let golden = try Golden("hls-ts-high").frames.map(\.md5)
      let source = try origin.source("hls-ts/high/index.m3u8")
      let extraction = try await extract(.count(0), from: source)
      // Of the three segments, of a second each, the first and the last.
      #expect(extraction.frames.map(\.md5) == Array(golden[..<30] + golden[60...]))
      #expect(extraction.frames.last.map { $0.time.seconds > 2.9 } == true)
      #expect(extraction.report.missedSegmentCount == 1)
      #expect(extraction.report.faults.count == 1)
      #expect(extraction.report.faults.first?.location?.contains("segment-1.ts") == true)
    }
  }

  @Test("Local manifests may name local files")
  func localManifest() async throws {
    let extraction = try await extract(.first, path: "hls-discontinuity/ts.m3u8")
    #expect(extraction.frames.count == 1)
  }

  @Test("A file that is not there, and a folder")
  func localErrors() async throws {
    let missing = await reelError { _ = try await extract(.first, path: "media/nowhere.mp4") }
    #expect(missing?.kind == .noSuchFile)
    #expect(missing?.location?.hasSuffix("media/nowhere.mp4") == true)
    let folder = await reelError { _ = try await extract(.first, path: "media") }
    #expect(folder?.kind == .badMedia)
    #expect(folder?.reason.contains("directory") == true)
  }
}

/// Fetches from servers that support ranges, and state no size.
private struct SizelessFetcher: Fetching {
  private let base: any Fetching = makeFetcher()

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var response = try await base.fetch(request)
    response.resourceByteCount = nil
    response.bodyByteCount = nil
    return response
  }
}
