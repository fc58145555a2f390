import Foundation
import ReelCore
import ReelFFmpeg
import ReelManifest
import ReelSimulation
import ReelTesting
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelReading
@testable import ReelSources

/// A reader that counts sends the requests of one that demuxes, at the same times.
@Suite("Counting instead of demuxing", .hangLimit)
struct CountingReaderTests {
  private enum Way { case demuxing, counting }

  /// What one reader has done.
  private struct Course: Sendable {
    var requests: [String] = []
    var failures: [String] = []
    var error: ReelError.Kind?
    /// The end of the media on the item's timeline.
    var end = MediaTime.zero
  }

  /// Records requests with their times, and fails some of them.
  private struct Recorder: Fetching {
    let base: any Fetching
    let clock: SimulatedRuntime
    let fault: @Sendable (_ name: String, _ number: Int) -> ReelError?
    let requests = Locked<[String]>([])

    func fetch(_ request: FetchRequest) async throws -> FetchResponse {
      let name = request.url.lastPathComponent
      let number = requests.withLock { requests in
        defer {
          let range = request.range.map { " \($0.offset)+\($0.length ?? -1)" } ?? ""
          requests.append("\(clock.now) \(request.purpose) \(request.url.path)\(range)")
        }
        return requests.count { $0.hasSuffix("/" + name) }
      }
      if let error = fault(name, number) { throw error.located(at: request.url.absoluteString) }
      return try await base.fetch(request)
    }
  }

  /// What is read, and how.
  private struct Case: Sendable {
    var path: String
    var configuration = LoadingConfiguration()
    var role = ReaderRole.main(wantsAudio: true)
    /// Nil to read the rungs that the configuration allows.
    var adaptation: (@Sendable () -> any RungAdaptation)?
    var start: MediaTime?
    var readsAhead = false
    /// Ends reading here.
    var end = MediaTime(value: 1000, timescale: 1)
    var fault: @Sendable (_ name: String, _ number: Int) -> ReelError? = { _, _ in nil }
    var makeFetcher: @Sendable (SimulatedRuntime) throws -> any Fetching = { FixtureFetcher(clock: $0) }

    init(_ path: String) { self.path = path }
  }

  private func course(of reading: Case, _ way: Way) async throws -> Course {
    let simulation = SimulatedRuntime()
    let recorder = Recorder(
      base: try reading.makeFetcher(simulation), clock: simulation, fault: reading.fault)
    let source = try MediaSource(argument: "http://fixtures.test/\(reading.path)")
    var configuration = reading.configuration
    configuration.clock = SimulatedWallClock(simulation)
    let scope = LoadScope(runtime: simulation)
    let course = Locked(Course())
    let controller = controller(of: reading, in: simulation)
    let log: ReadingLog = { report in
      switch report {
      case .failure(let error, let rung, let outcome):
        course.withLock { course in
          course.failures.append("\(rung) \(error.kind) \(outcome.map { "\($0)" } ?? "thrown")")
        }
      case .transfer(let transfer, _): controller.record(transfer)
      default: break
      }
    }
    try await simulation.runToRest { [configuration] in
      defer { scope.cancel() }
      do {
        let opened = try await OpenSource(
          source, fetcher: recorder, configuration: configuration, scope: scope,
          recorder: StartupRecorder(clock: simulation), gate: nil, logger: silentLogger,
          readsAhead: reading.readsAhead)
        switch way {
        case .demuxing:
          try await BlockingThread.run(named: "test", on: simulation) {
            let reader = LandingReader(
              opened, for: reading.role, controller: controller, offsets: TimestampOffsets(), log: log,
              scope: scope)
            if let start = reading.start {
              try reader.base.seek(to: start, loop: LoopIteration(), scope: scope)
            }
            while let packet = try reader.next(), packet.time < reading.end {
              course.withLock { $0.end = max($0.end, packet.end) }
            }
          }
        case .counting:
          let reader = try CountingReader(
            opened, for: reading.role, controller: controller, offsets: TimestampOffsets(), log: log,
            scope: scope)
          if let start = reading.start { reader.seek(to: start, scope: scope) }
          while let media = try await reader.next(), media.range.lowerBound < reading.end {
            course.withLock { $0.end = max($0.end, media.end) }
          }
          #expect(simulation.bodyCount == 0)
        }
      } catch let error as ReelError {
        course.withLock { $0.error = error.kind }
      }
    }
    let requests = recorder.requests.withLock { $0 }
    return course.withLock { course in
      course.requests = requests
      return course
    }
  }

