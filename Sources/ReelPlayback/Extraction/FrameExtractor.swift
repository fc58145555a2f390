public import Logging
public import ReelCore
package import ReelFFmpeg
internal import ReelManifest

/// Takes frames out of sources of every kind: the main job of `reel frames`.
///
/// Any number of extractions can run at once: each uses a thread only while it runs, and with a gate no more decode at
/// a time than it has permits.
public struct FrameExtractor: Sendable {
  /// What an extraction did.
  public struct Report: Sendable {
    public var frameCount = 0
    /// Frames among them, or decoded on the way, that missed a reference or were concealed.
    public var damagedCount = 0
    public var startup = StartupReport()
    /// Segments that could not be had, or had left a live window before they were read.
    public var missedSegmentCount = 0
    /// What could not be read, and was left out or had from elsewhere; the first hundred.
    public var faults: [ReelError] = []
    /// Live: the error if the clock did not fit the timeline (`LiveTiming.drift`).
    public var clockFault: ReelError?
    /// Bytes of the container up to the end of the first frame's packet.
    public var firstFrameEnd: Int64?
    /// The bit rate of the rung that was chosen, as the manifest states it; nil for a media file.
    public var rungBitsPerSecond: Int?
  }

  public let fetcher: any Fetching
  public let configuration: LoadingConfiguration
  private let gate: (any DecodingGate)?
  private let logger: Logger

  /// - Parameter fetcher: Gets manifests and media.
  public init(
    fetcher: any Fetching, configuration: LoadingConfiguration = LoadingConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(fetcher: fetcher, configuration: configuration, gate: nil, logger: logger)
  }

  /// - Parameter gate: Bounds decoding over all that share it.
  package init(
    fetcher: any Fetching, configuration: LoadingConfiguration = LoadingConfiguration(),
    gate: (any DecodingGate)?,
    logger: Logger
  ) {
    self.fetcher = fetcher
    self.configuration = configuration
    self.gate = gate
    self.logger = logger
  }

  /// Calls `handle` with each wanted frame, in presentation order, on a thread of the
  /// extraction's own, which waits for it.
  ///
  /// Throws `ReelError`, what `handle` threw, or `CancellationError`; what was handed out before stays.
  @discardableResult
  public func extract(
    _ selection: FrameSelection, from source: MediaSource,
    handle: @escaping @Sendable (borrowing TimedFrame) throws -> Void
  ) async throws -> Report {
    try await TrackOpening.use(
      source, readsAhead: selection.readsAhead, fetcher: fetcher, configuration: configuration, gate: gate,
      logger: logger
    ) { opening in
      try await BlockingThread.run(named: "extract") {
        var report = try Picker(
          reader: FrameReader(opening), recorder: opening.context.recorder, name: source.name
        ).pick(selection, handle: handle)
        if case .presentation(let resolved) = opening.source {
          report.clockFault = resolved.presentation.live?.driftFault
        }
        return report
      }
    }
  }
}

extension FrameSelection {
  /// More than the first few frames are wanted, one after the other.
  fileprivate var readsAhead: Bool {
    switch self {
    case .first, .times: false
    case .count(let count): count == 0 || count > 8
    case .every: true
    }
  }
}

/// Picks the wanted frames from a track.
private struct Picker {
  let reader: FrameReader
  let recorder: StartupRecorder
  let name: String
  var report = FrameExtractor.Report()

  init(reader: FrameReader, recorder: StartupRecorder, name: String) {
    self.reader = reader
    self.recorder = recorder
    self.name = name
  }

