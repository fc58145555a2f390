internal import Foundation
public import ReelCore
package import ReelFFmpeg
internal import ReelManifest
public import ReelReading
package import ReelSources

/// Small frames of a source at a regular interval, each a key frame, as a preview over a seek bar shows them.
public struct Storyboard: Sendable {
  /// The frames in order of time: upright, with square pixels, in RGB, all of one size.
  ///
  /// An interval whose key frame is already shown, or could not be read, has none. Frames of a live presentation have
  /// times on its timeline; only its current window is read.
  public let frames: [VideoFrame]
  /// The distance between frames: the requested one, or more if the key frames are further apart.
  public let interval: MediaTime
  /// The errors despite which extraction continued: one for each frame that could not be read, and one if the source
  /// ended early.
  public let faults: [ReelError]

  /// Returns the frames as tiles of larger frames, row by row. The last sheet has no empty rows.
  ///
  /// - Returns: The sheets, each with the time of its first tile.
  /// - Throws: `ReelError` of kind `usage` if `columns` or `rows` is less than 1, or if a sheet would have more than 64 Mi
  ///   pixels.
  public func sheets(columns: Int, rows: Int) throws(ReelError) -> [VideoFrame] {
    guard let first = frames.first else { return [] }
    guard min(columns, rows) >= 1, rows <= StoryboardStyle.pixelLimit,
      columns <= StoryboardStyle.pixelLimit / rows / (first.size.width * first.size.height)
    else {
      throw ReelError(
        .usage, "a sheet of \(columns)x\(rows) tiles of \(first.size) is too large, or empty")
    }
    let (converter, perSheet) = (FrameConverter(), columns * rows)
    var sheets: [VideoFrame] = []
    for start in stride(from: 0, to: frames.count, by: perSheet) {
      let tiles = frames[start..<min(start + perSheet, frames.count)]
      var sheet = StillSheet(
        tile: first.size, columns: columns, rows: (tiles.count + columns - 1) / columns)
      for (index, tile) in tiles.enumerated() {
        try sheet.place(Still(try converter.convert(tile)), at: index)
      }
      sheets.append(try VideoFrame(sheet.still, time: frames[start].time))
    }
    return sheets
  }

  /// The distance between the stills.
  package enum Spacing: Sendable, Hashable {
    /// A distance in seconds.
    case every(Double)
    /// This many stills, evenly over the duration.
    case count(Int)
  }

  /// The maximum number of slots of a storyboard.
  package static let slotLimit = 10_000
  /// The bounds of the distance of stills, in seconds.
  package static let intervals = 0.1..<1e6

  /// A still with its position.
  package struct Tile: Sendable {
    /// The index of its slot, which begins at `slot * interval`.
    package let slot: Int
    /// The frame's time on the timeline of the source, from the start of the storyboard.
    package let time: MediaTime
    /// The number of bytes of the frame's packet.
    package let byteCount: Int
    package let still: Still
  }

  /// A key frame that could not be shown.
  package struct Missing: Sendable {
    package let slot: Int
    package let error: ReelError
  }

  /// What is known of a storyboard after its last tile.
  ///
  /// The time of the source is divided into slots of equal length. A tile shows the key frame nearest to the beginning
  /// of its slot. A slot whose key frame is already shown, or could not be read, has no tile.
  package struct Report: Sendable {
    /// The length of a slot, in milliseconds. Larger than requested if the key frames are further apart.
    package let interval: Int
    package let slotCount: Int
    /// The duration in milliseconds.
    package let duration: Int
    /// The time at which the storyboard starts: 0, or the beginning of a live window.
    package let start: MediaTime
    package let isLive: Bool
    package let missing: [Missing]
    /// `pq` or `hlg` if HDR was mapped to SDR.
    package let hdr: String?
    package let traffic: Poster.Traffic
    /// The number of bytes before the key frames: manifests, indexes and initialization; of a media file, those
    /// that were read to open it.
    package let indexByteCount: Int64
    /// The id and the bit rate of the rung that was read; nil for a media file.
    package let rung: (id: String, bitsPerSecond: Int?)?
    /// The kind of track that was read; nil for a media file.
    package let track: StillTrack?
    /// The errors despite which extraction continued.
    package let faults: [ReelError]
    /// The error that ended the reading of a source without an index, if the number of missing stills is unknown.
    package let endFault: ReelError?
    /// The processor time of the threads that read, decoded and scaled.
    package let processorTime: Duration
  }
}

