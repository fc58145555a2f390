import Foundation
import ReelCore
import ReelFFmpeg
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelReading
@testable import ReelSources
@testable import ReelStills

@Suite("Storyboards of faulty sources", .hangLimit)
struct StoryboardFaultTests {
  private let limit = Duration.seconds(30)

  private func make(
    _ path: String, from fetcher: FixtureFetcher, every interval: Double = 1,
    clock: any MonotonicClock = ManualMonotonicClock(), recordTile: @escaping @Sendable () -> Void = {}
  ) async throws -> MadeStoryboard {
    try await makeStoryboard(
      .every(interval), of: source(path), from: fetcher, stillLimit: limit, clock: clock,
      recordTile: recordTile)
  }

  /// The storyboard of a file with these bytes in place of its own.
  private func make(_ path: String, _ bytes: [UInt8], every interval: Double = 1) async throws
    -> MadeStoryboard
  {
    let name = try #require(path.split(separator: "/").last)
    return try await make(path, from: fetcher(String(name), .bytes(bytes)), every: interval)
  }

  private func source(_ path: String) throws -> MediaSource {
    try MediaSource(argument: path.hasPrefix("/") ? path : "http://stills.test/\(path)")
  }

  private func fetcher(_ name: String, _ fault: FixtureFetcher.Fault) -> FixtureFetcher {
    FixtureFetcher { request, _ in request.url.lastPathComponent == name ? fault : .none }
  }

  /// Moves the clock to each limit that a reader waits for while a condition holds, until the task is cancelled.
  private func advance(
    _ clock: ManualMonotonicClock, while condition: @escaping @Sendable () -> Bool = { true }
  ) -> Task<Void, Never> {
    Task {
      while !Task.isCancelled {
        // Looked at first: it is not that of a wait that begins afterwards.
        if let deadline = clock.nextDeadline, condition() { clock.advance(to: deadline) }
        try? await Task.sleep(for: .milliseconds(5))
      }
    }
  }

  // MARK: Silence

  @Test("A silent segment costs its own still", arguments: [0, 2, 5])
  func silentSegment(index: Int) async throws {
    let (clock, name) = (ManualMonotonicClock(), "segment-\(index).m4s")
    let fetcher = fetcher(name, .never)
    async let making = make("stills/high/playlist.m3u8", from: fetcher, clock: clock)
    let ticking: Task<Void, Never>?
    if index == 0 {
      // It is waited for before the others are begun.
      try await until { fetcher.requests.contains { $0.url.lastPathComponent == name } }
      clock.advance(by: limit)
      ticking = nil
    } else {
      let all = Set((0..<6).map { "segment-\($0).m4s" })
      // A still has a limit by the clock until it is decoded. The reader of this one may not have begun to wait yet.
      ticking = advance(clock) {
        all.isSubset(of: fetcher.requests.map(\.url.lastPathComponent)) && fetcher.underWayCount == 1
          && clock.callCount == 1
      }
    }
    let made = try await making
    ticking?.cancel()
    #expect(made.missing == [index])
    #expect(made.times == (0..<6).filter { $0 != index }.map(Double.init))
    let error = try #require(made.storyboard.missing.first?.error)
    // The initialization, which is asked for at the same time, may not have been passed on yet.
    let isNamed = [name, index == 0 ? "init.mp4" : name].contains { error.location?.hasSuffix($0) == true }
    #expect(error.kind == .timedOut && isNamed, "\(error)")
    #expect(error.description.contains("30 s"))
  }

  @Test("A silent range of a file costs its own still")
  func silentRange() async throws {
    let path = "stills/poor-start.mp4"
    let sound = FixtureFetcher()
    let whole = try await make(path, from: sound)
    #expect(whole.times == [0, 1, 2, 3, 4, 5])
    let last = try #require(sound.requests.compactMap(\.range).max { $0.offset < $1.offset })
    let (clock, count) = (ManualMonotonicClock(), Locked(0))
    let fetcher = FixtureFetcher { request, _ in request.range?.offset == last.offset ? .never : .none }
    async let making = make(path, from: fetcher, clock: clock) { count.withLock { $0 += 1 } }
    try await until { count.withLock { $0 } == 5 }
    // The reader may not have begun to wait yet.
    let ticking = advance(clock)
    let made = try await making
    ticking.cancel()
    #expect(made.missing == [5])
    #expect(made.times == [0, 1, 2, 3, 4])
    #expect(made.storyboard.missing.first?.error.kind == .timedOut)
  }

