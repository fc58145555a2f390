public import ReelPlayback

/// The settings of a ``PlayerPool``.
public struct PoolConfiguration: Sendable {
  /// The number of players, including the current item's. Less than 1 counts as 1. Defaults to 3.
  public var slotCount = 3
  /// The number of further players, for the items at which other feeds were left (``PlayerPool/keepStarts(of:)``). Less than 0
  /// counts as 0. Defaults to 0.
  ///
  /// Each takes the memory of a preload, and a change to its feed is a hit. They load after all preloads of the current feed.
  public var slotsForOtherFeeds = 0
  /// Decides which neighbours are loaded, how far and in which order. Defaults to ``AdaptivePreload``.
  public var policy: any PreloadPolicy = AdaptivePreload()
  /// The rung of an item's first segment, if the policy does not choose it. Defaults to `adapted`.
  public var firstRung = FirstRung.adapted
  /// True if a player assumes the pool's measured throughput (``PoolSituation/throughput``) until it has
  /// measured its own. Defaults to false.
  ///
  /// It takes effect only if players adapt the bit rate (`PlayerConfiguration.adaptsBitRate`).
  package var sharesThroughput = false
  /// The settings of each player. By default, a player of a pool decodes up to 4 frames ahead
  /// (`PlayerConfiguration.ringFrameCapacity`).
  public var player: PlayerConfiguration
  /// The action of a player at the end of its item. Defaults to `pause`.
  public var actionAtItemEnd = Player.ActionAtItemEnd.pause
  /// True if the items are muted until ``PlayerPool/setMuted(_:)`` is called. Defaults to false.
  public var isMuted = false
  /// The number of decoders that may run at once; `nil` for one per core. The current item's decoder has priority.
  package var decodingPermits: Int?
  /// The number of video decoders that may be open at once; `nil` for no limit. Less than 1 counts as 1.
  ///
  /// The current item always gets a decoder. If all others are taken, the preload with the highest rank
  /// number closes its own as soon as its call into the decoder returns; its frame stays on show. A preload
  /// that needs a decoder for its first frame waits for a free one by rank, but takes one that another
  /// preload keeps open only to start sooner. Each item that plays as picture in picture has an additional
  /// one. Decoders of audio and of posters are not counted.
  public var maximumOpenDecoders: Int?
  /// The bytes that the players may hold; `nil`, the default, for no limit.
  ///
  /// A preload begins, or advances to its next stage, only if the bytes held and the expected cost of the
  /// stage fit. The limit is checked when an item reaches a stage and at each event of a
  /// player. If it is exceeded, preloads are ended as with ``PlayerPool/trim(to:)``. The current item and
  /// pinned players are never ended, even if they hold more.
  public var memoryLimit: Int?
  /// The number of transfers that run at once; `nil` for no limit. Less than 1 counts as 1.
  ///
  /// The current item's requests never wait for the limit, and requests of one item don't wait for each other. A
  /// transfer that nobody reads from does not count.
  public var maximumTransfers: Int?
  /// True if players may leave the window as picture in picture (``PlayerPool/startPictureInPicture(to:)``). Defaults to true.
  public var allowsPictureInPicture = true
  /// The number of items beyond the window, in the direction of travel, to whose hosts the pool opens connections
  /// ahead.
  ///
  /// It takes effect only if the fetcher is a `ConnectionOpening`.
  package var connectionsAhead = 2
  /// True if posters are fetched ahead while there is a surface, and shown on it on a miss. Defaults to true.
  public var showsPosters = true
  /// True if each player has a memory account. Without one, the ledger computes memory from the sizes of
  /// packets and frames, which is the same in every run.
  package var keepsAccounts = true

  /// The default settings.
  public init() {
    player = PlayerConfiguration()
    player.ringFrameCapacity = 4
  }
}

/// The rung of an item's first segment in a pool.
///
/// A lower rung has a smaller first frame, which arrives earlier on a slow link. From the second segment on,
/// the rung is chosen as if this choice had not been made.
public enum FirstRung: String, Sendable, Hashable, CaseIterable {
  /// The rung that the player would choose for any segment.
  case adapted
  /// The lowest rung.
  case low
  /// A rung that the measured throughput delivers in time.
  ///
  /// For an item that the viewer waits for, that is the highest rung of which 0.5 s of media, with which
  /// playback starts (`BufferingThresholds.start`), arrive within 100 ms. For a preload it is the highest
  /// rung that arrives as fast as it plays. Both use the throughput that is exceeded five times out of six.
  /// As long as nothing was measured, an item that the viewer waits for starts with the lowest rung.
  case auto

  /// The time after a swipe within which a viewer does not notice a wait.
  private static let unnoticedWait = Duration.milliseconds(100)

  /// Returns the limit for the rung of a first segment, in bits per second; nil for none. 1 stands for the
  /// lowest rung.
  ///
  /// - Parameters:
  ///   - isAwaited: True for the current item.
  ///   - start: The media with which playback starts.
  package func peakBitRate(isAwaited: Bool, throughput: ThroughputEstimate?, start: Duration) -> Int? {
    switch self {
    case .adapted: return nil
    case .low: return 1
    case .auto:
      guard let rate = throughput?.rate(atDeviations: -1) else { return isAwaited ? 1 : nil }
      guard isAwaited, start > .zero else { return max(Int(clamping: rate), 1) }
      return max(Int(clamping: rate * (Self.unnoticedWait / start)), 1)
    }
  }
}

/// The time that a viewer waits. It prints as `0.055 ms` or `1.204 s`.
public struct WaitTime: Sendable, Hashable {
  /// The wait, or the part of it so far.
  public let value: Duration
  /// False while the viewer is still waiting; `value` is then the wait so far.
  package let isOver: Bool

  /// A wait of this duration.
  public init(_ value: Duration, isOver: Bool = true) {
    self.value = value
    self.isOver = isOver
  }
}

extension WaitTime: CustomStringConvertible {
  /// `0.055 ms`; `0.012 ms so far` while the wait is not over.
  public var description: String { DurationText.readable(value) + (isOver ? "" : " so far") }
}

/// The phase of a swipe.
public enum SwipePhase: String, Sendable, Hashable {
  /// The finger has left the screen, so the next item is known: its first frame is shown, and its decoder is opened.
  case dragEnded
  /// The swipe has come to rest: the item plays.
  case settled
}
