import ReelCore
import ReelPlayback
import ReelLab
import ReelReading
import ReelSources

/// Collects the data for a page of `reel play`: samples, events, and the summary of a source.
///
/// Samples are initially 200 ms apart. When there are more than the limit, every second one is dropped, and
/// the distance doubles.
final class PlayRecorder: Sendable {
  /// A moment of playback.
  struct Sample: Sendable, Hashable {
    /// The time since work on the source began, in seconds.
    let time: Double
    /// The media ahead of the frame on show, in seconds.
    let buffered: Double
    /// The estimate of adaptation, in bits per second.
    let bandwidth: Double?
    /// The bit rate of the rung, in bits per second.
    let rungBitRate: Int?
  }

  /// The collected data.
  struct Recording: Sendable {
    var samples: [Sample] = []
    /// The first events. Those between the first and the last ones are only counted.
    var first: [PlayRecord] = []
    var last: [PlayRecord] = []
    var omittedCount = 0
    /// The lateness of shown frames, in milliseconds.
    var lateness: [Double] = []
    var summary: PlayRecordSummary?

    var events: [PlayRecord] { first + last }
  }

  static let sampleLimit = 1_200
  /// The maximum number of events at each end.
  static let eventLimit = 400

  private struct State {
    var recording = Recording()
    var interval = 1
    var tick = 0
  }

  private let state = Locked(State())

  var recording: Recording { state.withLock { $0.recording } }

  func record(_ record: PlayRecord) {
    state.withLock { state in
      guard state.recording.first.count >= Self.eventLimit else {
        state.recording.first.append(record)
        return
      }
      state.recording.last.append(record)
      guard state.recording.last.count > Self.eventLimit else { return }
      state.recording.last.removeFirst()
      state.recording.omittedCount += 1
    }
  }

  /// Records a sample, every 200 ms.
  func record(_ sample: Sample) {
    state.withLock { state in
      defer { state.tick += 1 }
      guard state.tick % state.interval == 0 else { return }
      state.recording.samples.append(sample)
      guard state.recording.samples.count > Self.sampleLimit else { return }
      state.recording.samples = state.recording.samples.enumerated().filter { $0.offset % 2 == 0 }.map(
        \.element)
      state.interval *= 2
    }
  }

  func record(lateness: [Duration]) {
    let values = lateness.map(\.milliseconds).sorted()
    state.withLock { $0.recording.lateness = values }
  }

  func record(_ summary: PlayRecordSummary) { state.withLock { $0.recording.summary = summary } }
}

/// Prints the events of `reel play`: lines of JSON on standard output; or lines of text on standard error and
/// the summary on standard output; or nothing.
final class PlayReport: Sendable {
  enum Form: Sendable, Hashable {
    case json
    /// - Parameter toStandardError: True to print the summary there too, because standard output has the
    ///   frames.
    case text(toStandardError: Bool)
    case nothing
  }

  private let form: Form
  /// The status line; nil if there is none.
  private let progress: PlayProgress?
  /// Collects the records for a page; nil if no page is written.
  let recorder: PlayRecorder?

  init(_ form: Form, recorder: PlayRecorder? = nil) {
    self.form = form
    self.recorder = recorder
    if case .text = form { progress = PlayProgress() } else { progress = nil }
  }

  /// True if `showProgress(_:)` shows anything, or samples are collected.
  var wantsTicks: Bool { progress != nil || recorder != nil }

  /// Prints a record. Throws `ReelError.cannotWriteOutput`.
  func add(_ record: PlayRecord) throws(ReelError) {
    recorder?.record(record)
    switch form {
    case .json: try Console.print(JSONLine.string(record))
    case .text:
      if let line = PlayText.line(for: record, in: Terminal.errorLayout) { show(line) }
    case .nothing: break
    }
  }

  /// Prints a frame, only in JSON. Throws `ReelError.cannotWriteOutput`.
  func add(frame: JSONFields) throws(ReelError) {
    if form == .json { try Console.print(JSONLine.string(frame)) }
  }

  func showProgress(_ line: String) { progress?.show(line) }

  /// Prints the summary. Throws `ReelError.cannotWriteOutput`.
  func finish(_ summary: PlayRecordSummary) throws(ReelError) {
    recorder?.record(summary)
    progress?.clear()
    switch form {
    case .json: try Console.print(JSONLine.string(summary))
    case .text(toStandardError: true): Console.printError(PlayText.summary(summary))
    case .text(toStandardError: false): try Console.printText(PlayText.summary(summary))
    case .nothing: break
    }
  }

