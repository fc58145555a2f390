internal import ReelPlayback

/// The chunks of an item, as a walk needs them.
struct ChunkLadder: Sendable {
  let rungs: [ItemChunks.Rung]
  /// The ends of the chunks on the item's timeline.
  let ends: [Duration]
  /// What a policy sees; empty for a media file.
  let itemRungs: [ItemRung]
  /// What the player's rule chooses among.
  let candidates: [RungCandidate]

  /// Nil if there is no chunk.
  init?(_ item: ItemChunks) {
    guard let first = item.rungs.first, !first.chunks.isEmpty else { return nil }
    rungs = item.rungs
    var end = Duration.zero
    ends = first.chunks.map { chunk in
      end += chunk.duration
      return end
    }
    let isFile = item.manifestByteCount == 0 && item.rungs.count == 1
    itemRungs = isFile ? [] : item.rungs.map { ItemRung(id: $0.id, bitRate: $0.bitRate) }
    candidates = item.rungs.enumerated().map { index, rung in
      RungCandidate(index: index, id: rung.id, bitsPerSecond: rung.bitRate)
    }
  }

  var chunkCount: Int { ends.count }
  var duration: Duration { ends[ends.count - 1] }

  func begin(of chunk: Int) -> Duration { chunk > 0 ? ends[chunk - 1] : .zero }

  func duration(of chunk: Int) -> Duration { ends[chunk] - begin(of: chunk) }

  func byteCount(of chunk: Int, rung: Int) -> Int64 { max(rungs[rung].chunks[chunk].byteCount, 0) }

  /// What a report calls a rung; nil for a media file.
  func id(of rung: Int) -> String? { itemRungs.isEmpty ? nil : itemRungs[rung].id }

  /// In bits per second; nil if it is not stated.
  func bitRate(of rung: Int) -> Int? {
    guard !itemRungs.isEmpty, itemRungs[rung].bitRate > 0 else { return nil }
    return itemRungs[rung].bitRate
  }
}

/// What is loaded of an item that has a slot.
struct ChunkLoad: Sendable {
  let ladder: ChunkLadder
  let began: Duration
  /// The rungs of the chunks that are there.
  var rungs: [Int] = []
  var fetchedByteCount: Int64 = 0
  /// The position of the frame on show.
  private(set) var position = Duration.zero
  /// The chunk at the position, or the number of chunks there if playback waits for the next one.
  private(set) var playing = 0
  /// The media up to here was shown.
  private(set) var shownEnd = Duration.zero
  /// A frame was on the surface.
  var wasShown = false
  var stage = PreloadStage.initialization
  /// The request of the first chunk.
  var firstRequest: ChunkRequest?
  /// The player's rule; nil before the first chunk is asked for.
  var adaptation: (any RungAdaptation)?
  /// The first rung was chosen under a limit of its own: the next one is chosen as if it were the first.
  var hasStartedUnderCap = false
  /// The rung that was chosen last.
  var rung: Int?

  init(_ ladder: ChunkLadder, began: Duration) {
    self.ladder = ladder
    self.began = began
  }

  var loadedEnd: Duration { ladder.begin(of: rungs.count) }
  var ahead: Duration { loadedEnd - position }
  var isLoadedToEnd: Bool { rungs.count >= ladder.chunkCount }
  var hasFrame: Bool { !rungs.isEmpty }
  /// A chunk to be played is there.
  var canPlay: Bool { playing < rungs.count }
  var isAtEnd: Bool { playing >= ladder.chunkCount }
  /// The rung at the position.
  var shownRung: Int? { rungs.isEmpty ? nil : rungs[min(playing, rungs.count - 1)] }

  /// The bytes of what is loaded ahead of the position.
  var aheadByteCount: Int64 {
    guard playing < rungs.count else { return 0 }
    return (playing..<rungs.count).reduce(0) { $0 + ladder.byteCount(of: $1, rung: rungs[$1]) }
  }

  /// The bytes that were never shown.
  var unshownByteCount: Int64 {
    guard wasShown else { return fetchedByteCount }
    var sum: Int64 = 0
    for (chunk, rung) in rungs.enumerated() {
      let (begin, end) = (ladder.begin(of: chunk), ladder.ends[chunk])
      let byteCount = ladder.byteCount(of: chunk, rung: rung)
      if begin >= shownEnd {
        sum += byteCount
      } else if end > shownEnd {
        sum += Int64((Double(byteCount) * ((end - shownEnd) / (end - begin))).rounded())
      }
    }
    return sum
  }

  /// Plays for up to `duration`.
  ///
  /// - Parameter note: Gets each rung that is shown, and for how long.
  /// - Returns: How long there was media.
  mutating func play(for duration: Duration, note: (Int, Duration) -> Void) -> Duration {
    var rest = duration
    while rest > .zero, playing < rungs.count {
      let step = min(rest, ladder.ends[playing] - position)
      if step > .zero { note(rungs[playing], step) }
      position += step
      rest -= step
      if position >= ladder.ends[playing] { playing += 1 }
    }
    shownEnd = max(shownEnd, position)
    return duration - rest
  }

  /// Goes back to the beginning.
  mutating func restart() {
    position = .zero
    playing = 0
  }
}

/// The download of a chunk.
struct ChunkRequest: Sendable {
  let item: Int
  let chunk: Int
  let rung: Int
  let byteCount: Int64
  let began: Duration
  /// When the first byte comes.
  let answered: Duration
  /// When the last byte has come.
  let arrival: Duration
}