  private func controller(of reading: Case, in simulation: SimulatedRuntime) -> RungController {
    guard let adaptation = reading.adaptation else {
      return RungController(reading.configuration, clock: simulation)
    }
    return RungController(adaptation: adaptation()) {
      var conditions = RungConditions()
      conditions.now = simulation.now
      return conditions
    }
  }

  /// Reads in both ways, and returns what counting did.
  @discardableResult
  private func compare(
    _ reading: Case, tolerance: Double = 0.3, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Course {
    let demuxed = try await course(of: reading, .demuxing)
    let counted = try await course(of: reading, .counting)
    #expect(counted.requests == demuxed.requests, sourceLocation: sourceLocation)
    #expect(counted.failures == demuxed.failures, sourceLocation: sourceLocation)
    #expect(counted.error == demuxed.error, sourceLocation: sourceLocation)
    let difference = abs((counted.end - demuxed.end).seconds)
    #expect(difference < tolerance, "\(difference)", sourceLocation: sourceLocation)
    return counted
  }

  // MARK: Requests

  @Test("Video or muxed media", arguments: PresentationCase.all)
  func main(presentation: PresentationCase) async throws {
    var reading = Case(presentation.path)
    if let rate = presentation.peakBitRate { reading.configuration.preferredPeakBitRate = rate }
    // Keys that the manifest does not name.
    if presentation.path.hasSuffix(".mpd") { reading.configuration.keyProvider = KeyList.fixtures }
    for readsAhead in [false, true] {
      reading.readsAhead = readsAhead
      let course = try await compare(reading)
      #expect(course.error == nil)
      #expect(course.end >= MediaTime(seconds: 1.9))
    }
  }

  @Test(
    "Separate audio",
    arguments: [
      "hls-fmp4/master.m3u8", "encrypted/cbcs/master.m3u8", "dash-number/manifest.mpd",
      "dash-timeline/manifest.mpd", "dash-ondemand/manifest.mpd", "dash-webm/manifest.mpd",
    ])
  func audio(path: String) async throws {
    var reading = Case(path)
    reading.role = .audio(group: nil)
    let course = try await compare(reading)
    #expect(course.error == nil)
  }

  @Test("A start that the playlist states", arguments: ["TIME-OFFSET=1.5", "TIME-OFFSET=-0.5"])
  func start(attributes: String) async throws {
    var reading = Case("hls-fmp4/high/index.m3u8")
    reading.makeFetcher = { clock in
      FixtureFetcher(clock: clock) { request, _ in
        guard request.url.path.hasSuffix("index.m3u8"),
          let bytes = try? Fixtures.bytes("hls-fmp4/high/index.m3u8")
        else { return .none }
        let text = String(decoding: bytes, as: UTF8.self)
        return .bytes(Array("#EXTM3U\n#EXT-X-START:\(attributes)\n\(text.dropFirst(8))".utf8))
      }
    }
    let (demuxed, counted) = (
      try await course(of: reading, .demuxing), try await course(of: reading, .counting)
    )
    // One segment more is demuxed, because it tells when the timestamps begin.
    #expect(counted.requests == demuxed.requests.filter { counted.requests.contains($0) })
    #expect(counted.requests.count == demuxed.requests.count - 1)
    #expect(!counted.requests.contains { $0.hasSuffix("segment-0.m4s") })
    #expect(abs((counted.end - demuxed.end).seconds) < 0.1)
  }

  @Test("A position", arguments: ["dash-number/manifest.mpd", "dash-ondemand/manifest.mpd"])
  func seek(path: String) async throws {
    var reading = Case(path)
    reading.start = MediaTime(seconds: 1.5)
    try await compare(reading)
  }

  /// The last rung once a transfer has ended, and the first one until then.
  private struct RisingRungs: RungAdaptation {
    private var hasMeasured = false
    var estimatedBandwidth: Double? { nil }

    mutating func recordTransfer(_ sample: TransferSample) { hasMeasured = true }

    mutating func choose(among candidates: [RungCandidate], _ state: AdaptationState) -> RungCandidate {
      candidates[hasMeasured ? candidates.count - 1 : 0]
    }
  }

  @Test(
    "Rungs that change",
    arguments: ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-number/manifest.mpd"])
  func adaptation(path: String) async throws {
    var reading = Case(path)
    reading.adaptation = { RisingRungs() }
    reading.makeFetcher = { clock in
      FixtureFetcher(clock: clock) { request, _ in
        request.purpose == .segment ? .slow(.milliseconds(10)) : .none
      }
    }
    let course = try await compare(reading)
    let segments = course.requests.filter { $0.contains(" segment ") }
    let rungs = segments.compactMap { $0.split(separator: "/").dropLast().last }
    #expect(Set(rungs).count == 2)
  }

  @Test(
    "All that a player loads",
    arguments: ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-timeline/manifest.mpd"])
  func player(path: String) async throws {
    var reading = Case(path)
    // The lowest rung alone.
    reading.configuration.preferredPeakBitRate = 1
    let fetcher = FixtureFetcher()
    let peakBitRate = reading.configuration.preferredPeakBitRate
    let stage = try SimulatedStage(path, fetcher: fetcher) {
      $0.loading.preferredPeakBitRate = peakBitRate
    }
    stage.begin(rate: .infinity)
    try await stage.end()
    try await stage.close()
    var counted = try await course(of: reading, .counting).requests
    if path != "hls-ts/master.m3u8" {
      reading.role = .audio(group: nil)
      counted += try await course(of: reading, .counting).requests
    }
    func isMedia(_ purpose: FetchPurpose) -> Bool { purpose == .segment || purpose == .initialization }
    let media = counted.filter { $0.contains(" segment ") || $0.contains(" initialization ") }
    #expect(
      Set(media.compactMap { $0.split(separator: " ").last })
        == Set(fetcher.requests.filter { isMedia($0.purpose) }.map { Substring($0.url.path) }))
    #expect(media.count == fetcher.requests.count { isMedia($0.purpose) })
  }

  // MARK: Failures

  private static func error(_ status: Int) -> ReelError {
    ReelError(.server, "\(status)", status: status)
  }

  @Test(
    "A segment that is not available",
    arguments: [("hls-fmp4/master.m3u8", "segment-1.m4s"), ("hls-ts/master.m3u8", "segment-1.ts")])
  func missing(path: String, name: String) async throws {
    var reading = Case(path)
    // In the first rung.
    reading.fault = { $0 == name && $1 == 0 ? Self.error(404) : nil }
    let switched = try await compare(reading)
    #expect(switched.failures.count == 1)
    // In all of them.
    reading.fault = { found, _ in found == name ? Self.error(404) : nil }
    let skipped = try await compare(reading)
    #expect(skipped.failures.last?.contains("lost") == true)
    // All segments.
    reading.fault = { found, _ in found.hasPrefix("segment") ? Self.error(404) : nil }
    #expect(try await compare(reading).error == .server)
  }

  @Test(
    "A transfer that breaks off for good",
    arguments: ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-number/manifest.mpd"], [0, 1, 2])
  func cut(path: String, index: Int) async throws {
    var reading = Case(path)
    reading.readsAhead = index > 0
    reading.makeFetcher = { clock in
      let count = Locked(0)
      return FixtureFetcher(clock: clock) { request, _ in
        guard request.purpose == .segment else { return .none }
        let number = count.withLock { count in
          defer { count += 1 }
          return count
        }
        return number == index ? .endless(ReelError(.network, "reset"), after: 9000) : .none
      }
    }
    try await compare(reading)
  }

  @Test("A playlist that is not available", arguments: ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8"])
  func playlist(path: String) async throws {
    var reading = Case(path)
    reading.fault = { name, number in name == "index.m3u8" && number == 0 ? Self.error(404) : nil }
    let course = try await compare(reading)
    #expect(course.failures.count == 1)
    #expect(course.error == nil)
  }

  @Test("Gaps of one rung, or of both", arguments: [["high"], ["high", "low"]])
  func gaps(rungs: [String]) async throws {
    var reading = Case("hls-fmp4/master.m3u8")
    reading.makeFetcher = { clock in
      FixtureFetcher(clock: clock) { request, _ in
        let path = request.url.path
        guard path.hasSuffix("index.m3u8"), rungs.contains(where: { path.contains("/\($0)/") }),
          let bytes = try? Fixtures.bytes(String(path.dropFirst()))
        else { return .none }
        let text = String(decoding: bytes, as: UTF8.self)
        return .bytes(Array(text.replacing("segment-1.m4s", with: "#EXT-X-GAP\nsegment-1.m4s").utf8))
      }
    }
    let course = try await compare(reading)
    #expect(!course.requests.contains { $0.hasSuffix("/high/segment-1.m4s") })
    #expect(course.requests.contains { $0.hasSuffix("/low/segment-1.m4s") } == (rungs.count == 1))
  }

  @Test("An answer that is no media", arguments: ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8"])
  func page(path: String) async throws {
    var reading = Case(path)
    reading.makeFetcher = { clock in
      FixtureFetcher(clock: clock) { request, _ in
        request.url.path.contains("/high/segment-1")
          ? .bytes(Array("<!DOCTYPE html><html><body>Sign in</body></html>".utf8)) : .none
      }
    }
    let course = try await compare(reading)
    #expect(course.failures.count == 1)
  }

  // MARK: Live

  private static func live(
    _ path: String, _ options: HLSLiveSimulation.Options,
    fault: @escaping @Sendable (String, Int) -> ReelError?
  ) throws -> Case {
    var reading = Case("live/master.m3u8")
    reading.makeFetcher = { clock in
      let server = SimulatedWallClock(clock)
      let resource = try HLSLiveSimulation(
        LiveMaterial(manifest: Fixtures.folder.appending(path: path)),
        start: SimulatedWallClock.defaultBeginning - MediaTime(seconds: 100), options: options
      ) { server.now }
      return SimulationFetcher(resource: resource)
    }
    reading.fault = fault
    return reading
  }

  @Test("A live playlist, to its end", arguments: ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8"])
  func livePlaylist(path: String) async throws {
    let reading = try Self.live(path, .init(segmentCount: 120)) { _, _ in nil }
    let course = try await compare(reading)
    #expect(course.error == nil)
    #expect(course.requests.count > 40)
  }

  @Test(
    "A live playlist with segments that are refused, or fail once, and with old copies",
    arguments: ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8"])
  func liveFaults(path: String) async throws {
    let stale = LiveDisturbances(
      stalls: [.init(after: MediaTime(seconds: 104), length: MediaTime(seconds: 5))],
      staleCopies: .init(every: 3, age: MediaTime(seconds: 2)))
    let reading = try Self.live(path, .init(segmentCount: 120, disturbances: stale)) { name, number in
      if name.contains("-103.") { return Self.error(404) }
      if name.contains("-106."), number == 0 { return ReelError(.network, "the connection was lost") }
      return nil
    }
    let course = try await compare(reading)
    #expect(course.error == nil)
    #expect(course.failures.count == 1)
  }

  @Test("A live MPD, to its end", arguments: [DASHLiveSimulation.Addressing.number, .timeline])
  func liveMPD(addressing: DASHLiveSimulation.Addressing) async throws {
    for role in [ReaderRole.main(wantsAudio: true), .audio(group: nil)] {
      var reading = Case("live/manifest.mpd")
      reading.role = role
      reading.makeFetcher = { clock in
        let server = SimulatedWallClock(clock)
        let resource = try DASHLiveSimulation(
          LiveMaterial(manifest: Fixtures.folder.appending(path: "dash-number/manifest.mpd")),
          start: SimulatedWallClock.defaultBeginning - MediaTime(seconds: 100),
          options: .init(
            addressing: addressing, minimumUpdatePeriod: MediaTime(seconds: 2),
            suggestedPresentationDelay: MediaTime(seconds: 4), passCount: 40)
        ) { server.now }
        return SimulationFetcher(resource: resource)
      }
      let course = try await compare(reading)
      #expect(course.error == nil)
      #expect(course.requests.count > 30)
    }
  }

  // MARK: What is loaded

  /// Calls `body` with a reader of a fixture.
  private func counting(
    _ path: String, _ fetcher: FixtureFetcher, in simulation: SimulatedRuntime, scope: LoadScope,
    _ body: @escaping @Sendable (CountingReader) async throws -> Void
  ) async throws {
    let source = try MediaSource(argument: "http://fixtures.test/\(path)")
    try await simulation.runToRest {
      defer { scope.cancel() }
      let opened = try await OpenSource(
        source, fetcher: fetcher, configuration: LoadingConfiguration(), scope: scope,
        recorder: StartupRecorder(clock: simulation), gate: nil, logger: silentLogger, readsAhead: true)
      try await body(
        try CountingReader(
          opened, for: .main(wantsAudio: true),
          controller: RungController(LoadingConfiguration(), clock: simulation), offsets: TimestampOffsets(),
          log: { _ in }, scope: scope))
    }
  }

  @Test("Segments follow each other, and their bytes are counted")
  func media() async throws {
    let simulation = SimulatedRuntime()
    let loaded = Locked<[LoadedMedia]>([])
    try await counting(
      "hls-fmp4/master.m3u8", FixtureFetcher(clock: simulation), in: simulation,
      scope: LoadScope(runtime: simulation)
    ) { reader in
      while let media = try await reader.next() { loaded.withLock { $0.append(media) } }
      #expect(reader.streams.rung?.id == loaded.withLock { $0.last?.rung.id })
      #expect(reader.streams.duration == loaded.withLock { $0.last?.range.upperBound })
    }
    let media = loaded.withLock { $0 }
    #expect(zip(media, media.dropFirst()).allSatisfy { $0.end <= $1.end })
    let ends = media.filter { $0.share == 1 && $0.byteCount == 0 }
    #expect(ends.map(\.range.lowerBound) == (0..<3).map { MediaTime(seconds: Double($0)) })
    #expect(ends.allSatisfy { $0.hasFirstFrame })
    for (index, end) in ends.enumerated() {
      let count = media.filter { $0.range == end.range }.map(\.byteCount).reduce(0, +)
      #expect(try count == Fixtures.bytes("hls-fmp4/high/segment-\(index).m4s").count)
    }
  }

  @Test("Transfers are held back while nobody reads on")
  func holding() async throws {
    let simulation = SimulatedRuntime()
    let fetcher = FixtureFetcher(chunkByteCount: 1 << 10, clock: simulation)
    try await counting("hls-ts/master.m3u8", fetcher, in: simulation, scope: LoadScope(runtime: simulation)) {
      reader in
      _ = try await reader.next()
      try await simulation.sleep(for: .seconds(100))
      // The first segment, and the one ahead.
      #expect(fetcher.underWayCount == 2)
      let count = fetcher.requests.count
      try await simulation.sleep(for: .seconds(100))
      #expect(fetcher.requests.count == count)
      while try await reader.next() != nil {}
    }
    #expect(fetcher.underWayCount == 0)
  }

  @Test("The end of the scope, or of the task, ends reading and the transfers", arguments: [true, false])
  func cancellation(ofScope: Bool) async throws {
    let simulation = SimulatedRuntime()
    let fetcher = FixtureFetcher(clock: simulation) { request, _ in
      request.purpose == .segment ? .never : .none
    }
    let scope = LoadScope(runtime: simulation)
    try await counting("hls-ts/master.m3u8", fetcher, in: simulation, scope: scope) { reader in
      let task = simulation.throwingTask { _ = try await reader.next() }
      try await simulation.sleep(for: .seconds(1))
      if ofScope { scope.cancel() } else { task.cancel() }
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    #expect(fetcher.heldCount == 0)
  }

  @Test("A media file has no segments")
  func file() async throws {
    let simulation = SimulatedRuntime()
    let error = await #expect(throws: ReelError.self) {
      try await counting(
        "bad/audio-only.ts", FixtureFetcher(clock: simulation), in: simulation,
        scope: LoadScope(runtime: simulation)
      ) { _ in }
    }
    #expect(error?.kind == .badManifest)
  }

  // MARK: The first frame

  /// The number of bytes of a segment at which its first frame is known to be complete, in pieces of a size.
  private func firstFrameEnd(_ path: String, initialization: [UInt8], size: Int) throws -> Int64? {
    var sanitizer = try #require(
      SegmentDownload.Form(initialization: initialization, isChecked: true).sanitizer)
    let bytes = try Fixtures.bytes(path)
    for start in stride(from: 0, to: bytes.count, by: size) {
      _ = try sanitizer.pass(Array(bytes[start..<min(start + size, bytes.count)]))
      if let end = sanitizer.firstFrameEnd { return end }
    }
    return nil
  }

  @Test("In MPEG-TS it ends where the second one begins", arguments: [100, 188, 4096, 1 << 20])
  func firstFrameOfTransportStream(size: Int) throws {
    let bytes = try Fixtures.bytes("hls-ts/high/segment-0.ts")
    var starts: [(pid: Int, end: Int)] = []
    for start in stride(from: 0, to: bytes.count, by: 188) {
      let packet = bytes[start..<start + 188]
      let code = packet.firstRange(of: [0, 0, 1, 0xe0])
      guard bytes[start + 1] & 0x40 != 0, let code, code.lowerBound < start + 40 else { continue }
      starts.append((Int(bytes[start + 1] & 0x1f) << 8 | Int(bytes[start + 2]), start + 188))
    }
    #expect(starts.count == 30)
    #expect(Set(starts.map(\.pid)).count == 1)
    #expect(
      try firstFrameEnd("hls-ts/high/segment-0.ts", initialization: [], size: size) == Int64(starts[1].end))
  }

  @Test("In fragmented MP4 it ends with its sample", arguments: [100, 4096, 1 << 20])
  func firstFrameOfFragment(size: Int) throws {
    let bytes = try Fixtures.bytes("hls-fmp4/high/segment-0.m4s")
    let moof = try #require(bytes.firstRange(of: Array("moof".utf8))).lowerBound - 4
    let run = try #require(TrackFragment.all(in: bytes[moof...].prefix(bytes.count - moof)).first?.runs.first)
    let end = try Int64(moof) + #require(run.dataOffset).value + Int64(#require(run[0].size))
    let initialization = try Fixtures.bytes("hls-fmp4/high/init.mp4")
    #expect(
      try firstFrameEnd("hls-fmp4/high/segment-0.m4s", initialization: initialization, size: size) == end)
  }
}
