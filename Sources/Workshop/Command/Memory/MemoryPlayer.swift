import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelSources
import ReelPool
import Logging

/// A player of `reel memory`, with the account of its memory.
final class MemoryPlayer: Sendable {
  /// The result of waiting for a second frame.
  enum SecondFrame: Sendable {
    /// It was shown this long after the call.
    case shown(after: Duration)
    /// The item ended before it.
    case onlyOne
    case failed(ReelError)
    /// It did not arrive in time.
    case late
  }

  /// The number of the player, from 0.
  let number: Int
  /// The argument from the command line.
  let argument: String
  let account: MemoryAccount?
  private let player: Player
  private let item: PlayerItem
  private let traffic: TrafficCounter

  /// Begins to load up to `target`.
  init(
    _ number: Int, argument: String, source: MediaSource, target: PreloadTarget, fetcher: any Fetching,
    configuration: PlayerConfiguration, gate: any DecodingGate, logger: Logger
  ) {
    self.number = number
    self.argument = argument
    account = try? MemoryAccount()
    traffic = TrafficCounter(fetcher)
    player = Player(
      fetcher: traffic, configuration: configuration, gate: gate, account: account, logger: logger)
    item = PlayerItem(source)
    player.preloadTarget = target
    player.replaceCurrentItem(with: item)
  }

  var stage: PreloadStage { item.preloadStage.value }
  var rung: String? { item.rung.value }
  var stageTimes: [PreloadStage: Duration] { item.stageTimes }

  /// The reason why the item can't be loaded.
  var failure: ReelError? {
    if case .failed(let error) = item.status.value { error } else { nil }
  }

  /// The last failure that was retried; nil if there was none.
  var lastFailure: ReelError? { traffic.lastFailure }

  /// Values that change as long as the player is busy.
  var movement: [Int] {
    let statistics = player.statistics
    return [
      statistics.bufferByteCount, statistics.inFlightByteCount, statistics.ring?.frameCount ?? 0,
      statistics.onShowByteCount, statistics.decodedFrameCount, account?.frameByteCount ?? 0,
    ]
  }

  var ledger: MemoryLedger.Account { MemoryLedger.Account(player.statistics, figures: account?.figures) }

  func setTarget(_ target: PreloadTarget) { player.preloadTarget = target }

  /// Plays repeatedly at its own pace, for an output that keeps nothing.
  func play() {
    try? player.attach(CallbackOutput { _ in })
    player.actionAtItemEnd = .loop
    player.preloadTarget = nil
    player.setRate(1)
  }

  /// Plays until the second frame is shown, or certainly won't be, but at most for `limit`.
  ///
  /// Frames are shown as soon as they are decoded, not when they are due.
  func secondFrame(within limit: Duration) async -> SecondFrame {
    let clock = SystemMonotonicClock()
    let times = Locked<[Duration]>([])
    let output = CallbackOutput { _ in times.withLock { $0.append(clock.now) } }
    try? player.attach(output)
    let hasEnded = Locked(false)
    let events = item.events
    let observation = Task {
      for await event in events {
        if case .playedToEnd = event { hasEnded.withLock { $0 = true } }
      }
    }
    defer { observation.cancel() }
    let began = clock.now
    player.preloadTarget = nil
    player.setRate(.infinity)
    while true {
      // Read before the frames: when the item has ended, all frames have been shown.
      let (isOver, error) = (hasEnded.withLock { $0 }, failure)
      if let second = times.withLock({ $0.count > 1 ? $0[1] : nil }) { return .shown(after: second - began) }
      if let error { return .failed(error) }
      if isOver { return .onlyOne }
      if clock.now - began >= limit || Task.isCancelled { return .late }
      try? await Task.sleep(for: .milliseconds(2))
    }
  }

  /// Waits until nothing of the player is running; its memory is then returned to the system.
  func close() async {
    await player.stopAndWait()
    account?.purge()
  }

  /// Stops the player without waiting.
  func stop() { player.stop() }
}
