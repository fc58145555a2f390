internal import ReelPlayback
internal import ReelPool

/// The media of an item in chunks, as papers count it: a chunk is a segment, or one second if that is not known.
struct ChunkedItem: Sendable {
  let item: PoolSituation.Item
  /// In seconds.
  let length: Double
  /// The first chunk that is not loaded.
  let firstMissing: Int
  /// The chunks of the item; nil if its duration is not known.
  let count: Int?

  init(_ item: PoolSituation.Item) {
    self.item = item
    let length = max(item.segmentDuration?.inSeconds ?? 1, 0.1)
    self.length = length
    let count = item.duration.map { Int(clamping: ($0.inSeconds / length - 0.01).rounded(.up)) }
    self.count = count
    // Media ends a little before or behind the end of its segment.
    let loaded = Int(
      clamping: ((item.position + item.bufferedDuration).inSeconds / length + 0.1).rounded(.down))
    firstMissing = item.isLoadedToEnd ? max(count ?? loaded, loaded) : loaded
  }

  /// The time from the position to the beginning of a chunk, in seconds; 0 for one that is being played.
  func offset(of chunk: Int) -> Double { max(Double(chunk) * length - item.position.inSeconds, 0) }

  func hasChunk(_ chunk: Int) -> Bool { !item.isLoadedToEnd && count.map { chunk < $0 } ?? true }

  /// The media from the position to the beginning of a chunk, never less than what is loaded.
  func buffer(before chunk: Int) -> Duration {
    max(.seconds(Double(chunk) * length) - item.position, item.bufferedDuration)
  }

  /// The limit that stands for the highest rung at or under `rate` bits per second, or for the lowest rung.
  func peakBitRate(atMost rate: Double) -> Int {
    let rungs = item.rungs.filter { $0.bitRate > 0 }
    guard let lowest = rungs.first else { return max(Int(clamping: rate), 1) }
    return (rungs.last { Double($0.bitRate) <= rate } ?? lowest).bitRate
  }
}