  /// Prints the outcomes of assertions: those that are met after the summary, the others on standard error.
  /// JSON has them in the summary.
  ///
  /// - Parameter label: The source, if there are several. Throws `ReelError.cannotWriteOutput`.
  func add(_ outcomes: [AssertionOutcome], of label: String?) throws(ReelError) {
    let label = label.map { "\($0.printable): " } ?? ""
    for outcome in outcomes where outcome.isMet {
      switch form {
      case .text(toStandardError: true):
        Console.printError("\(label)\(outcome.text(in: Terminal.errorLayout))")
      case .text(toStandardError: false):
        try Console.printText("\(label)\(outcome.text(in: Terminal.layout))")
      case .json, .nothing: break
      }
    }
    for outcome in outcomes where !outcome.isMet {
      Console.fault("\(label)\(outcome.text(in: Terminal.errorLayout))")
    }
  }

  // MARK: - Private

  private func show(_ line: String) {
    if let progress { progress.add(line) } else { Console.printError(line) }
  }
}

/// Passes the frames that `reel play` shows to its outputs. It counts them, reports their MD5s, and ends
/// playback after `--duration`.
///
/// It keeps an error of its outputs in `failure`, because a stopped player does not report errors from ending
/// its outputs.
final class PlayFrames: FrameOutput {
  /// Reports and limits besides the outputs.
  struct Options: Sendable {
    /// Media time to play; nil for no limit.
    var duration: MediaTime?
    /// Called with each frame's record; nil for no records.
    var report: (@Sendable (JSONFields) throws -> Void)?
    /// Returns the time since work on the source began.
    var elapsed: @Sendable () -> Duration
  }

  /// The totals of the shown frames.
  struct Account: Sendable {
    var shownCount = 0
    var damagedCount = 0
    /// The media time shown, and the media that was not shown.
    var media = ShownMedia()
    /// True if the whole duration has been played.
    var hasReachedLimit = false
    /// The position on the item's timeline at which the duration was over; nil before that.
    var limitTime: MediaTime?
    var failure: ReelError?

    /// Ends the count, because the duration has been played.
    ///
    /// - Parameter isLost: True if the media after the last frame's own duration is lost.
    mutating func end(whenPassed limit: MediaTime, isLost: Bool) {
      hasReachedLimit = true
      limitTime = media.lastTime.map { $0 + limit - media.passed(at: $0) }
      media.end(whenPassed: limit, isLost: isLost)
    }

    /// Counts the media from the last frame to the end of the duration as dropped.
    mutating func dropRest() {
      guard let end = media.end, let limitTime, end < limitTime else { return }
      media.add(MediaLoss(kind: .video, reason: .dropped, range: end..<limitTime))
    }
  }

  let isExternal: Bool
  private let outputs: [any FrameOutput]
  private let options: Options
  private let onLimit = Locked(Callback<Void>())
  private let state = Locked(State())
  /// Not in `state`, which audio does not need.
  private let calls = Locked(OutputActivity())

  private struct State {
    var account = Account()
    /// The output time of the last frame, and the media time that had passed before it.
    var last: (outputTime: MediaTime, passed: MediaTime)?
    var isFinished = false
  }

  init(_ outputs: [any FrameOutput], options: Options) {
    self.outputs = outputs
    self.options = options
    isExternal = outputs.contains { $0.isExternal }
  }

  var account: Account { state.withLock { $0.account } }

  /// The calls of outputs for frames and audio so far.
  var activity: OutputActivity { calls.withLock { $0 } }

  /// Runs `body`, which calls an output.
  func passing<Result>(_ body: () throws -> Result) rethrows -> Result {
    calls.withLock { $0.begunCount += 1 }
    defer { calls.withLock { $0.endedCount += 1 } }
    return try body()
  }

  /// Sets the handler for the end of the duration. It is called on the thread that shows frames, with the
  /// first frame that is no longer wanted, or on another thread if the time expires before that.
  func setOnLimit(_ body: (@Sendable () -> Void)?) {
    var callback = Callback<Void>()
    if let body { callback.call = { _ in body() } }
    let made = callback
    onLimit.withLock { $0 = made }
  }

  /// Returns the media time left to play when `position` of the item is on show; nil without a limit, and
  /// before the first frame.
  func timeLeft(at position: MediaTime) -> MediaTime? {
    state.withLock { state in
      guard let limit = options.duration, state.account.media.lastTime != nil else { return nil }
      return limit - state.account.media.passed(at: position)
    }
  }

  /// Ends playback because the duration has been played, although no further frame has arrived.
  ///
  /// - Parameter isLost: Returns whether media in a part of the item's timeline is lost.
  func reachLimit(isLost: (Range<MediaTime>) -> Bool) {
    let instant = MediaTime(value: 1, timescale: 1000)
    let isRestLost = account.media.end.map { isLost($0..<$0 + instant) } ?? false
    let isNew = state.withLock { state in
      guard !state.isFinished, !state.account.hasReachedLimit, let limit = options.duration else {
        return false
      }
      state.account.end(whenPassed: limit, isLost: isRestLost)
      return true
    }
    if isNew { onLimit.withLock { $0.call }?(()) }
  }

