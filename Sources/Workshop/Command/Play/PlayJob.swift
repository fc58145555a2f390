import Foundation
import Logging
import ReelCore
import ReelFiles
import ReelPlayback
import ReelPool
import ReelLab
import ReelSources

/// Plays one source of `reel play`, from its first request to its summary.
final class PlayJob: Sendable {
  private let command: PlayCommand
  private let job: SourceRun.Job
  private let assertions: [PlaybackAssertion]
  private let configuration: PlayerConfiguration
  private let traffic: TrafficCounter
  private let report: PlayReport
  private let logger: Logger
  private let start: Duration

  init(
    _ command: PlayCommand, _ job: SourceRun.Job, assertions: [PlaybackAssertion],
    configuration: PlayerConfiguration, fetcher: any Fetching, report: PlayReport, logger: Logger
  ) {
    self.command = command
    self.job = job
    self.assertions = assertions
    self.configuration = configuration
    start = configuration.clock.now
    traffic = TrafficCounter(fetcher)
    self.report = report
    self.logger = logger
  }

  /// The result of playing a source.
  struct Verdict {
    let summary: PlayRecordSummary
    /// The failure of the source, an output or the summary; `cancelled` if playback was interrupted.
    var failure: ReelError?
    /// The first media that was missed, damaged or skipped.
    var loss: ReelError?
  }

  /// Plays, and prints the summary. Ends soon after its task is cancelled.
  func run() async -> Verdict {
    let session: Session
    do throws(ReelError) {
      session = try begin(job.source)
    } catch {
      var summary = PlayRecordSummary(source: job.text, error: error)
      evaluate(&summary)
      try? finish(summary)
      return Verdict(summary: summary, failure: error)
    }
    let outcome = await follow(session)
    var verdict = await end(session, outcome)
    do throws(ReelError) { try finish(verdict.summary) } catch { verdict.failure = verdict.failure ?? error }
    if outcome.ending == .interrupted { verdict.failure = verdict.failure ?? .interrupted }
    return verdict
  }

  // MARK: - Private

  /// A player and its outputs.
  private struct Session: Sendable {
    let player: Player
    let item: PlayerItem
    let frames: PlayFrames
    let sound: PlaySound?
    let signals: AsyncStream<Signal>
    let signal: AsyncStream<Signal>.Continuation

    /// What changes while the source is played.
    var progress: Progress { Progress(position: player.currentTime, activity: frames.activity) }
  }

  private struct Progress: Equatable {
    var position: MediaTime
    var activity: OutputActivity
  }

  /// The signals that the job waits for.
  fileprivate enum Signal: Sendable {
    case status(TimeControlStatus)
    /// The item is ready to play.
    case ready
    case event(PlayerEvent)
    case tracksKnown
    /// The duration has been played.
    case reachedLimit(Figures)
    /// Nothing has been shown for the time limit, or too little.
    case late(reason: String)
    /// The progress line is due.
    case tick
  }

  /// The figures of a moment.
  fileprivate struct Figures: Sendable {
    let statistics: PlayerStatistics
    /// The time since work on the source began.
    let wall: Duration
  }

  private struct Outcome {
    var ending: PlayRecordSummary.Ending
    var failure: ReelError?
    /// The figures at the end; nil for the current ones.
    var figures: Figures?
  }

  /// The number of signals kept while a line can't be written. Beyond it the oldest are dropped, never the
  /// end.
  private static let signalLimit = 4096
  private static let progressInterval = Duration.milliseconds(200)
  /// The media time in seconds by which a frame may exceed the limit.
  private static let limitGrace = 0.02

  private var clock: any MonotonicClock { configuration.clock }
  private var elapsed: Duration { clock.now - start }
  private var timeout: Duration { .seconds(job.timeout) }

