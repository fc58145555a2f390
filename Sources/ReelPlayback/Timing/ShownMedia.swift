package import ReelCore

/// Adds up the media time for which frames were shown, and the media time skipped between them.
///
/// A frame counts until the next one, less any media skipped between them. At a loop and at the end it counts for its
/// own duration. A pure value.
package struct ShownMedia: Sendable, Hashable {
  /// The media time that was shown.
  package private(set) var played = MediaTime.zero
  /// The media time that the player left out between frames.
  package private(set) var skipped = MediaTime.zero
  /// The time of the last frame on the item's timeline; nil before the first frame.
  package private(set) var lastTime: MediaTime?

  /// The media time shown before the last frame.
  private var playedBefore = MediaTime.zero
  private var lastLength = MediaTime.zero

  package init() {}

  /// The media time shown before a next frame at `time`.
  ///
  /// - Parameter skipped: The frame's `TimedFrame.skipped`.
  package func played(before time: MediaTime, skipped: MediaTime) -> MediaTime {
    guard let lastTime else { return .zero }
    let step = time - lastTime
    // At a loop, the last frame counts for its own duration.
    return playedBefore + (step > .zero ? max(.zero, step - skipped) : lastLength)
  }

  /// The media time shown when playback is at `position` of the item.
  package func played(at position: MediaTime) -> MediaTime {
    // After a loop, the first frame may not have been shown yet.
    lastTime.map { playedBefore + max(.zero, position - $0) } ?? .zero
  }

  /// Counts a frame that is shown at `time`.
  ///
  /// - Parameter length: The frame's own duration.
  package mutating func show(_ time: MediaTime, length: MediaTime, skipped: MediaTime) {
    playedBefore = played(before: time, skipped: skipped)
    if lastTime != nil { self.skipped = self.skipped + skipped }
    lastTime = time
    lastLength = length
    played = playedBefore + length
  }

  /// Ends the count at `position` of the item, so that the last frame counts only up to it.
  package mutating func end(at position: MediaTime) {
    played = min(played, played(at: position))
  }
}
