import Foundation
import ReelCore
import ReelFFmpeg
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelReading
@testable import ReelSources
@testable import ReelStills

@Suite("Posters", .hangLimit)
struct PosterExtractorTests {
  private func poster(
    _ choice: Poster.Choice = .best(of: 6), of source: MediaSource, fetcher: (any Fetching)? = nil,
    size: SizeLimit? = nil
  ) async throws -> Poster {
    let extractor = StillExtractor(
      TrackOpener(
        fetcher: fetcher ?? makeFetcher(), configuration: LoadingConfiguration(), logger: silentLogger),
      size: size)
    return try await extractor.poster(choice, of: source) { _ in }.poster
  }

  private func file(_ path: String) throws -> MediaSource {
    try MediaSource(argument: Fixtures.path(path))
  }

  private func times(_ poster: Poster) -> [Double] { poster.candidates.map(\.time.seconds) }

  // MARK: Choice

  @Test(
    "Black, gray, faded and blurred frames are rejected",
    arguments: [
      "stills/poor-start.mp4", "stills/poor-start-moov-last.mp4", "stills/poor-start.ts",
      "stills/master.m3u8",
    ])
  func rejection(path: String) async throws {
    let poster = try await poster(of: file(path))
    #expect(times(poster) == [0, 1, 2, 3, 4, 5])
    let flaws = poster.candidates.map(\.flaws)
    #expect(flaws[0].first == .black)
    #expect(flaws[1].first == .uniform)
    #expect(flaws[2] == [.faded])
    #expect(flaws[3] == [.blurred])
    #expect(flaws[4].isEmpty && flaws[5].isEmpty)
    #expect(poster.chosen.time.seconds >= 4)
    #expect(poster.chosen.time == poster.frame.time)
    #expect(poster.faults.isEmpty)
    #expect(poster.candidates.allSatisfy { $0.byteCount > 0 })
  }

  @Test("The candidates over HTTP are those of the file")
  func http() async throws {
    try await Origin.use { origin in
      for path in ["stills/poor-start.mp4", "stills/poor-start.ts", "stills/master.m3u8"] {
        let local = try await poster(of: file(path))
        let remote = try await poster(of: origin.source(path))
        #expect(times(remote) == times(local), "\(path)")
        #expect(remote.candidates.map(\.measures) == local.candidates.map(\.measures), "\(path)")
        #expect(remote.chosenIndex == local.chosenIndex, "\(path)")
      }
    }
  }

  @Test(
    "The candidates from a server that ignores ranges, although it claims to support them",
    arguments: ["stills/poor-start.mp4", "stills/poor-start-moov-last.mp4"])
  func ignoredRanges(path: String) async throws {
    try await Origin.use(.ignoringRanges(of: Fixtures.bytes(path), at: "/\(path)")) { origin in
      let local = try await poster(of: file(path))
      let remote = try await poster(of: origin.source(path))
      #expect(times(remote) == times(local))
      #expect(remote.candidates.map(\.measures) == local.candidates.map(\.measures))
      #expect(remote.faults.isEmpty)
    }
  }

  @Test("Without a good frame, the least bad one")
  func leastBad() async throws {
    let poster = try await poster(of: file("stills/all-poor.mp4"))
    #expect(poster.candidates.allSatisfy { !$0.flaws.isEmpty })
    #expect(poster.chosen.time.seconds == 2)
    #expect(poster.chosen.measures.score == poster.candidates.map(\.measures.score).max())
  }

  @Test("The second key frame of Matroska may be far away", arguments: ["far", "far-no-cues"])
  func farKeyFrame(name: String) async throws {
    let path = "stills/\(name).mkv"
    let local = try await poster(of: file(path))
    #expect(times(local) == [0, 40])
    #expect(local.candidates[0].flaws.first == .black)
    #expect(local.chosen.time.seconds == 40)
    try await Origin.use { origin in
      let remote = try await poster(of: origin.source(path))
      #expect(times(remote) == [0, 40])
      #expect(remote.faults.isEmpty, "\(remote.faults)")
    }
  }

  @Test("Matroska with one key frame is read once")
  func onlyKeyFrame() async throws {
    let path = "stills/one-key-frame.mkv"
    #expect(try await times(poster(of: file(path))) == [0])
    try await Origin.use { origin in
      let remote = try await poster(of: origin.source(path))
      #expect(times(remote) == [0])
      // libavformat takes an index with one entry for none, so the rest is searched. The head is read again for seeking.
      let size = try Int64(Fixtures.bytes(path).count)
      #expect(remote.traffic.readByteCount < 2 * size, "\(remote.traffic)")
    }
  }

