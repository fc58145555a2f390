package import ReelCore

/// Counts the media time that pictures were on show, and what was skipped between them.
///
/// A picture is on show until the next one, or for its own length where the item begins anew or a part is skipped, and at
/// the end. A pure value.
package struct ShownMedia: Sendable, Hashable {
  /// Media time that was on show.
  package private(set) var played = MediaTime.zero
  /// Media time between pictures that the player left out.
  package private(set) var skipped = MediaTime.zero
  /// Of the last picture, on the item's timeline; nil before the first.
  package private(set) var lastTime: MediaTime?

  /// Media time up to the beginning of the last picture.
  private var playedBefore = MediaTime.zero
  private var lastLength = MediaTime.zero

  package init() {}

  /// How much had been on show when a picture of `time` is shown.
  ///
  /// - Parameter skipped: as `TimedPicture.skipped`.
  package func played(before time: MediaTime, skipped: MediaTime) -> MediaTime {
    guard let lastTime else { return .zero }
    let step = time - lastTime
    // Where the item begins anew, the last picture was on show for its own time.
    return playedBefore + (step > .zero ? max(.zero, step - skipped) : lastLength)
  }

  /// How much has been on show while `position` of the item is.
  package func played(at position: MediaTime) -> MediaTime {
    // Where the item has begun anew, its first picture is still to come here.
    lastTime.map { playedBefore + max(.zero, position - $0) } ?? .zero
  }

  /// - Parameter length: How long the picture is on show by itself.
  package mutating func show(_ time: MediaTime, length: MediaTime, skipped: MediaTime) {
    playedBefore = played(before: time, skipped: skipped)
    if lastTime != nil { self.skipped = self.skipped + skipped }
    lastTime = time
    lastLength = length
    played = playedBefore + length
  }

  /// Playback ends while `position` of the item is on show: of the last picture no more counts than that.
  package mutating func end(at position: MediaTime) {
    played = min(played, played(at: position))
  }
}