  private func begin(_ source: MediaSource) throws(ReelError) -> Session {
    let nut = try command.nut.map { path throws(ReelError) in
      path == "-"
        ? NUTOutput.standardOutput(hasAudio: !command.mute)
        : try NUTOutput(path: path, hasAudio: !command.mute)
    }
    let frames = try makeFrames(nut)
    let wav = try command.wav.map { path throws(ReelError) -> any AudioOutput in try WAVOutput(path: path) }
    let sound = (wav ?? nut?.audio).map { PlaySound($0, of: frames) }
    let player = Player(fetcher: traffic, configuration: configuration, logger: logger)
    let item = PlayerItem(source)
    item.preferredForwardBufferDuration = .seconds(command.buffer)
    let (signals, signal) = AsyncStream.makeStream(
      of: Signal.self, bufferingPolicy: .bufferingNewest(Self.signalLimit))
    frames.setOnLimit { [weak player, clock, start] in
      // Pause at once: at a rate of max, another frame would be shown before the signal is handled.
      guard let player else { return }
      player.pause()
      signal.yield(.reachedLimit(Figures(statistics: player.statistics, wall: clock.now - start)))
    }
    let session = Session(
      player: player, item: item, frames: frames, sound: sound, signals: signals, signal: signal)
    if command.loop { player.actionAtItemEnd = .loop }
    player.setMuted(command.mute)
    try player.attach(frames)
    if let sound { player.attach(sound) }
    player.setRate(command.rate)
    // Each is added to the signals where it happens, so that what came before the end is reported before it.
    player.observeEvents { signal.yield(.event($0)) }
    player.timeControlStatus.observe { signal.yield(.status($0)) }
    item.status.observe { if $0 == .readyToPlay { signal.yield(.ready) } }
    item.areTracksKnown.observe { if $0 { signal.yield(.tracksKnown) } }
    if let start = command.startTime {
      player.replaceCurrentItem(with: item, startingAt: start)
    } else {
      player.replaceCurrentItem(with: item)
    }
    return session
  }

  private func makeFrames(_ nut: NUTOutput?) throws(ReelError) -> PlayFrames {
    var outputs: [any FrameOutput] = []
    if let nut { outputs.append(nut) }
    if let path = command.y4m {
      outputs.append(path == "-" ? Y4MOutput.standardOutput() : try Y4MOutput(path: path))
    }
    if let folder = command.files.output {
      outputs.append(
        try ImageSequenceOutput(
          directory: command.isList ? job.folder : folder, stem: job.stem,
          format: command.files.format == .png ? .png : .ppm, size: command.image.imageSize,
          existing: job.existingFiles))
    }
    if outputs.isEmpty { outputs.append(NullOutput()) }
    var imageOptions = PlayFrames.Options(
      duration: command.playedTime, elapsed: { [clock, start] in clock.now - start })
    if command.md5 { imageOptions.report = { [report] record in try report.add(frame: record) } }
    return PlayFrames(outputs, options: imageOptions)
  }

  // MARK: While it plays