  @Test("A server that has gone silent is given up")
  func silentServer() async throws {
    let clock = ManualMonotonicClock()
    let fetcher = FixtureFetcher { request, _ in request.url.pathExtension == "m4s" ? .never : .none }
    let ticking = advance(clock)
    let error = await reelError {
      _ = try await make("stills/high/playlist.m3u8", from: fetcher, clock: clock)
    }
    ticking.cancel()
    #expect(error?.kind == .timedOut, "\(String(describing: error))")
  }

  // MARK: Damage

  @Test("A damaged segment is missing itself, and its neighbours are there", arguments: [0, 2])
  func damaged(index: Int) async throws {
    let name = "segment-\(index).m4s"
    for fault: FixtureFetcher.Fault in [
      .bytes(Array("<html>not found</html>".utf8)), .error(ReelError(.server, "gone", status: 410)), .cut(0),
    ] {
      // Without a byte of the first segment, nothing is opened.
      if index == 0, case .cut = fault { continue }
      let made = try await make("stills/high/playlist.m3u8", from: fetcher(name, fault))
      #expect(made.missing == [index], "\(fault): \(made.storyboard.missing)")
      #expect(made.times == (0..<6).filter { $0 != index }.map(Double.init), "\(fault)")
      guard index > 0 else { continue }
      let location = made.storyboard.missing.first?.error.location
      #expect(location?.hasSuffix(name) == true, "\(fault): \(location ?? "")")
    }
  }

  @Test("A segment of a transport stream without video is missing itself")
  func emptyTransportStream() async throws {
    // Null packets (ISO/IEC 13818-1 §2.4.3.2).
    let packet: [UInt8] = [0x47, 0x1f, 0xff, 0x10] + [UInt8](repeating: 0xff, count: 184)
    let empty = (0..<20).flatMap { _ in packet }
    let made = try await make("hls-ts/low/index.m3u8", from: fetcher("segment-1.ts", .bytes(empty)))
    #expect(made.missing == [1], "\(made.storyboard.missing)")
    #expect(made.slots == [0, 2])
  }

  @Test("A healthy segment without a key frame leaves its tile out, and nothing is missing")
  func withoutKeyFrame() async throws {
    let bytes = try withoutFirstFrame(Fixtures.bytes("hls-ts/low/segment-1.ts"))
    let made = try await make("hls-ts/low/index.m3u8", from: fetcher("segment-1.ts", .bytes(bytes)))
    #expect(made.missing == [], "\(made.storyboard.missing)")
    #expect(made.slots == [0, 2])
  }

  /// A segment of a transport stream without the packets of its first video frame.
  private func withoutFirstFrame(_ bytes: [UInt8]) -> [UInt8] {
    var (video, count): (Int?, Int) = (nil, 0)
    var kept: [UInt8] = []
    for start in stride(from: 0, to: bytes.count - 187, by: 188) {
      let packet = bytes[start..<(start + 188)]
      let id = Int(bytes[start + 1] & 0x1f) << 8 | Int(bytes[start + 2])
      let begins = bytes[start + 1] & 0x40 != 0
      if begins, packet.firstRange(of: [0, 0, 1, 0xe0]) != nil { video = id }
      if id == video, begins { count += 1 }
      if id != video || count > 1 { kept += packet }
    }
    return kept
  }

  // MARK: Indexes

  @Test("Of a fragmented MP4 with an index, only what the key frames need is read")
  func segmentIndex() async throws {
    let path = "media/h264-fragmented-sidx.mp4"
    let fetcher = FixtureFetcher(chunkByteCount: 1 << 10)
    let made = try await make(path, from: fetcher)
    let local = try await make(Fixtures.path(path), from: FixtureFetcher())
    let forward = try await make("media/h264-fragmented.mp4", from: FixtureFetcher())
    #expect(made.times == forward.times && local.times == forward.times)
    #expect(made.storyboard.rung == nil)
    let traffic = made.storyboard.traffic
    #expect(traffic.readByteCount < Int64(try Fixtures.bytes(path).count) / 2, "\(traffic)")
    #expect(fetcher.requests.compactMap(\.range).count >= 2)
  }

