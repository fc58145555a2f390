public import Foundation
public import Logging
public import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
public import ReelSources
internal import Synchronization

/// Extracts decoded frames from sources, as `reel frames` does.
///
/// You can begin any number of extractions at once. Each has a thread while it runs, so the process runs 32 at a time, or 4
/// for each processor if those are more, together with probes, posters and storyboards; the others wait.
public struct FrameExtractor: Sendable {
  /// The result of an extraction.
  public struct Report: Sendable {
    /// The number of frames that were extracted.
    public var frameCount = 0
    /// The number of decoded frames, extracted or not, that missed a reference or were concealed.
    public var damagedCount = 0
    /// The duration of each stage up to the first extracted frame.
    public var startup = StartupReport()
    /// The number of segments that could not be loaded, or had left the live window before they were read.
    package var missedSegmentCount = 0
    /// The errors despite which extraction continued: media was left out, or loaded from elsewhere. The first
    /// 100 are kept.
    public var faults: [ReelError] = []
    /// The error if the clock and the timeline of a live source do not agree (ISO/IEC 23009-1 §5.3.9.5.3).
    package var clockFault: ReelError?
    /// The bytes of the container up to the end of the packet with the first frame.
    package var firstFrameEnd: Int64?
    /// The chosen rung's bit rate as the manifest states it, in bits per second. Nil for a media file.
    package var rungBitsPerSecond: Int?
  }

  private var opener: TrackOpener

  /// Creates an extractor.
  ///
  /// - Parameters:
  ///   - fetcher: Fetches manifests and media.
  ///   - configuration: The configuration of loading.
  ///   - logger: Receives the messages of FFmpeg's libraries.
  public init(
    fetcher: any Fetching, configuration: LoadingConfiguration = LoadingConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(
      TrackOpener(fetcher: fetcher, configuration: configuration, limit: .sources, logger: logger))
  }

  /// Creates an extractor that opens sources with `opener`.
  package init(_ opener: TrackOpener) { self.opener = opener }

  /// Returns the frame on show at a time: upright, with square pixels, in RGB.
  ///
  /// - Parameters:
  ///   - time: The time on the timeline of the source, which begins at 0. `.first` is read from the fewest bytes.
  ///   - url: An `http`, `https` or `file` URL of a media file, an HLS playlist or a DASH MPD.
  ///   - maximumSize: The size that the frame must fit into. It is not enlarged. The cheapest rung that is large enough
  ///     is read, whatever the bandwidth cap. If nil, the frame has its own size.
  /// - Returns: The frame, with its own time, at or before `time`.
  ///
  /// Throws `ReelError`, or `CancellationError`. The error's kind is `badMedia` if the source has no frame, and `usage`
  /// if the time is after the end.
  public func image(
    at time: MediaTime, of url: URL, maximumSize: PixelSize? = nil
  ) async throws -> VideoFrame {
    for try await image in images(at: [time], of: url, maximumSize: maximumSize) { return image }
    throw CancellationError()
  }

  /// Returns the frames on show at some times, as ``image(at:of:maximumSize:)`` does, in order of time.
  ///
  /// Extraction begins at once, runs a few images ahead of the reader, and ends with the sequence. An error ends the
  /// sequence, as `CancellationError` does if the task that reads is cancelled.
  public func images(
    at times: [MediaTime], of url: URL, maximumSize: PixelSize? = nil
  ) -> AsyncThrowingStream<VideoFrame, any Error> {
    var extractor = self
    if let maximumSize { extractor.opener.configuration.shownSize = .box(maximumSize) }
    let selection = times == [.first] ? FrameSelection.first : .times(times)
    let (images, continuation) = AsyncThrowingStream.makeStream(
      of: VideoFrame.self, bufferingPolicy: .bufferingOldest(Self.imagesAhead))
    let task = Task { [extractor] in
      do {
        try await extractor.extract(selection, from: .url(url)) { frame in
          let image = try frame.scaled(toFit: maximumSize ?? frame.presentationSize)
          // The buffer may be full, and images are large.
          guard case .dropped = continuation.yield(image) else { return }
          extractor.opener.pausing {
            while case .dropped = continuation.yield(image) { Thread.sleep(forTimeInterval: 0.005) }
          }
        }
        continuation.finish()
      } catch {
        continuation.finish(throwing: error)
      }
    }
    continuation.onTermination = { _ in
      // A cancelled stream would end as if all was read.
      continuation.finish(throwing: CancellationError())
      task.cancel()
    }
    return images
  }

  /// The number of images that wait for their reader.
  private static let imagesAhead = 4

