import ReelManifest

/// Segments whose key frames will be read, in order. Several of them are requested in parallel.
struct PlannedSegments {
  let key: SegmentSpan.Key
  private let track: RungTrack
  /// The segments whose transfers have not begun, in reverse order.
  private var waiting: [Int]
  /// The started transfers, in order. They belong to the whole loading until they are read.
  private var begun: [(index: Int, feed: SegmentFeed)] = []

  /// The number of segments that are requested at the same time, or wait to be read: as many as browsers open
  /// connections to a host.
  private static let concurrency = 6

  init(key: SegmentSpan.Key, track: RungTrack, indexes: [Int]) {
    self.key = key
    self.track = track
    waiting = indexes.reversed()
  }

  /// Begins as many transfers as allowed.
  ///
  /// - Parameter makeFeed: Begins the transfer of a segment; nil if it can't.
  mutating func begin(_ makeFeed: (SegmentSpan.Key, RungTrack, Int) -> SegmentFeed?) {
    while begun.count < Self.concurrency, let index = waiting.popLast() {
      guard case .segment(let segment) = track.supply.peek(at: index), !segment.isGap,
        let feed = makeFeed(key, track, index)
      else { continue }
      begun.append((index, feed))
    }
  }

  /// Removes a segment whose transfer has begun, and ends the transfers before it; nil if it is not among them.
  mutating func take(_ index: Int) -> SegmentFeed? {
    guard let place = begun.firstIndex(where: { $0.index == index }) else { return nil }
    let feed = begun[place].feed
    begun.removeFirst(place + 1)
    return feed
  }
}
