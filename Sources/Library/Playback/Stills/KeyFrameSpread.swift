internal import ReelCore

/// Which key frames to look at: evenly spread over those that begin in the first part of a source.
struct KeyFrameSpread {
  /// The number of key frames.
  let count: Int
  /// The length of the first part.
  static let length = MediaTime(value: 30, timescale: 1)

  /// True if no place after this one is needed.
  func isEnough(_ place: KeyFramePlace, number: Int) -> Bool {
    number >= count && place.time >= Self.length
  }

  /// The places to look at. If no more than `count` begin within `length`, the first ones of all.
  func chosen(of places: [KeyFramePlace]) -> [KeyFramePlace] {
    let near = places.prefix { $0.time <= Self.length }
    guard near.count > count else { return Array(places.prefix(count)) }
    return (1...max(1, count)).map { near[$0 * near.count / count - 1] }
  }
}