extension StillExtractor {
  /// Creates a storyboard from few bytes; returns the result of `body`, which receives its tiles.
  ///
  /// Each tile is a key frame, decoded by itself. The key frames are those at the start of segments, those of a
  /// playlist of I-frames, or those in the index of an MP4 (also `sidx`) or Matroska file, and only their bytes
  /// are fetched, several at a time. Sources without either, and segments that are much longer than the
  /// interval, are read completely.
  ///
  /// - Parameters:
  ///   - recordOpening: Called when the source has answered. From then on, the time limit of the extractor
  ///     applies.
  ///   - body: Called on a thread that may block.
  ///
  /// Throws the error of `body`, `ReelError` or `CancellationError`. The error's kind is `badMedia` if the
  /// source has no frame, and `unsupported` for too many stills, for a stream without an end, and for Dolby
  /// Vision of profile 5.
  package func storyboard<Result: Sendable>(
    _ spacing: Storyboard.Spacing, of source: MediaSource, recordOpening: @escaping @Sendable () -> Void = {},
    _ body: @escaping @Sendable (StoryboardTiles) throws -> Result
  ) async throws -> Result {
    let size = size ?? .square(320)
    let counter = TrafficCounter(opener.fetcher, collectsChunks: true)
    var opener = opener
    opener.fetcher = counter
    opener.configuration.shownSize = size
    opener.configuration.reading = .keyFrames(endsTransfers: false, skipsRefused: true)
    opener.configuration.usesIFramePlaylists = true
    let (stillLimit, clock) = (stillLimit, clock)
    return try await opener.use(source, readsAhead: false) { opening in
      let opening = try await opening.readingIndex()
      recordOpening()
      let work = StoryboardWork(
        opening: opening, counter: counter, spacing: spacing, size: size, stillLimit: stillLimit,
        clock: clock, name: source.name)
      return try await BlockingThread.run(
        named: "storyboard", on: opening.context.scope.runtime, cachesMemory: true
      ) {
        defer { work.end() }
        work.begin()
        return try body(StoryboardTiles(work))
      }
    }
  }
}

/// The tiles of a storyboard, in order. Confined to one thread.
package final class StoryboardTiles {
  private let work: StoryboardWork
  private var missing: [Storyboard.Missing] = []
  private var lastTime: MediaTime?
  private var lastSlot = -1
  private var keyFrameByteCount: Int64 = 0

  init(_ work: StoryboardWork) { self.work = work }

  /// Waits for the next tile; nil after the last one. Throws `ReelError` or `CancellationError`.
  package func next() throws -> Storyboard.Tile? {
    while let outcome = try work.queue.next() {
      switch outcome {
      case .nothing: continue
      case .missing(let found): missing.append(found)
      case .tile(let tile):
        keyFrameByteCount += Int64(tile.byteCount)
        // After an unreadable segment, the reader continues with the next one.
        if let lastTime, tile.time <= lastTime {
          missing.append(
            Storyboard.Missing(
              slot: tile.slot, error: ReelError(.badMedia, "no key frame of its own at \(tile.time)")))
          continue
        }
        lastTime = tile.time
        lastSlot = tile.slot
        return tile
      }
    }
    work.end()
    guard lastTime != nil else {
      throw missing.first?.error ?? work.endFault ?? work.faults.first
        ?? ReelError(.badMedia, "no key frame in the media", at: work.name)
    }
    return nil
  }

  /// Returns the report. Call it after the last tile.
  package func report() throws -> Storyboard.Report {
    try work.report(missing: missing, lastSlot: lastSlot, keyFrameByteCount: keyFrameByteCount)
  }
}

/// The reading of one source's key frames, on several threads.
final class StoryboardWork: Sendable {
  let queue: StoryboardQueue
  let name: String
  let stillLimit: Duration?
  private let clock: any MonotonicClock
  let opening: OpenSource
  private let counter: TrafficCounter
  private let spacing: Storyboard.Spacing
  private let size: SizeLimit
  private let state = Locked(State())

  private struct State {
    var plan: StoryboardPlan?
    var start = MediaTime.zero
    var isLive = false
    var tileSize: PixelSize?
    var hdr: String?
    var rung: (id: String, bitsPerSecond: Int?)?
    var track: StillTrack?
    var faults: [ReelError] = []
    var endFault: ReelError?
    /// The duration in milliseconds of a source that was read to its end; nil if it was read by its index.
    var readDuration: Int?
    var openedByteCount: Int64 = 0
    /// The number of consecutive stills for which nothing arrived in time.
    var silentCount = 0
    var readByteCount: Int64 = 0
    var processorTime = Duration.zero
  }

  /// The number of concurrent transfers of segments: as many as browsers open connections to a host.
  private static let connectionCount = 6
  /// The maximum number of finished tiles that the consumer has not taken.
  private static let tileLimit = 32
  /// The duration in milliseconds above which a segment has several key frames: they are rarely further
  /// apart.
  private static let longSegment = 15_000.0

