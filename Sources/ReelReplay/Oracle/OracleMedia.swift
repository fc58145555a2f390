internal import ReelCore
internal import ReelPlayback
internal import ReelPool

/// The parts of an item's lowest rung.
struct OracleMedia: Sendable {
  let parts: [OracleProblem.Part]
  /// By part, the position up to which it has media.
  let ends: [Int64]
  let headByteCount: Int64

  /// What becomes of the item when it has played to its end. The manifest and the rung's header stay.
  var rewind: OracleProblem.Rewind {
    OracleProblem.Rewind(
      end: max((ends.last ?? 0) - Self.tolerance, (parts.last?.neededAt ?? 0) + 1), requestCount: 1,
      byteCount: max((parts.first?.byteCount ?? 0) - headByteCount, 1))
  }

  init?(_ chunks: ItemChunks) {
    guard let rung = chunks.rungs.first, let first = rung.chunks.first, let start = ItemStart(chunks) else {
      return nil
    }
    let startByteCount = first.startByteCount ?? first.byteCount
    headByteCount = chunks.manifestByteCount + rung.headerByteCount
    var parts = [
      OracleProblem.Part(
        requestCount: start.requestCount, byteCount: headByteCount + startByteCount, neededAt: 0)
    ]
    var end = first.duration.wholeMicroseconds
    var ends = [min(Self.startMedia, end)]
    if first.byteCount > startByteCount {
      // It plays while it comes.
      parts.append(
        OracleProblem.Part(requestCount: 0, byteCount: first.byteCount - startByteCount, neededAt: end / 2))
      ends.append(end)
    }
    for chunk in rung.chunks.dropFirst() {
      parts.append(OracleProblem.Part(requestCount: 1, byteCount: chunk.byteCount, neededAt: end))
      end += chunk.duration.wholeMicroseconds
      ends.append(end)
    }
    (self.parts, self.ends) = (parts, ends)
  }

  /// How far a pool has loaded the item.
  func progress(_ item: PoolSituation.Item, roundTrip: Int64, readyAt: Int64) -> OracleProblem.Progress {
    var progress = OracleProblem.Progress()
    guard item.stage >= .firstFrame else {
      guard item.stage > .none || item.fetchedByteCount > 0 else { return progress }
      // The head has come, or is coming.
      let wait =
        item.fetchedByteCount > headByteCount ? 0 : item.stage > .none ? 1 : parts[0].requestCount - 1
      progress.left = (Int64(wait) * roundTrip, max(parts[0].byteCount - item.fetchedByteCount, 1))
      return progress
    }
    progress.readyAt = readyAt
    progress.position = item.position.wholeMicroseconds
    let loaded = (item.position + item.bufferedDuration).wholeMicroseconds
    progress.partCount =
      item.isLoadedToEnd || item.hasFailed
      ? parts.count : max(ends.firstIndex { $0 > loaded + Self.tolerance } ?? parts.count, 1)
    let next = progress.partCount
    guard next < parts.count else { return progress }
    let begin = ends[next - 1]
    if next == 1 || loaded > begin + Self.tolerance {
      let share = Double(ends[next] - max(loaded, begin)) / Double(max(ends[next] - begin, 1))
      progress.left = (0, max(Int64(Double(parts[next].byteCount) * share), 1))
    }
    return progress
  }

  /// The media with which playback can start: three frames at 30 frames a second.
  static let startMedia: Int64 = 100_000
  /// The last frame of a segment may end a little before the segment.
  private static let tolerance: Int64 = 50_000
}