  @Test("An index of another version, or with a segment of years, is no loss", arguments: [true, false])
  func damagedIndex(hasVersion: Bool) async throws {
    let path = "media/h264-fragmented-sidx.mp4"
    var bytes = try Fixtures.bytes(path)
    let index = try #require(bytes.firstRange(of: Array("sidx".utf8)))
    if hasVersion {
      bytes[index.upperBound] = 9
    } else {
      // The duration of the second of its references, which have 12 bytes each, behind 12 or 20 and 20 bytes.
      let reference = index.upperBound + (bytes[index.upperBound] == 0 ? 24 : 32) + 4
      bytes.replaceSubrange((reference + 12)..<(reference + 16), with: [0xff, 0xff, 0xff, 0xff])
    }
    let made = try await make(path, bytes)
    let forward = try await make("media/h264-fragmented.mp4", from: FixtureFetcher())
    #expect(made.times == forward.times)
  }

  @Test("A key frame of zeros is missing")
  func zeros() async throws {
    let path = "media/h264-fragmented-sidx.mp4"
    var bytes = try Fixtures.bytes(path)
    let boxes = bytes.indices.dropLast(4).filter { bytes[$0...].starts(with: "mdat".utf8) }
    let start = try #require(boxes.dropFirst(2).first) + 4
    for index in start..<(start + 4288) { bytes[index] = 0 }
    let made = try await make(path, bytes, every: 0.5)
    #expect(made.slots == [0, 1, 3])
    #expect(made.missing == [2], "\(made.storyboard.missing)")
  }

  // MARK: Sources that are read forward

  private func faults(_ made: MadeStoryboard) -> [String] { made.storyboard.faults.map(\.reason) }

  @Test("A fragment of zeros, or one whose media is zeros, is missing, and those after it are there")
  func zeroFragment() async throws {
    let path = "media/h264-fragmented.mp4"
    let bytes = try Fixtures.bytes(path)
    func boxes(_ type: String) -> [Int] {
      bytes.indices.dropLast(4).filter { bytes[$0...].starts(with: type.utf8) }.map { $0 - 4 }
    }
    let (start, media, end) = (boxes("moof")[2], boxes("mdat")[2], boxes("moof")[3])
    for range in [start..<end, (start + 3)..<(end - 3), (media + 8)..<end] {
      var damaged = bytes
      damaged.replaceSubrange(range, with: repeatElement(0, count: range.count))
      let made = try await make(path, damaged, every: 0.5)
      #expect(made.slots == [0, 1, 3], "\(range)")
      #expect(made.missing == [2], "\(range): \(made.storyboard.missing)")
      guard range.lowerBound < media else { continue }
      #expect(faults(made).contains { $0.contains("at byte \(start) are damaged") }, "\(faults(made))")
    }
  }

