internal import Logging
internal import ReelCore
internal import ReelPlayback
internal import ReelSources

/// A look of a viewer that decodes: a `Player`, whose frames nobody sees.
package struct DecodedViewer: Sendable {
  private let look: ViewerLook
  /// The time between two reports of the latency.
  private static let tick = Duration.milliseconds(500)

  package init(_ look: ViewerLook) { self.look = look }

  /// Watches until the end of the source or of the look. Cancelling the task ends all transfers.
  package func run() async -> ViewerSums.Ending {
    let clock = look.clock
    let (signals, continuation) = AsyncStream.makeStream(of: (Signal, Duration).self)
    let send = { @Sendable (signal: Signal) -> Void in continuation.yield((signal, clock.now)) }
    let item = PlayerItem(look.media, headers: look.access.headers)
    item.preferredForwardBufferDuration = look.settings.buffer
    var watching = Watching(account: ViewerAccount(look, decodes: true), item: item)
    watching.account.begin()
    let conditions = Locked(CMCDFetcher.Conditions(isWaiting: true))
    let fetcher = look.fetcher(
      conditions: { _ in conditions.withLock { $0 } }, report: { send(.request($0)) })
    var configuration = look.settings.decodingPlayer
    let runtime = CountedRuntime(configuration.runtime)
    configuration.runtime = runtime
    let player = Player(fetcher: fetcher, configuration: configuration, logger: look.logger)
    // Each is added where it happens, so that their order is that of the changes.
    player.observeEvents { event in
      if case .stalled = event { conditions.withLock { $0.stallCount += 1 } }
      send(.event(event))
    }
    player.timeControlStatus.observe { status in
      conditions.withLock { $0.isWaiting = status != .playing }
      send(.status(status))
    }
    item.rung.observe { if let rung = $0 { send(.rung(rung)) } }
    player.play()
    player.replaceCurrentItem(with: item)
    let ending = await withTaskGroup(of: Void.self) { group in
      group.addTask { [look] in
        while clock.now < look.end, !Task.isCancelled {
          try? await clock.sleep(for: min(Self.tick, look.end - clock.now))
          send(.tick)
        }
        send(.over)
      }
      defer { group.cancelAll() }
      for await (signal, time) in signals {
        if let ending = watching.take(signal, at: time) { return ending }
      }
      return ViewerSums.Ending.left
    }
    let time = clock.now
    await player.stopAndWait()
    await runtime.waitForTasks()
    continuation.finish()
    for await (signal, time) in signals {
      if case .request(let event) = signal { watching.account.add(event, at: time) }
    }
    watching.end(ending, at: time)
    return ending
  }
}

/// What happens to the player of a viewer.
private enum Signal: Sendable {
  case event(PlayerEvent)
  case status(TimeControlStatus)
  /// A frame of another rung is on show.
  case rung(String)
  case request(ViewerEvent.Kind)
  case tick
  case over
}

/// Turns what a player tells into the events of a viewer.
private struct Watching {
  var account: ViewerAccount
  let item: PlayerItem
  var failureCount = 0

  /// Returns how the look ends, if it does.
  mutating func take(_ signal: Signal, at time: Duration) -> ViewerSums.Ending? {
    addFailures(at: time)
    switch signal {
    case .event(.firstFrame(_, let after)): account.add(.started(after: after), at: time)
    case .event(.stalled): account.add(.stalled, at: time)
    case .event(.jumpedToLive): account.add(.jumped, at: time)
    case .event(.playedToEnd): return .played
    case .event(.failed(let error)): return .failed(error)
    case .status(.playing): account.add(.playing, at: time)
    case .rung(let id):
      // The ladder is that of the first period.
      account.add(.rung(item.ladder.rungs.first { $0.id == id } ?? ItemRung(id: id, bitRate: 0)), at: time)
    case .request(let event): account.add(event, at: time)
    case .tick: if let latency = item.liveLatency.value { account.add(.latency(latency), at: time) }
    case .over: return .left
    case .event, .status: break
    }
    return nil
  }

  mutating func end(_ ending: ViewerSums.Ending, at time: Duration) {
    addFailures(at: time)
    account.end(ending, at: time)
  }

  // MARK: - Private

  private mutating func addFailures(at time: Duration) {
    // The log keeps the latest entries only.
    for entry in item.errorLog.dropFirst(failureCount) {
      failureCount += 1
      let isFinal = entry.outcome == .failed
      account.add(.failure(entry.error, isFinal ? .final : .handled(entry.outcome)), at: time)
    }
  }
}
