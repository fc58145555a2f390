package import ReelCore
package import ReelPlayback
internal import ReelPool

/// The record of one swipe: how far its item was loaded, and how long the viewer waited for its frames.
package struct SwipeRecord: Sendable, Hashable {
  /// The number of the swipe, from 1; 0 for the item with which the walk begins.
  package var number: Int
  /// The time of the settle since the walk began. For a swipe passed by in a burst, the time of the end of the drag.
  package var time: Duration
  package var kind: SwipeKind
  /// True if the next swipe of a burst followed before this one settled, so that the viewer did not wait for
  /// this item.
  package var isPassing = false
  /// The item's index in the feed.
  package var itemIndex: Int
  /// The description of the item's identity.
  package var itemID: String
  /// The stage that the item had reached when the drag ended.
  package var stage: PreloadStage
  /// The time from the settle until the item was left or the walk ended.
  package var watched: Duration = .zero
  /// The time from the settle until the first frame was on the surface; 0 if it was shown before the settle.
  ///
  /// `nil` if there was no frame until the item was left.
  package var timeToFirstFrame: Duration?
  /// The time from the settle until the second frame was on the surface; `nil` if there was none.
  package var timeToSecondFrame: Duration?
  /// True if the item played to its end with only one frame.
  package var isStill = false
  /// The parts of the wait for the first frame, such as `manifest answer 142 ms, segment transfer 201 ms,
  /// decode 12 ms`; the ``error`` if the item failed and no frame was shown; `nil` if there was no wait.
  package var cause: String?
  /// The number of stalls while the item was watched.
  package var stallCount = 0
  package var stallDuration: Duration = .zero
  package var longestStall: Duration = .zero
  /// The parts of the wait for the first frame, from the settle on: for each part, its name and its duration.
  /// To the microsecond they add up to ``timeToFirstFrame``, or to ``watched`` if there was no frame. Empty
  /// if there was no wait, or if the item failed and no frame was shown.
  package var waitParts: [StageTime] = []
  /// The bytes that had been fetched for the item when the drag ended.
  package var loadedByteCount: Int64 = 0
  /// The rung with the highest bit rate that was opened; `nil` for a media file.
  package var rung: String?
  /// The bit rate of ``rung`` as the manifest states it, in bits per second.
  package var rungBitRate: Int?
  /// The stages of loading up to the first frame, in order, whenever they took place.
  package var stageTimes: [StageTime] = []
  /// The bytes fetched for the item from the end of the drag until it was left.
  package var byteCount: Int64 = 0
  /// The rungs whose frames were on the surface, in order, from the end of the drag until the item was left.
  /// A rung that comes again has another entry. Empty if nothing was shown, and for items passed by in a
  /// burst.
  package var rungs: [ShownRung] = []
  /// The description of the error that the item failed with, even if the viewer had left it before.
  package var error: String?

  package init(
    number: Int, time: Duration, kind: SwipeKind, itemIndex: Int, itemID: String, stage: PreloadStage
  ) {
    self.number = number
    self.time = time
    self.kind = kind
    self.itemIndex = itemIndex
    self.itemID = itemID
    self.stage = stage
  }

  /// True if the first frame was decoded when the drag ended.
  package var isHit: Bool { stage >= .firstFrame }

  /// True if statistics count the wait: not for the start of the walk, items passed by in a burst, and items that
  /// failed before their first frame.
  package var isCounted: Bool {
    kind != .start && !isPassing && (error == nil || timeToFirstFrame != nil)
  }

  /// Records that the item has failed, which is why a waiting viewer saw no frame.
  mutating func recordFailure(_ error: String) {
    guard !isPassing, timeToFirstFrame == nil else { return }
    self.error = self.error ?? error
    cause = self.error
    waitParts = []
  }

  /// Returns the text for ``cause``: the stages in order. Stages of less than half a millisecond are left
  /// out; nil if none remains.
  package static func cause(of parts: [StageTime]) -> String? {
    let words = parts.filter { $0.duration >= .microseconds(500) }.map(\.description)
    return words.isEmpty ? nil : words.joined(separator: ", ")
  }

  /// The number of times that a different rung than before was on show.
  package var rungSwitchCount: Int { max(0, rungs.count - 1) }

  /// The wait for the first frame for statistics. An abandoned wait counts with its duration so far, which is
  /// a lower bound. Nil if the swipe does not count.
  package var countedFirstFrame: Duration? { isCounted ? timeToFirstFrame ?? watched : nil }

  /// The same for the second frame. Also nil for an item with one frame, and for one that failed before its second
  /// frame.
  package var countedSecondFrame: Duration? {
    guard isCounted, !isStill, error == nil || timeToSecondFrame != nil else { return nil }
    return timeToSecondFrame ?? watched
  }
}