  @Test("The first frame, and the frame at a time")
  func overrides() async throws {
    for path in ["stills/poor-start.mp4", "stills/master.m3u8"] {
      let first = try await poster(.first, of: file(path))
      #expect(times(first) == [0])
      #expect(first.chosen.flaws.first == .black)
      let none = try await poster(.best(of: 0), of: file(path))
      #expect(times(none) == [0])
      let later = try await poster(.at(MediaTime(seconds: 4.55)), of: file(path))
      #expect(times(later) == [4.5])
    }
    await #expect(throws: ReelError.self) {
      _ = try await poster(.at(MediaTime(seconds: 100)), of: file("stills/poor-start.mp4"))
    }
  }

  @Test("Key frames are decoded to the same samples as with those before them")
  func samples() async throws {
    for path in ["hevc-gops.mp4", "h264-gops.mp4", "h264.mkv", "hevc.ts", "av1.mp4", "vp9.webm", "mpeg2.ts"] {
      let source = try file("media/\(path)")
      let poster = try await poster(of: source)
      let expected = Locked<String?>(nil)
      _ = try await FrameExtractor(fetcher: makeFetcher()).extract(
        .times([poster.chosen.time]), from: source
      ) { frame in
        let md5 = try frame.md5()
        expected.withLock { $0 = md5 }
      }
      #expect(try poster.frame.md5() == expected.withLock { $0 }, "\(path)")
    }
  }

  // MARK: Silence

  @Test("A silent segment costs its own candidate", arguments: [1, 5])
  func silentSegment(index: Int) async throws {
    let (clock, name, gate) = (ManualMonotonicClock(), "segment-\(index).m4s", CallCountingGate())
    let fetcher = FixtureFetcher { request, _ in request.url.lastPathComponent == name ? .never : .none }
    let limit = Duration.seconds(5)
    let extractor = StillExtractor(
      TrackOpener(
        fetcher: fetcher, configuration: LoadingConfiguration(), gate: gate, logger: silentLogger),
      size: nil, stillLimit: limit, clock: clock)
    let source = try MediaSource(argument: "http://stills.test/stills/high/playlist.m3u8")
    async let making = extractor.poster(.best(of: 5), of: source) { _ in }.poster
    try await until { fetcher.requests.contains { $0.url.lastPathComponent == name } }
    // Once the candidates before it are decoded, nothing but the silent segment is waited for. The reader may not have
    // begun to wait yet.
    let isDone = Locked(false)
    let ticking = Task {
      while !isDone.withLock({ $0 }) {
        // Looked at first: it is not that of a wait that begins afterwards.
        let deadline = clock.nextDeadline
        if let deadline, fetcher.underWayCount == 1, gate.candidateCount == index {
          clock.advance(to: deadline)
        }
        try await Task.sleep(for: .milliseconds(20))
      }
    }
    let poster = try await making
    isDone.withLock { $0 = true }
    _ = try await ticking.value
    #expect(times(poster) == (0..<6).filter { $0 != index }.map(Double.init))
    #expect(gate.candidateCount == 5)
    // Those beside it were not given up with it.
    #expect(Set(fetcher.keys).count == fetcher.keys.count)
    #expect(poster.chosen.flaws.isEmpty)
    let fault = try #require(poster.faults.last)
    #expect(fault.kind == .timedOut && fault.location?.hasSuffix(name) == true, "\(fault)")
  }

  // MARK: Bytes

  /// The manifest, the initialization and the key frames.
  private func floor(_ poster: Poster) -> Int64 {
    let traffic = poster.traffic
    return (traffic.manifestByteCount ?? 0) + (traffic.initializationByteCount ?? 0)
      + traffic.keyFrameByteCount
  }

  @Test(
    "Of segments, little more than the key frames is read", arguments: [Poster.Choice.first, .best(of: 6)])
  func segmentBytes(choice: Poster.Choice) async throws {
    try await Origin.use { origin in
      let poster = try await poster(choice, of: origin.source("stills/master.m3u8"), size: .square(320))
      #expect(poster.rung?.id == "0")
      #expect(poster.traffic.readByteCount >= floor(poster))
      // A connection is read in steps of 8 KiB, and these frames are smaller.
      let steps = Int64(poster.candidates.count - 1) * 8192
      #expect(poster.traffic.readByteCount <= floor(poster) * 12 / 10 + 16384 + steps, "\(poster.traffic)")
    }
  }

  @Test("Of an MP4 file, the index and the key frames are read", arguments: ["", "-moov-last"])
  func fileBytes(suffix: String) async throws {
    try await Origin.use { origin in
      let source = try origin.source("stills/poor-start\(suffix).mp4")
      let poster = try await poster(of: source)
      let index: Int64 = 3000
      #expect(
        poster.traffic.readByteCount <= (floor(poster) + index) * 12 / 10 + 16384, "\(poster.traffic)")
      let requests = origin.snapshot.requests
      // A request for a key frame asks for exactly its bytes; the smallest ones are read on the way.
      #expect(requests.count { $0.range?.hasSuffix("-") == false } >= 2, "\(requests.map(\.range))")
    }
  }

  @Test("The cheapest rung that is large enough")
  func rung() async throws {
    for (size, rung) in [
      (SizeLimit.square(160), "1"), (.square(161), "0"), (.shortSide(90), "1"), (.shortSide(720), "0"),
    ] {
      let poster = try await poster(.first, of: file("stills/master.m3u8"), size: size)
      #expect(poster.rung?.id == rung, "\(size)")
    }
    // By the bit rate without a size.
    #expect(try await poster(.first, of: file("stills/master.m3u8")).rung?.id == "0")
  }

  @Test("A playlist of I-frames is read where it is large enough and no larger")
  func iFrames() async throws {
    try await Origin.use { origin in
      let source = try origin.source("stills/master-i-frames.m3u8")
      let plain = try await poster(of: file("stills/master.m3u8"), size: .square(320))
      let found = try await poster(of: source, size: .square(320))
      #expect(found.rung?.id == "i-frames-0")
      #expect(times(found) == times(plain))
      #expect(found.candidates.map(\.measures) == plain.candidates.map(\.measures))
      #expect(found.faults.isEmpty, "\(found.faults)")
      #expect(found.traffic.readByteCount <= floor(found) * 12 / 10 + 4096, "\(found.traffic)")
      #expect(try await poster(of: source, size: .square(160)).rung?.id == "1")
      #expect(try await poster(.first, of: source, size: .square(320)).rung?.id == "0")
      #expect(try await poster(of: source).rung?.id == "0")
    }
    // If it can't be read, the rung takes its place.
    try await withOrigin(faults: "stills/i-frames.m3u8=status:404") { origin in
      let found = try await poster(of: origin.source("stills/master-i-frames.m3u8"), size: .square(320))
      #expect(found.rung?.id == "0")
      #expect(found.candidates.count == 6)
    }
  }

  // MARK: Poor input

  @Test("A segment that is missing is left out")
  func missingSegment() async throws {
    try await withOrigin(faults: "stills/high/segment-2.m4s=status:404") { origin in
      let poster = try await poster(of: origin.source("stills/master.m3u8"), size: .square(320))
      #expect(poster.chosen.time.seconds >= 4)
      #expect(!poster.faults.isEmpty)
    }
  }

  private func withOrigin(faults: String, _ body: (Origin) async throws -> Void) async throws {
    let configuration = Origin.Configuration(
      directory: Fixtures.folder, faults: try FaultRule.parse(faults))
    try await Origin.use(configuration, body)
  }

  @Test(
    "Sources without a frame are errors",
    arguments: [
      ("bad/audio-only.mp4", ReelError.Kind.badMedia), ("bad/audio-only.mpd", .unsupported),
      ("bad/cut-in-moov.mp4", .badMedia), ("bad/cut-in-first-frame.mp4", .badMedia),
      ("bad/encrypted-cenc.mp4", .unsupported), ("bad/empty.mp4", .badMedia),
    ])
  func withoutFrame(path: String, kind: ReelError.Kind) async throws {
    do {
      _ = try await poster(of: file(path))
      Issue.record("a poster of \(path)")
    } catch let error as ReelError {
      #expect(error.kind == kind, "\(error)")
    }
  }

  @Test("Dolby Vision of profile 5 is refused by its name")
  func dolbyVision() async throws {
    let folder = try TemporaryFolder()
    for (profile, name) in [(UInt16(5), "five.mp4"), (8, "eight.mp4")] {
      let bytes = try dolbyVision(Fixtures.bytes("media/hevc-hev1-inband.mp4"), profile: profile)
      try folder.write(bytes, to: name)
    }
    #expect(try await poster(of: MediaSource(argument: folder.path("eight.mp4"))).candidates.count == 2)
    do {
      _ = try await poster(of: MediaSource(argument: folder.path("five.mp4")))
      Issue.record("a poster of Dolby Vision")
    } catch let error as ReelError {
      #expect(error.kind == .unsupported && error.reason.contains("Dolby Vision profile 5"), "\(error)")
    }
  }

  /// A fragmented file of HEVC with a `dvcC` box.
  private func dolbyVision(_ file: [UInt8], profile: UInt16) throws -> [UInt8] {
    var bytes = file
    func header(_ type: String) throws -> Int {
      try #require(bytes.firstRange(of: Array(type.utf8))).lowerBound - 4
    }
    func size(at offset: Int) -> Int { bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | Int($1) } }
    // Level 3, with metadata and a base layer.
    let box = mp4Box(
      "dvcC", [1, 0] + bigEndian(UInt64(profile << 9 | 0x1d), bytes: 2) + [UInt8](repeating: 0, count: 20))
    let entry = try header("hev1")
    let end = entry + size(at: entry)
    for type in ["moov", "trak", "mdia", "minf", "stbl", "stsd", "hev1"] {
      // The brand hev1 would come before moov.
      let offset = try header(type)
      bytes.replaceSubrange(
        offset..<(offset + 4), with: bigEndian(UInt64(size(at: offset) + box.count), bytes: 4))
    }
    bytes.insert(contentsOf: box, at: end)
    return bytes
  }

  @Test("A file that is cut off has the key frames before that")
  func truncated() async throws {
    let folder = try TemporaryFolder()
    let bytes = try Fixtures.bytes("stills/poor-start.mp4")
    try folder.write(bytes.prefix(bytes.count * 2 / 3), to: "cut.mp4")
    let poster = try await poster(of: MediaSource(argument: folder.path("cut.mp4")))
    #expect(times(poster) == [0, 1, 2, 3, 4])
    #expect(poster.chosen.flaws.isEmpty)
    #expect(poster.faults.map(\.reason) == ["the file is cut off: its index names media beyond its end"])
    // The key frames are whole.
    try folder.write(bytes.dropLast(100), to: "end.mp4")
    let whole = try await self.poster(of: MediaSource(argument: folder.path("end.mp4")))
    #expect(times(whole) == [0, 1, 2, 3, 4, 5])
    #expect(whole.faults.map(\.reason) == ["the file is cut off: its index names media beyond its end"])
  }
}