  consuming func pick(
    _ selection: FrameSelection, handle: (borrowing TimedFrame) throws -> Void
  ) throws -> FrameExtractor.Report {
    switch selection {
    case .first:
      guard let frame = try reader.firstFrame() else { throw noFrame }
      try hand(frame, to: handle)
    case .count(let count):
      while count == 0 || report.frameCount < count, let frame = try reader.nextFrame() {
        try hand(frame, to: handle)
      }
      if report.frameCount == 0 { throw noFrame }
    case .times(let times):
      try pick(times: times, handle: handle)
    case .every(let length):
      try pick(every: length, handle: handle)
    }
    report.damagedCount = reader.damagedCount
    report.startup = recorder.current
    report.rungBitsPerSecond = reader.track?.rung.bitsPerSecond
    report.missedSegmentCount = reader.missedSegmentCount
    report.faults = reader.faults
    return report
  }

  // MARK: - Private

  private var noFrame: ReelError { ReelError(.badMedia, "no frame in the media", at: name) }

  private mutating func hand(
    _ frame: borrowing TimedFrame, to handle: (borrowing TimedFrame) throws -> Void
  ) throws {
    if report.frameCount == 0 {
      recorder.close(reader.timing)
      report.firstFrameEnd = reader.firstFrameEnd
    }
    try handle(frame)
    report.frameCount += 1
  }

  /// The frames on show at `times`, the earliest first: a source that only streams can't go back.
  private mutating func pick(
    times: [MediaTime], handle: (borrowing TimedFrame) throws -> Void
  ) throws {
    var cursor = Cursor()
    for time in times.sorted() {
      // A time that was printed is rounded to the microsecond: it names the frame that it was printed for.
      let printed = time == .zero ? time : time + MediaTime(value: 1, timescale: 1_000_000)
      guard let found = try cursor.frame(at: printed, reader: reader) else { throw noFrame }
      if found == .afterEnd {
        throw ReelError(.usage, "there is no frame at \(time.seconds) s: the media ends before", at: name)
      }
      if let frame = cursor.current.take() {
        try hand(frame, to: handle)
        cursor.current = consume frame
      }
    }
  }

  private mutating func pick(
    every length: MediaTime, handle: (borrowing TimedFrame) throws -> Void
  ) throws {
    var cursor = Cursor()
    var index: Int64 = 0
    while let found = try cursor.frame(at: length * index, reader: reader), found != .afterEnd {
      if let frame = cursor.current.take() {
        try hand(frame, to: handle)
        cursor.current = consume frame
      }
      index += 1
    }
    if index == 0 { throw noFrame }
  }
}

/// Where a picker stands in a track: the frame on show, and the one after it.
private struct Cursor: ~Copyable {
  enum Found {
    case onShow
    /// Every frame ends before the time.
    case afterEnd
  }

  var current: TimedFrame?
  private var following: TimedFrame?
  private var hasEnded = false

  /// Makes `current` the frame on show at `time`; nil where there is none at all.
  mutating func frame(at time: MediaTime, reader: FrameReader) throws -> Found? {
    if time <= .zero, current == nil, following == nil {
      // The first frame is the one at 0, even if the manifest places it before its period begins.
      current = try reader.nextFrame()
      return current == nil ? nil : .onShow
    }
    try move(to: time, reader: reader)
    while !hasEnded {
      if let next = following?.time, next > time, current != nil { break }
      if following != nil {
        // Before the first frame, the first is taken.
        guard current == nil || (following?.time ?? time) <= time else { break }
        current = following.take()
      }
      following = try reader.nextFrame()
      if following == nil { hasEnded = true }
    }
    guard let last = current?.time else { return nil }
    if hasEnded, following == nil, let length = current?.displayTime, time >= last + length {
      return .afterEnd
    }
    return .onShow
  }

  private mutating func move(to time: MediaTime, reader: FrameReader) throws {
    let position = following?.time ?? current?.time
    let isBehind = (current?.time).map { time < $0 } ?? false
    guard isBehind || reader.isSeekWorthwhile(to: time, from: position ?? .zero) else { return }
    current = nil
    following = nil
    hasEnded = false
    try reader.seek(to: time)
    following = try reader.nextFrame()
    if following == nil { hasEnded = true }
  }
}