  private func follow(_ session: Session) async -> Outcome {
    let signal = session.signal
    return await withTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask { await self.watchProgress(of: session) }
      group.addTask { await self.watchLimit(of: session) }
      if report.wantsTicks {
        group.addTask {
          while !Task.isCancelled {
            signal.yield(.tick)
            try? await self.clock.sleep(for: Self.progressInterval)
          }
        }
      }
      var (isReady, hasToldReady) = (false, false)
      // A cancelled stream still delivers its pending signals: what has happened is reported.
      for await signal in session.signals {
        do {
          if case .ready = signal { isReady = true }
          // Once the item plays or is over, `ready` no longer waits for all streams to be known.
          if isReady, !hasToldReady, signal.isBeyondReady || session.item.areTracksKnown.value {
            hasToldReady = true
            if !session.item.tracks.value.contains(where: { $0.kind == .audio }) {
              session.sound?.soundEnded()
            }
            try report.add(
              PlayRecord(.ready(session.item), position: session.player.currentTime, after: elapsed))
          }
          if let outcome = try handle(signal, of: session) { return outcome }
        } catch {
          return Outcome(ending: .failed, failure: error.asReelError)
        }
      }
      return Outcome(ending: .interrupted)
    }
  }

  /// Ends playback when `--duration` has been played, even if no frame comes then. At a rate of max there is no
  /// such time, and the next frame ends it.
  private func watchLimit(of session: Session) async {
    guard command.duration != nil, command.rate.isFinite else { return }
    while !Task.isCancelled {
      let left = session.frames.timeLeft(at: session.player.currentTime)
      // A frame that was due just before, but is late, takes precedence.
      if let left, left.seconds <= -Self.limitGrace {
        return session.frames.reachLimit { session.item.videoLoss(in: $0) != nil }
      }
      let pause = left.map { max($0.seconds + Self.limitGrace, 0) / command.rate } ?? 0
      try? await clock.sleep(for: .seconds(min(max(pause, 0.005), 0.1)))
    }
  }

  /// Tells when nothing has been shown for `--timeout`: no first frame, or none after it while playback waits for media; or
  /// when stalls have used up their budget (`StallBudget`). There is no limit while playback continues, or for a slow output.
  private func watchProgress(of session: Session) async {
    let step = max(.milliseconds(1), min(timeout / 20, .milliseconds(500)))
    var (last, checked, idle) = (session.progress, clock.now, Duration.zero)
    var stalls = StallBudget()
    while idle < timeout, !stalls.exceeds(timeout) {
      try? await clock.sleep(for: step)
      if Task.isCancelled { return }
      let (progress, now) = (session.progress, clock.now)
      // A process that was stopped for a while has not waited.
      let passed = min(now - checked, step * 4)
      idle = progress == last && !progress.activity.isBusy ? idle + passed : .zero
      (last, checked) = (progress, now)
      stalls.update(
        stalled: session.player.statisticsWithoutUnshown.stallDuration,
        played: .seconds(session.frames.account.media.played.seconds), atMost: passed)
    }
    let limit = DurationText.readable(timeout)
    let isFirst = session.frames.account.media.lastTime == nil
    let reason =
      if idle < timeout { stalls.reason } else if isFirst { "no frame within \(limit)" } else {
        "nothing to play for \(limit)"
      }
    session.signal.yield(.late(reason: reason))
  }

  /// Reports a signal; returns the outcome if it was the last one. Throws `ReelError.cannotWriteOutput`.
  private func handle(_ signal: Signal, of session: Session) throws(ReelError) -> Outcome? {
    let position = session.player.currentTime
    switch signal {
    case .status(.paused), .status(.waitingToPlayAtSpecifiedRate(.noItemToPlay)):
      // Sent before the beginning, and at an end or a failure, which have messages of their own.
      return nil
    case .status(let status):
      try report.add(PlayRecord(.status(status), position: position, after: elapsed))
    case .ready, .tracksKnown: return nil
    case .event(let event):
      try report.add(PlayRecord(.player(event), position: position, after: elapsed))
      switch event {
      case .playedToEnd: return Outcome(ending: .playedToEnd)
      case .failed(let error), .outputFailed(let error): return Outcome(ending: .failed, failure: error)
      default: return nil
      }
    case .reachedLimit(let figures): return Outcome(ending: .duration, figures: figures)
    case .late(let reason):
      return Outcome(
        ending: .failed,
        failure: ReelError(lateness: reason, of: session.item.source.name, after: traffic.lastFailure))
    case .tick:
      let statistics = session.player.statistics
      report.recorder?.record(
        PlayRecorder.Sample(
          time: elapsed / .seconds(1), buffered: statistics.bufferedDuration / .seconds(1),
          bandwidth: statistics.estimatedBandwidth,
          rungBitRate: session.item.accessLog.last?.indicatedBitRate))
      report.showProgress(
        PlayText.progress(item: session.item, position: position, statistics: statistics))
    }
    return nil
  }

  // MARK: The end

  private func evaluate(_ summary: inout PlayRecordSummary) {
    if !assertions.isEmpty { summary.assertions = assertions.map { $0.evaluate(summary) } }
  }

  private func finish(_ summary: PlayRecordSummary) throws(ReelError) {
    try report.finish(summary)
    try report.add(summary.assertions ?? [], of: command.playsSeveral ? job.text : nil)
  }

  private func end(_ session: Session, _ outcome: Outcome) async -> Verdict {
    // A stopped player no longer has its statistics.
    let figures = outcome.figures ?? Figures(statistics: session.player.statistics, wall: elapsed)
    let (statistics, wall) = (figures.statistics, figures.wall)
    report.recorder?.record(lateness: statistics.lateness)
    let (position, latency) = (session.player.currentTime, session.item.liveLatency.value)
    if outcome.ending == .interrupted, command.rate.isFinite { session.frames.end(at: position) }
    if outcome.ending == .interrupted {
      // The outputs are finished here. Readers end by themselves, without being waited for.
      session.player.stop()
    } else {
      await session.player.stopAndWait()
    }
    let account = session.frames.account
    let failure = account.failure ?? session.sound?.failure ?? outcome.failure
    var summary = PlayRecordSummary(
      source: job.text, item: session.item, statistics: statistics,
      ended: failure == nil ? outcome.ending : .failed, wall: wall)
    let losses = PlayLosses(
      account, failures: session.item.errorLog, start: command.startTime,
      isComplete: outcome.ending == .playedToEnd, source: session.item.source.name)
    summary.position = account.media.lastTime?.roundedSeconds
    summary.set(losses)
    summary.liveLatencyMs = latency?.milliseconds
    // The player may have passed one frame too many to the outputs.
    summary.setFramesShown(account.shownCount)
    summary.frames.damaged = account.damagedCount
    summary.setTraffic(network: traffic.network, local: traffic.local, of: session.item)
    summary.error = failure.map(ErrorRecord.init)
    evaluate(&summary)
    return Verdict(summary: summary, failure: failure, loss: losses.first)
  }
}

extension PlayJob.Signal {
  /// True if the item plays or is over, so that `ready` must have been reported.
  fileprivate var isBeyondReady: Bool {
    switch self {
    case .status(.playing), .event(.playedToEnd), .event(.failed), .reachedLimit: true
    default: false
    }
  }
}