  /// Ends the count at `position` of the item, so that the last frame counts only up to it.
  func end(at position: MediaTime) {
    state.withLock { state in
      if !state.account.hasReachedLimit { state.account.media.end(at: position) }
    }
  }

  func show(_ frame: VideoFrame) throws {
    let isDamaged = frame.isDamaged
    switch place(of: frame) {
    case .ignored: return
    case .beyond:
      onLimit.withLock { $0.call }?(())
      return
    case .wanted: break
    }
    do {
      if let report = options.report {
        try report(frame.playRecord(after: options.elapsed()))
      }
      try passing { for output in outputs { try output.show(frame) } }
    } catch {
      record(error)
      throw error
    }
    state.withLock { state in
      state.account.shownCount += 1
      if isDamaged { state.account.damagedCount += 1 }
    }
  }

  func ended(at outputTime: MediaTime) {
    let end = wantedEnd(outputTime)
    for output in outputs { output.ended(at: end) }
  }

  /// Returns the end of the wanted frames in output time, if playback ended at `outputTime`.
  func wantedEnd(_ outputTime: MediaTime) -> MediaTime {
    state.withLock { state in
      guard state.account.hasReachedLimit, let limit = options.duration, let last = state.last else {
        return outputTime
      }
      return min(outputTime, last.outputTime + (limit - last.passed))
    }
  }

  func finish() throws {
    let wasFinished = state.withLock { state in
      defer { state.isFinished = true }
      return state.isFinished
    }
    guard !wasFinished else { return }
    for output in outputs {
      do { try output.finish() } catch { record(error) }
    }
    if let failure = account.failure { throw failure }
  }

  // MARK: - Private

  private enum Place {
    case wanted
    /// The first frame after the wanted ones.
    case beyond
    case ignored
  }

  /// Returns whether the frame is among the wanted ones.
  private func place(of frame: VideoFrame) -> Place {
    let (time, length, leftOut, loss) = (frame.time, frame.displayTime, frame.skipped, frame.loss)
    let outputTime = frame.outputTime
    return state.withLock { state in
      if state.isFinished || state.account.hasReachedLimit { return .ignored }
      let passed = state.account.media.passed(before: time, leftOut: leftOut)
      if let limit = options.duration, passed >= limit {
        state.account.end(whenPassed: limit, isLost: loss != nil)
        // Other losses are in the log of the item.
        if loss?.reason == .dropped { state.account.dropRest() }
        return .beyond
      }
      state.last = (outputTime, passed)
      state.account.media.show(time, length: length, leftOut: leftOut, loss: loss)
      return .wanted
    }
  }

  private func record(_ error: any Error) {
    state.withLock { state in
      if state.account.failure == nil { state.account.failure = error.asReelError }
    }
  }
}

/// The calls of the outputs of `reel play`.
struct OutputActivity: Sendable, Hashable {
  var begunCount = 0
  var endedCount = 0

  /// True while an output is being called.
  var isBusy: Bool { begunCount != endedCount }
}

/// The audio that `reel play` writes: an output that keeps its failure, and leaves no file if nothing was
/// played.
final class PlaySound: AudioOutput {
  private struct State {
    /// Nil once it has been finished or has failed.
    var output: (any AudioOutput)?
    var isEmpty = true
    var failure: ReelError?
  }

  private let state: Locked<State>
  /// The frames that belong to the audio.
  private let frames: PlayFrames

  init(_ output: any AudioOutput, of frames: PlayFrames) {
    state = Locked(State(output: output), rank: .body)
    self.frames = frames
  }

  /// The error of writing; nil for none.
  var failure: ReelError? { state.withLock { $0.failure } }

  func write(_ audio: TimedAudio) throws {
    try state.withLock { state in
      do {
        try frames.passing { try state.output?.write(audio) }
        state.isEmpty = false
      } catch {
        state.failure = error.asReelError
        throw error
      }
    }
  }

  func soundEnded() { state.withLock { $0.output?.soundEnded() } }

  func ended(at outputTime: MediaTime) {
    let end = frames.wantedEnd(outputTime)
    state.withLock { $0.output?.ended(at: end) }
  }

  func finish() throws {
    // The item has frames but no audio: keep a file without samples.
    let keepsEmpty = frames.account.shownCount > 0
    try state.withLock { state in
      defer { state.output = nil }
      guard state.failure == nil, !state.isEmpty || keepsEmpty else { return }
      do { try state.output?.finish() } catch {
        state.failure = error.asReelError
        throw error
      }
    }
  }
}