  init(
    opening: OpenSource, counter: TrafficCounter, spacing: Storyboard.Spacing, size: SizeLimit,
    stillLimit: Duration?, clock: any MonotonicClock, name: String
  ) {
    self.stillLimit = stillLimit
    self.clock = clock
    self.opening = opening
    self.counter = counter
    self.spacing = spacing
    self.size = size
    self.name = name
    queue = StoryboardQueue(runtime: opening.context.scope.runtime, limit: Self.tileLimit)
  }

  var faults: [ReelError] { state.withLock { $0.faults } }
  var endFault: ReelError? { state.withLock { $0.endFault } }
  var isCancelled: Bool { opening.context.scope.isCancelled }

  func makeLimit() -> ReadingLimit {
    ReadingLimit(stillLimit, in: opening.context.scope, clock: clock)
  }

  func begin() {
    let queue = queue
    opening.context.scope.onCancel { queue.fail(CancellationError()) }
    run { work in try work.readFirst() }
  }

  /// Waits until no thread reads any more. Threads that still do so give up.
  func end() {
    queue.fail(CancellationError())
    opening.context.scope.cancel()
    queue.finish()
  }

  func report(
    missing: [Storyboard.Missing], lastSlot: Int, keyFrameByteCount: Int64
  ) throws -> Storyboard.Report {
    let state = state.withLock { $0 }
    guard let plan = state.plan else { throw ReelError(.internalFault, "a storyboard without a plan") }
    let traffic = Poster.Traffic(
      of: opening, counter, fileByteCount: state.readByteCount, keyFrameByteCount: keyFrameByteCount)
    let index =
      traffic.manifestByteCount.map { $0 + (traffic.initializationByteCount ?? 0) } ?? state.openedByteCount
    let slots = max(plan.slotCount ?? 0, lastSlot + 1)
    // The last still may be for a slot that would begin at the end.
    let isEndKnown = state.readDuration.map { $0 > (slots - 1) * plan.interval } ?? false
    return Storyboard.Report(
      interval: plan.interval, slotCount: slots,
      duration: plan.duration.flatMap { lastSlot < plan.slotCount ?? 0 ? $0 : nil }
        ?? min(slots * plan.interval, isEndKnown ? state.readDuration ?? .max : .max),
      start: state.start, isLive: state.isLive, missing: missing, hdr: state.hdr, traffic: traffic,
      indexByteCount: index, rung: state.rung, track: state.track, faults: state.faults,
      endFault: state.endFault,
      processorTime: state.processorTime)
  }

  // MARK: - Private

  /// Runs `body` on a thread of its own. An error that it throws fails the storyboard.
  private func run(_ body: @escaping @Sendable (StoryboardWork) throws -> Void) {
    queue.beginThread()
    opening.context.scope.runtime.run(named: "storyboard") { [self] in
      let before = ThreadTime.now
      Allocator.cachingForThread {
        do { try body(self) } catch { queue.fail(error) }
      }
      let time = ThreadTime.now - before
      state.withLock { $0.processorTime += time }
      queue.endThread()
    }
  }

  /// Opens the source, plans, and reads.
  private func readFirst() throws {
    let worker = StoryboardWorker(self)
    let reader = worker.reader
    defer { finish(reader) }
    // The first segment has a still like any other: if it is unreadable, the others are still delivered.
    let fault = try worker.open()
    let opened = reader.readByteCount
    let places = try worker.limited { try reader.source.allKeyFramePlaces() }
    state.withLock { $0.openedByteCount = opened }
    let start = reader.isLive ? places?.first?.time ?? .zero : .zero
    if reader.isLive {
      guard places?.isEmpty == false else {
        throw ReelError(.unsupported, "a live presentation whose window has no segment", at: name)
      }
    }
    let length = try duration(reader, places, start)
    let plan = try makePlan(places, start: start, duration: length)
    let (isLive, rung) = (reader.isLive, opening.isIndexedFile ? nil : reader.track?.rung)
    state.withLock { state in
      state.plan = plan
      state.start = start
      state.rung = rung.map { ($0.id, $0.bitsPerSecond ?? $0.averageBitsPerSecond) }
      state.track = rung?.stillTrack
      state.isLive = isLive
    }
    worker.start = start
    guard !plan.jobs.isEmpty else {
      if let fault { throw fault }
      // A seek has read the index of Matroska.
      if places != nil, !opening.isPresentation { try worker.restart() }
      return try worker.scan(plan, queue)
    }
    if let cut = reader.source.status.cut { record(fault: cut) }
    queue.setCount(plan.jobs.count)
    reader.source.plan(plan.jobs.dropFirst().map(\.place))
    // The first frame determines the size of all tiles, and the timeline.
    if let job = queue.take() {
      let isFirst = isAtStart(reader) && plan.jobs[job].place == places?.first
      if isFirst, let fault {
        queue.put(.missing(Storyboard.Missing(slot: plan.jobs[job].slot, error: fault)), at: job)
      } else {
        queue.put(try worker.outcome(of: job, in: plan, isFirst: isFirst), at: job)
      }
    }
    let shared = reader.source.sharedTracks
    for _ in 1..<max(1, min(threadCount, plan.jobs.count - 1)) {
      run { work in
        let worker = StoryboardWorker(work, sharing: shared)
        defer { work.finish(worker.reader) }
        worker.start = start
        worker.reader.source.plan(plan.jobs.map(\.place))
        try worker.read(plan, work.queue)
      }
    }
    try worker.read(plan, queue)
  }