@Suite("Which key frames are looked at")
struct KeyFrameSpreadTests {
  private func chosen(_ count: Int, of seconds: [Int]) -> [Int] {
    let places = seconds.map { second in
      let time = MediaTime(value: Int64(second), timescale: 1)
      return KeyFramePlace(time: time, seekTime: time)
    }
    return KeyFrameSpread(count: count).chosen(of: places).map { Int($0.time.seconds) }
  }

  @Test("Evenly over the first 30 s")
  func spread() {
    #expect(chosen(3, of: Array(1...100)) == [10, 20, 30])
    #expect(chosen(6, of: stride(from: 2, through: 60, by: 2).map { $0 }) == [4, 10, 14, 20, 24, 30])
  }

  @Test("The next ones, if few begin there")
  func few() {
    #expect(chosen(3, of: [10, 20, 30, 40]) == [10, 20, 30])
    #expect(chosen(3, of: [20, 40, 60, 80]) == [20, 40, 60])
    #expect(chosen(3, of: [5]) == [5])
    #expect(chosen(3, of: []).isEmpty)
  }
}

@Suite("The rung for a still")
struct StillRungTests {
  private func choice(_ sizes: [PixelSize?], _ size: SizeLimit, maximumHeight: Int? = nil) -> Int {
    let candidates = sizes.enumerated().map {
      RungCandidate(index: $0, id: "\($0)", bitsPerSecond: ($0 + 1) * 1_000_000, size: $1)
    }
    var rung = SizedRung(size: size)
    let state = AdaptationState(
      current: nil, buffered: .zero, bufferTarget: .zero, isRebuffering: false, now: .zero,
      peakBitRate: 2_000_000, maximumHeight: maximumHeight)
    return rung.choose(among: candidates, state).index
  }

  private let ladder: [PixelSize?] = [
    PixelSize(width: 320, height: 180), PixelSize(width: 640, height: 360),
    PixelSize(width: 1280, height: 720),
  ]

  @Test("The cheapest that need not be enlarged; the bandwidth has no effect")
  func cheapest() {
    #expect(choice(ladder, .square(320)) == 0)
    #expect(choice(ladder, .square(321)) == 1)
    #expect(choice(ladder, .shortSide(720)) == 2)
  }

  @Test("The largest if none is enough, and the bit rate if no sizes are known")
  func fallbacks() {
    #expect(choice(ladder, .square(5000)) == 2)
    #expect(choice(ladder, .square(5000), maximumHeight: 360) == 1)
    #expect(choice([nil, nil, nil], .square(320)) == 1)
    #expect(choice([nil, ladder[1], nil], .square(320)) == 1)
  }
}

/// Counts the packets that went into decoders.
private final class CallCountingGate: DecodingGate {
  private let count = Locked(0)

  /// The candidates decoded so far: one call opens the decoder, and two decode each candidate.
  var candidateCount: Int { count.withLock { ($0 - 1) / 2 } }

  func acquire() {}
  func release() { count.withLock { $0 += 1 } }
}
