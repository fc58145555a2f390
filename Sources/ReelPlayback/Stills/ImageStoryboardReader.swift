internal import ReelCore
internal import ReelFFmpeg

/// Reads the tiles of an image track for a storyboard. Confined to one thread.
struct ImageStoryboardReader {
  let track: ImageTrack
  let work: StoryboardWork

  /// Reads all tiles of the plan. Returns the fault for which key frames take their place; nil if none does.
  ///
  /// Throws `ReelError` or `CancellationError`.
  func run() throws -> ReelError? {
    let listing: ImageTrack.Listing
    let (plan, tiles, reader): (StoryboardPlan, [ImageTrack.Tile], ImageSheetReader)
    do {
      listing = try track.listing()
      plan = try work.plan(listing.places, start: .zero, duration: track.end.seconds)
      tiles = plan.jobs.compactMap { listing.tile(at: $0.place) }
      reader = ImageSheetReader(listing, tiles: tiles, opening: work.opening)
      if let first = tiles.first {
        try track.check(try reader.sheet(of: first, limit: work.makeLimit()), for: work.size)
      }
    } catch let error as ReelError where !track.isAlone && error.kind != .cancelled {
      return track.rung.replaced(after: error)
    }
    work.begin(plan, start: .zero, rung: track.rung, track: .images)
    work.queue.setCount(tiles.count)
    let renderer = StillRenderer()
    var (known, silent): (Set<Int>, Set<Int>) = ([], [])
    while let job = work.queue.take() {
      let (tile, slot) = (tiles[job], plan.jobs[job].slot)
      do {
        if work.isGivenUp {
          throw ReelError(
            .timedOut, "not tried, because nothing came for the stills before it", at: reader.url(of: tile))
        }
        let sheet = try reader.sheet(of: tile, limit: work.makeLimit())
        work.note(isSilent: false)
        let frame = try reader.frame(of: tile, in: sheet)
        let byteCount = known.insert(tile.sheet).inserted ? sheet.byteCount : 0
        let still = try work.still(of: frame, renderer)
        work.queue.put(
          .tile(Storyboard.Tile(slot: slot, time: tile.time, byteCount: byteCount, still: still)), at: job)
      } catch let error as ReelError where error.kind != .cancelled && error.kind != .internalFault {
        if error.kind == .timedOut, silent.insert(tile.sheet).inserted { work.note(isSilent: true) }
        work.queue.put(.missing(Storyboard.Missing(slot: slot, error: error)), at: job)
      }
    }
    return nil
  }
}
