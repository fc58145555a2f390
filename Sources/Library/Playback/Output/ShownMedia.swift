package import ReelCore
package import ReelSources

/// Adds up the media time for which frames were shown, and lists the media between them that was not shown.
///
/// A frame counts until the next one, minus the media lost between them. At a loop and at the end, it counts
/// for its own duration. Therefore, the played and the skipped time add up to the time from the first frame
/// to the end of the last. A pure value.
package struct ShownMedia: Sendable, Hashable {
  /// The media time that was shown.
  package private(set) var played = MediaTime.zero
  /// The media time between frames that was not shown, by reason.
  package private(set) var skipped: [MediaLoss.Reason: MediaTime] = [:]
  /// The media between frames that was not shown, in order: the first `lossLimit` losses of each reason.
  package private(set) var losses: [MediaLoss] = []
  /// The number of losses that are not in `losses`.
  package private(set) var omittedLossCount = 0
  /// The time of the first frame on the item's timeline; nil before it.
  package private(set) var firstTime: MediaTime?
  /// The time of the last frame on the item's timeline; nil before the first frame.
  package private(set) var lastTime: MediaTime?
  /// The latest end of a frame on the item's timeline.
  package private(set) var end: MediaTime?

  /// The media time shown before the last frame.
  private var playedBefore = MediaTime.zero
  /// The media time before the last frame that has passed, whether shown or lost, without the parts that the
  /// player left out.
  private var passedBefore = MediaTime.zero
  private var lastLength = MediaTime.zero
  private var lossCounts: [MediaLoss.Reason: Int] = [:]

  /// The number of losses that are kept for each reason.
  package static let lossLimit = 100

  package init() {}

  /// All media time between frames that was not shown.
  package var allSkipped: MediaTime { skipped.values.reduce(.zero, +) }

  /// Returns the media time that has passed before a next frame at `time`, without the parts that the player
  /// left out.
  ///
  /// - Parameter leftOut: The frame's `VideoFrame.skipped`.
  package func passed(before time: MediaTime, leftOut: MediaTime) -> MediaTime {
    guard let lastTime else { return .zero }
    let step = time - lastTime
    // At a loop, the last frame counts for its own duration.
    return passedBefore + (step > .zero ? max(.zero, step - leftOut) : lastLength)
  }

  /// Returns the media time that has passed when playback is at `position` of the item.
  package func passed(at position: MediaTime) -> MediaTime {
    // After a loop, the first frame may not have been shown yet.
    lastTime.map { passedBefore + max(.zero, position - $0) } ?? .zero
  }

  /// Counts a frame that is shown at `time`.
  ///
  /// - Parameters:
  ///   - length: The frame's own duration.
  ///   - leftOut: The frame's `VideoFrame.skipped`.
  ///   - loss: The frame's `VideoFrame.loss`.
  package mutating func show(_ time: MediaTime, length: MediaTime, leftOut: MediaTime, loss: MediaLoss?) {
    passedBefore = passed(before: time, leftOut: leftOut)
    if let lastTime {
      let step = time - lastTime
      let lost = step > .zero ? loss?.range.map { min(step, $0.upperBound - $0.lowerBound) } : nil
      playedBefore = playedBefore + (step > .zero ? step - (lost ?? .zero) : lastLength)
      if let loss, let lost { skip(loss, lost) }
    }
    firstTime = firstTime ?? time
    lastTime = time
    lastLength = length
    end = max(end ?? time, time + length)
    played = playedBefore + length
  }

  /// Adds media before the first frame or after the last one.
  package mutating func add(_ loss: MediaLoss) {
    guard let range = loss.range else { return }
    skip(loss, range.upperBound - range.lowerBound)
  }

  /// Ends the count at `position` of the item, so that the last frame counts only up to it.
  package mutating func end(at position: MediaTime) {
    guard let lastTime else { return }
    played = min(played, playedBefore + max(.zero, position - lastTime))
  }

  /// Ends the count when this much media time has passed. A frame that stays on show counts up to then.
  ///
  /// - Parameter isLost: True if the media after the last frame's own duration is lost.
  package mutating func end(whenPassed limit: MediaTime, isLost: Bool) {
    let rest = max(.zero, limit - passedBefore)
    played = playedBefore + (isLost ? min(lastLength, rest) : rest)
  }

  // MARK: - Private

  private mutating func skip(_ loss: MediaLoss, _ length: MediaTime) {
    skipped[loss.reason] = (skipped[loss.reason] ?? .zero) + length
    lossCounts[loss.reason, default: 0] += 1
    if lossCounts[loss.reason, default: 0] > Self.lossLimit {
      omittedLossCount += 1
    } else {
      losses.append(loss)
    }
  }
}