  /// Extracts the selected frames from a source.
  ///
  /// - Parameters:
  ///   - selection: The frames to extract.
  ///   - source: The source of the frames.
  ///   - handle: Called with each frame, in presentation order, on the extraction's thread. The extraction waits for it
  ///     to return. You can keep the frame; it holds its memory.
  ///
  /// Throws `ReelError`, the error that `handle` threw, or `CancellationError`. `handle` may have received frames
  /// before that. The error's kind is `badMedia` if the source has no frame, and `usage` if a time is after the end or
  /// an interval is not greater than 0.
  @discardableResult
  public func extract(
    _ selection: FrameSelection, from source: MediaSource,
    handle: @escaping @Sendable (VideoFrame) throws -> Void
  ) async throws -> Report {
    if case .every(let interval) = selection, interval <= .zero {
      throw ReelError(.usage, "the interval between frames must be greater than 0", at: source.name)
    }
    // If the source is opened again, because a store has parts of another version, it goes on after the last frame.
    let givenCount = Atomic(0)
    return try await opener.use(source, readsAhead: selection.readsAhead) { opening in
      let given = givenCount.load(ordering: .relaxed)
      let count = Atomic(0)
      let handle = { @Sendable (frame: VideoFrame) throws in
        guard count.add(1, ordering: .relaxed).newValue > given else { return }
        givenCount.add(1, ordering: .relaxed)
        try handle(frame)
      }
      return try await BlockingThread.run(
        named: "extract", on: opening.context.scope.runtime, cachesMemory: true
      ) {
        var report = try FramePicker(
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

extension MediaTime {
  /// The time of a source's first frame: 0.
  public static let first = MediaTime.zero
}

extension FrameSelection {
  /// True if more than the first few frames are needed, in order.
  fileprivate var readsAhead: Bool {
    switch self {
    case .first, .times: false
    case .count(let count): count == 0 || count > 8
    case .every: true
    }
  }
}

/// Picks the selected frames of a track, for one call.
package struct FramePicker {
  let reader: FrameReader
  let recorder: StartupRecorder
  let name: String
  var report = FrameExtractor.Report()
  /// The number of packets rejected before the first frame: a stream may begin with packets that can't be
  /// decoded.
  private var rejectedAtFirst = 0

  package init(reader: FrameReader, recorder: StartupRecorder, name: String) {
    self.reader = reader
    self.recorder = recorder
    self.name = name
  }

  package consuming func pick(
    _ selection: FrameSelection, handle: (VideoFrame) throws -> Void
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
    report.damagedCount = reader.decoder.damagedCount
    report.startup = recorder.current
    report.rungBitsPerSecond = reader.track?.rung.bitsPerSecond
    report.missedSegmentCount = reader.source.status.missedSegmentCount
    report.faults = reader.faults
    // The segments of a playlist of I-frames lack the other frames that their headers name.
    let rejectedCount = reader.track == nil ? reader.decoder.rejectedPacketCount - rejectedAtFirst : 0
    if rejectedCount > 0 {
      let what = rejectedCount.counted("packet")
      report.faults.append(ReelError(.badMedia, "\(what) can't be decoded", at: name))
    }
    return report
  }

  // MARK: - Private

  private var noFrame: ReelError { ReelError(.badMedia, "no frame in the media", at: name) }

  private mutating func hand(
    _ frame: VideoFrame, to handle: (VideoFrame) throws -> Void
  ) throws {
    if report.frameCount == 0 {
      recorder.close(reader.timing)
      report.firstFrameEnd = reader.firstFrameEnd
      rejectedAtFirst = reader.decoder.rejectedPacketCount
    }
    try handle(frame)
    report.frameCount += 1
  }

  /// Returns the frames on show at `times`, the earliest first, because a source that can't seek is only read
  /// forward.
  private mutating func pick(
    times: [MediaTime], handle: (VideoFrame) throws -> Void
  ) throws {
    var cursor = Cursor()
    for time in times.sorted() {
      // Printed times are rounded to the microsecond: accept the frame that a printed time refers to.
      let printed = time == .zero ? time : time + MediaTime(value: 1, timescale: 1_000_000)
      guard let found = try cursor.frame(at: printed, reader: reader) else { throw noFrame }
      if found == .afterEnd {
        let last = cursor.current.map { ": the last one is at \($0.time.seconds.formatted(places: 3)) s" }
        throw ReelError(
          .usage, "there is no frame at \(time.seconds.formatted(places: 3)) s\(last ?? "")", at: name)
      }
      if let frame = cursor.current { try hand(frame, to: handle) }
    }
  }

  private mutating func pick(
    every length: MediaTime, handle: (VideoFrame) throws -> Void
  ) throws {
    var cursor = Cursor()
    var index: Int64 = 0
    while let found = try cursor.frame(at: length * index, reader: reader), found != .afterEnd {
      if let frame = cursor.current { try hand(frame, to: handle) }
      index += 1
    }
    if index == 0 { throw noFrame }
  }
}

/// The position of a picker in a track: the frame on show, and the one after it.
private struct Cursor {
  enum Found {
    case onShow
    /// Every frame ends before the time.
    case afterEnd
  }

  var current: VideoFrame?
  private var following: VideoFrame?
  private var hasEnded = false

  /// Makes `current` the frame on show at `time`; nil if there is no frame at all.
  mutating func frame(at time: MediaTime, reader: FrameReader) throws -> Found? {
    if time <= .zero, current == nil, following == nil {
      // The frame at 0 is the first one, even if the manifest places it before its period.
      current = try reader.nextFrame()
      return current == nil ? nil : .onShow
    }
    try move(to: time, reader: reader)
    while !hasEnded {
      if let next = following?.time, next > time, current != nil { break }
      if following != nil {
        // Before the first frame, use the first one.
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
    guard isBehind || reader.source.isSeekWorthwhile(to: time, from: position ?? .zero) else { return }
    current = nil
    following = nil
    hasEnded = false
    try reader.seek(to: time)
    following = try reader.nextFrame()
    if following == nil { hasEnded = true }
  }
}

/// The frames to extract from a source.
public enum FrameSelection: Sendable, Hashable {
  /// The earliest frame, from as few bytes as possible.
  case first
  /// This number of frames from the beginning, in presentation order; 0 for all frames.
  case count(Int)
  /// The frames on show at these times, in order of time: the last frame that begins at or before each.
  ///
  /// A frame that begins up to 1 µs after the time is accepted, as printed times are rounded. Time 0 selects the first
  /// frame, even if the manifest places it before 0. A time after the end is an error.
  case times([MediaTime])
  /// The frames on show at 0 and at every multiple of this interval, to the end: a frame that is on show at several of
  /// these times is given for each. An interval that is not greater than 0 is an error.
  case every(MediaTime)
}