  @Test("Nothing follows damaged bytes: what was read counts")
  func zerosToTheEnd() async throws {
    let path = "media/h264-fragmented.mp4"
    var bytes = try Fixtures.bytes(path)
    let start = try #require(
      bytes.indices.filter { bytes[$0...].starts(with: "moof".utf8) }.dropFirst(2).first)
    bytes.replaceSubrange((start - 4)..., with: repeatElement(0, count: bytes.count - start + 4))
    let made = try await make(path, bytes, every: 0.5)
    #expect(made.slots == [0, 1])
    #expect(faults(made).contains { $0.contains("no fragment follows") }, "\(faults(made))")
  }

  @Test("Zeros in a transport stream: a still is missing only if its key frame is hit")
  func zerosInTransportStream() async throws {
    let path = "stills/poor-start.ts"
    let bytes = try Fixtures.bytes(path)
    for (range, missing) in [(110_000..<115_000, []), (76_000..<95_000, [4])] {
      var damaged = bytes
      damaged.replaceSubrange(range, with: repeatElement(0, count: range.count))
      let made = try await make(path, damaged)
      #expect(made.missing == missing, "\(range): \(made.storyboard.missing)")
      #expect(made.slots == (0..<6).filter { !missing.contains($0) }, "\(range)")
      #expect(faults(made).contains { $0.contains("missing or damaged") }, "\(faults(made))")
    }
  }

  @Test("A transport stream that ends inside a packet says so")
  func cutTransportStream() async throws {
    let path = "stills/poor-start.ts"
    let made = try await make(path, Array(try Fixtures.bytes(path).prefix(120_001)))
    #expect(made.times == [0, 1, 2, 3, 4])
    #expect(made.missing.isEmpty)
    #expect(faults(made) == ["the file is cut off: it ends inside a packet"])
    #expect(made.storyboard.endFault == nil)
  }

  @Test("An MP4 file that is cut off behind its last key frame says so")
  func cutBehindKeyFrames() async throws {
    let path = "stills/poor-start.mp4"
    let made = try await make(path, Array(try Fixtures.bytes(path).dropLast(100)))
    #expect(made.times == [0, 1, 2, 3, 4, 5])
    #expect(made.missing.isEmpty)
    #expect(faults(made) == ["the file is cut off: its index names media beyond its end"])
  }

  @Test("Frames that can't be decoded are a fault of their extraction")
  func lostFrames() async throws {
    let path = "media/h264-fragmented.mp4"
    let bytes = try Fixtures.bytes(path)
    let media = bytes.indices.dropLast(4).filter { bytes[$0...].starts(with: "mdat".utf8) }[2] + 4
    var damaged = bytes
    damaged.replaceSubrange(media..<(media + 12_000), with: repeatElement(0, count: 12_000))
    for (bytes, isDamaged) in [(bytes, false), (damaged, true)] {
      let extractor = FrameExtractor(
        fetcher: fetcher("h264-fragmented.mp4", .bytes(bytes)), logger: silentLogger)
      let report = try await extractor.extract(.count(0), from: source(path)) { _ in }
      #expect(report.faults.contains { $0.reason.contains("can't be decoded") } == isDamaged)
      #expect(report.faults.isEmpty == !isDamaged, "\(report.faults)")
    }
  }

  // MARK: Initialization

  @Test("An error of the initialization names it")
  func initialization() async throws {
    for (fault, kind) in [
      (FixtureFetcher.Fault.bytes([]), ReelError.Kind.badMedia), (.bytes(Array("<html>".utf8)), .badMedia),
      (.never, .timedOut),
    ] {
      let (clock, fetcher) = (ManualMonotonicClock(), self.fetcher("init.mp4", fault))
      let isSilent = kind == .timedOut
      let ticking = advance(clock) {
        isSilent && fetcher.requests.contains { $0.url.lastPathComponent == "init.mp4" }
      }
      let error = await reelError {
        _ = try await make("stills/high/playlist.m3u8", from: fetcher, clock: clock)
      }
      ticking.cancel()
      #expect(error?.kind == kind, "\(fault): \(String(describing: error))")
      #expect(
        error?.location?.hasSuffix("high/init.mp4") == true, "\(fault): \(String(describing: error))")
    }
  }

  // MARK: Encryption

  @Test("Media that is encrypted from some time on has the stills before that")
  func clearLead() async throws {
    for path in ["encrypted/clear-lead/video.m3u8", "encrypted/clear-lead/manifest.mpd"] {
      let made = try await make(path, from: FixtureFetcher())
      #expect(!made.tiles.isEmpty, "\(path)")
      let missing = try #require(made.storyboard.missing.first, "\(path)")
      #expect(missing.error.kind == .unsupported && missing.error.reason.contains("encrypted"), "\(path)")
      #expect(made.tiles.allSatisfy { $0.slot < missing.slot }, "\(path)")
    }
  }

  // MARK: Live

  @Test("Of a live window, segments that are refused are left out, with the status")
  func live() async throws {
    let launch = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)
    let clock = ManualClock(launch + MediaTime(seconds: 100))
    let material = try LiveMaterial(
      manifest: Fixtures.folder.appending(path: "hls-ts/low/index.m3u8"))
    let live = try HLSLiveSimulation(material, start: launch, options: .init(windowCount: 20)) { clock.now }
    let faults = try FaultRule.parse("live*[02468].ts=status:404".withDigits)
    try await Origin.use(.init(resources: [live], faults: faults)) { origin in
      var configuration = LoadingConfiguration()
      configuration.clock = clock
      let made = try await makeStoryboard(
        of: .url(origin.baseURL.appending(path: live.manifestPath)), from: makeFetcher(attempts: 0),
        configuration: configuration, size: .square(80), stillLimit: .seconds(60))
      #expect(made.storyboard.isLive)
      #expect(made.tiles.count == 10, "\(made.tiles.map(\.slot)) \(made.storyboard.missing)")
      #expect(made.missing.count == 10)
      #expect(
        made.storyboard.missing.allSatisfy { $0.error.status == 404 }
          && Set(made.storyboard.missing.map(\.error.location)).count == 10,
        "\(made.storyboard.missing)")
    }
  }
}

extension String {
  /// Rules for each of the digits in brackets.
  fileprivate var withDigits: String {
    guard let open = firstIndex(of: "["), let close = firstIndex(of: "]") else { return self }
    return self[index(after: open)..<close].map { self[..<open] + String($0) + self[index(after: close)...] }
      .joined(separator: ",")
  }
}