  /// Returns true if the reader is at the first key frame of the source: it has not searched for an index,
  /// and joined no live window.
  private func isAtStart(_ reader: FrameReader) -> Bool {
    !reader.isLive && !opening.isMatroska
  }

  private func duration(
    _ reader: FrameReader, _ places: [KeyFramePlace]?, _ start: MediaTime
  ) throws -> Double? {
    if opening.isPresentation, let last = places?.last {
      // Segments are sought in their middle.
      let end = last.time + (last.seekTime - last.time) * 2
      if reader.isLive { return (end - start).seconds }
      return max(end.seconds, min(reader.source.streams.duration?.seconds ?? 0, end.seconds + 1))
    }
    if let duration = reader.source.streams.duration, duration > .zero { return duration.seconds }
    guard places == nil else { return places?.last.map { $0.time.seconds + 1 } }
    if !opening.hasStatedLength {
      throw ReelError(
        .unsupported, "the server states no length: this may be a live stream, which has no end", at: name,
        advice: "record a part of it first")
    }
    return nil
  }

  /// Long segments are read completely, as if their key frames were not known. So is a long Matroska file
  /// whose index has only one.
  private func makePlan(
    _ places: [KeyFramePlace]?, start: MediaTime, duration: Double?
  ) throws -> StoryboardPlan {
    do throws(ReelError) {
      let plan = try StoryboardPlan(spacing, places: places, start: start, duration: duration)
      guard let places, let duration, opening.isPresentation || opening.isMatroska && places.count == 1 else {
        return plan
      }
      let distance = duration * 1000 / Double(max(1, places.count))
      guard distance > Self.longSegment,
        let scanned = try? StoryboardPlan(spacing, places: nil, start: start, duration: duration)
      else { return plan }
      return distance > 2 * Double(scanned.interval) ? scanned : plan
    } catch {
      throw error.located(at: name)
    }
  }

  private var threadCount: Int {
    if opening.isLocal { return ProcessInfo.processInfo.activeProcessorCount }
    // A remote file would be opened again, index and all.
    return opening.isPresentation ? Self.connectionCount : 1
  }

  private func finish(_ reader: FrameReader) {
    let (bytes, faults) = (reader.readByteCount, reader.faults)
    state.withLock { state in
      state.readByteCount += bytes
      // Several workers may have had the same fault, such as a missing playlist.
      for fault in faults where !state.faults.contains(fault) { state.faults.append(fault) }
    }
  }

  /// Returns the size of all tiles: that of the first frame, fitted.
  func tileSize(natural: PixelSize) -> PixelSize {
    let fitted = size.fitted(natural)
    return state.withLock { state in
      state.tileSize = state.tileSize ?? fitted
      return state.tileSize ?? fitted
    }
  }

  /// Scales a frame to a tile.
  func still(of frame: VideoFrame, _ renderer: StillRenderer) throws(ReelError) -> Still {
    let natural = frame.presentationSize
    let size = tileSize(natural: natural)
    let height = Double(size.width) * Double(natural.height) / Double(max(1, natural.width))
    // Frames with another aspect ratio get bars.
    let geometry = frame.geometry(
      target: size, gravity: abs(height - Double(size.height)) <= 1 ? .resize : .resizeAspect)
    return try renderer.render(frame.decoded, geometry: geometry, orientation: frame.orientation)
  }

  /// True if no still has arrived in time for so long that the others are not waited for.
  var isGivenUp: Bool { state.withLock { $0.silentCount } > threadCount + 1 }

  func record(isSilent: Bool) {
    state.withLock { $0.silentCount = isSilent ? $0.silentCount + 1 : 0 }
  }

  /// Records the error that ended the reading of a source, if the number of missing stills is unknown.
  func record(end error: ReelError) { state.withLock { $0.endFault = error } }

  func record(fault: ReelError) { state.withLock { $0.faults.append(fault) } }

  func record(readDuration seconds: Double) {
    state.withLock { $0.readDuration = max(1, Int((seconds * 1000).rounded())) }
  }

  func record(hdr: String) { state.withLock { $0.hdr = hdr } }
}
