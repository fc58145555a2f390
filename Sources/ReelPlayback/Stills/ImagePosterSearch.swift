internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The search for a poster among the tiles of an image track, on its thread.
struct ImagePosterSearch {
  let track: ImageTrack
  let opening: TrackOpening
  let counter: TrafficCounter
  /// Makes the limit of the wait for an image: the whole time that a still has, or a share of it.
  let makeLimit: (_ share: Int) -> ReadingLimit
  /// Called when the first tile is there.
  let noteFirst: () -> Void

  /// The best of the first tile and `count` others, spread like key frames.
  ///
  /// Throws `ReelError` if no tile can be read, or `CancellationError`.
  func run(_ count: Int) throws -> Poster {
    let spread = KeyFrameSpread(count: count)
    var number = -1
    let listing = try track.listing { tile in
      number += 1
      return number >= count
        && spread.isEnough(KeyFramePlace(time: tile.time, seekTime: tile.time), number: number)
    }
    let others = count > 0 ? spread.chosen(of: Array(listing.places.dropFirst())) : []
    let tiles = [listing.tiles[0]] + others.compactMap(listing.tile(at:))
    let reader = ImageSheetReader(listing, tiles: tiles, opening: opening)
    var candidates: [Poster.Candidate] = []
    var best: (index: Int, frame: SharedFrame)?
    var faults: [ReelError] = []
    var counted: Set<Int> = []
    for tile in tiles {
      do {
        // Key frames that may take the place of the first image need time as well.
        let sheet = try reader.sheet(
          of: tile, limit: makeLimit(candidates.isEmpty && !track.isAlone ? 2 : 1))
        if candidates.isEmpty { try track.check(sheet, for: opening.context.configuration.stillSize) }
        let frame = SharedFrame(try reader.frame(of: tile, in: sheet))
        let byteCount = counted.insert(tile.sheet).inserted ? sheet.byteCount : 0
        let candidate = try Poster.Candidate(frame.frame, byteCount: byteCount)
        if candidates.isEmpty {
          opening.context.recorder.close(reader.timing)
          noteFirst()
        }
        candidates.append(candidate)
        if let best, !candidate.isBetter(than: candidates[best.index]) { continue }
        best = (candidates.count - 1, frame)
      } catch let error as ReelError where error.kind != .cancelled && error.kind != .internalFault {
        if faults.last != error { faults.append(error) }
        if !error.concernsOneResource || candidates.isEmpty && !track.isAlone { break }
      }
    }
    guard let best else { throw faults.first ?? ReelError(.badMedia, "the image track has no image") }
    return Poster(
      frame: best.frame, candidates: candidates, chosenIndex: best.index,
      traffic: Poster.Traffic(of: opening, counter, fileByteCount: 0, keyFrameByteCount: reader.byteCount),
      startup: opening.context.recorder.current,
      rung: (track.rung.id, track.rung.bitsPerSecond ?? track.rung.averageBitsPerSecond), track: .images,
      imageFault: nil,
      faults: faults)
  }
}