extension SwipeRecord: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "swipe": number, "time_ms": time, "kind": kind, "passing": isPassing, "item_index": itemIndex,
      "item_id": itemID, "stage": stage.reportName, "hit": isHit, "watched_ms": watched,
      "first_frame_ms": timeToFirstFrame, "second_frame_ms": timeToSecondFrame, "still": isStill,
      "cause": cause, "stalls": stallCount, "stalled_ms": stallDuration, "longest_stall_ms": longestStall,
      "stages": stageTimes, "wait": waitParts, "loaded_bytes": loadedByteCount, "rung": rung,
      "rung_bits_per_second": rungBitRate, "fetched_bytes": byteCount, "rungs": rungs, "error": error,
    ])
  }
}

/// The frequency of swipes back, and of bursts of swipes: shares of the steps of a walk.
package struct SwipeShares: Sendable, Hashable {
  /// The share that goes back by one item, of the steps that are no bursts. Defaults to 0.15.
  package let back: Double
  /// The share of steps that are bursts of quick swipes. Defaults to 0.05.
  package let bursts: Double

  /// The shares of a walk that states none.
  package static let usual = SwipeShares()

  /// Shares from 0 to 1, rounded to a millionth.
  ///
  /// - Throws: `ReelError` of kind `usage` for a share outside 0...1.
  package init(back: Double = 0.15, bursts: Double = 0.05) throws(ReelError) {
    for (name, share) in [("back", back), ("bursts", bursts)] where !(share >= 0 && share <= 1) {
      throw ReelError(.usage, "the share of \(name) must be from 0 to 1")
    }
    self.back = Self.rounded(back)
    self.bursts = Self.rounded(bursts)
  }

  /// Returns the share that `text` states: a number from 0 to 100 with `%`.
  ///
  /// - Throws: `ReelError` of kind `usage`, which names the share.
  package static func share(parsing text: String, of name: String) throws(ReelError) -> Double {
    guard let (percent, unit) = Quantity.split(text), unit == "%", percent <= 100 else {
      throw ReelError(
        .usage, "\(name): \"\(text)\" is not a share", advice: "write it in percent, from 0% to 100%")
    }
    return rounded(percent / 100)
  }

  // MARK: - Internal

  /// The advice for flicks, which were removed.
  static let insteadOfFlicks = "use trace:FILE with recorded times"

  /// Returns true for this share of all random numbers. A larger share includes the numbers of a smaller one,
  /// and whole percents depend only on the number modulo 100.
  static func holds(_ share: Double, for random: UInt64) -> Bool {
    let millionths = random % 100 * 10_000 + random / 100 % 10_000
    return millionths < UInt64((share * 1e6).rounded())
  }

  // MARK: - Private

  private init() { (back, bursts) = (0.15, 0.05) }

  private static func rounded(_ share: Double) -> Double { (share * 1e6).rounded() / 1e6 }
}

extension SwipeShares: CustomStringConvertible {
  /// The shares that differ from the usual ones: `back=10%,bursts=0%`. Empty if none does.
  package var description: String {
    let usual = Self.usual
    let all = [("back", back, usual.back), ("bursts", bursts, usual.bursts)]
    return all.filter { $0.1 != $0.2 }.map { "\($0.0)=\(($0.1 * 100).formatted(places: 4))%" }
      .joined(separator: ",")
  }
}

extension SwipeShares: Encodable {}

/// A rung that was on show during a visit to an item, from its first frame until another rung's.
package struct ShownRung: Sendable, Hashable {
  /// The rung's id in its manifest; `nil` for a media file.
  package var rung: String?
  /// The rung's bit rate as the manifest states it, in bits per second; `nil` if it states none.
  package var bitRate: Int?
  /// The media time of the frames shown.
  package var duration: Duration

  /// A rung and how much of it was shown.
  package init(rung: String?, bitRate: Int?, duration: Duration) {
    self.rung = rung
    self.bitRate = bitRate
    self.duration = duration
  }
}

extension ShownRung: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode(["rung": rung, "bit_rate": bitRate, "shown_ms": duration])
  }
}
