/// The order in which a demuxer reads a remote file, which determines the number of transfers.
enum ReadingOrder: Sendable, Hashable {
  /// Forward, as far as is known: one transfer.
  case forward
  /// Mostly forward, with steps back of at most `distance` bytes: one transfer, of which that many bytes are
  /// kept. Nothing from `end` on is read.
  case window(distance: Int, end: Int64)
  /// These ranges, in order of position: a transfer for each. If there are several, reading alternates
  /// between them.
  case runs([Range<Int64>])
  /// Not known before the index has been read.
  case unknown

  /// The maximum number of bytes that a step forward reads through, because they take less time than a round
  /// trip.
  static let readThroughByteCount: Int64 = 64 << 10
  /// The maximum distance of steps back for which bytes are kept: a few seconds of media.
  private static let maximumDistance = 8 << 20
  /// The same if each range could have its own request.
  private static let maximumApartDistance = 2 << 20
  /// The number of bytes that libavformat's buffer may hold of a transfer when it moves elsewhere
  /// (`ByteSourceIO`), and that it reads through itself instead of seeking (libavformat/aviobuf.c,
  /// SHORT_SEEK_THRESHOLD).
  private static let bufferedByteCount = 48 << 10
  /// The maximum rest of a transfer that is received without waiting for its reader.
  static let remainderByteCount: Int64 = 256 << 10
  /// The number of ranges that get a request each, although a window would suffice.
  private static let fewRuns = 4
  /// The maximum number of concurrent transfers.
  static let maximumTransferCount = 2

  /// - Parameter samples: Calls its argument with the range of each sample, in reading order.
  init(_ samples: (_ body: (Range<Int64>) -> Void) -> Void) {
    var finder = RunFinder()
    samples { finder.add($0) }
    let (runs, distance) = (finder.runs, finder.distance)
    guard let end = runs.map(\.upperBound).max() else {
      self = .forward
      return
    }
    let isWindow =
      if distance <= Self.readThroughByteCount {
        distance > 0
      } else if Self.overlap(of: runs) > Self.readThroughByteCount {
        distance <= Self.maximumDistance
      } else {
        runs.count > Self.fewRuns && distance <= Self.maximumApartDistance
      }
    self = isWindow ? .window(distance: distance, end: end) : .runs(runs)
  }

  /// Returns the number of bytes that would be transferred twice.
  private static func overlap(of runs: [Range<Int64>]) -> Int64 {
    var (overlap, end): (Int64, Int64) = (0, 0)
    for run in runs {
      overlap += max(0, min(end, run.upperBound) - run.lowerBound)
      end = max(end, run.upperBound)
    }
    return overlap
  }

  /// The number of bytes of a transfer that are kept after they were read.
  var recentByteCount: Int {
    switch self {
    case .forward: 0
    case .window(let distance, _): distance + Self.bufferedByteCount
    case .runs(let runs): runs.count > 1 ? Self.bufferedByteCount : 0
    case .unknown: Self.bufferedByteCount
    }
  }

  /// The maximum number of bytes that a step forward reads through.
  var readThroughByteCount: Int64 {
    guard case .window(let distance, _) = self else { return Self.readThroughByteCount }
    return max(Self.readThroughByteCount, Int64(distance))
  }

  /// Returns the end of a transfer from `position` on; nil for the end of the file.
  func end(from position: Int64) -> Int64? {
    switch self {
    case .forward, .unknown: nil
    case .window(_, let end): end > position ? end : nil
    case .runs(let runs): runs.count > 1 ? run(at: position, of: runs)?.upperBound : nil
    }
  }

  /// Returns the new end of a transfer that would continue to the end of the file, if it is now at
  /// `position`.
  ///
  /// The bytes of a range that its connection has received by then are still used. If the transfer waited for
  /// its reader, it would soon hold bytes after the range, which another transfer delivers.
  func cut(at position: Int64) -> Int64? {
    let end = end(from: position)
    if case .runs = self { return end.map { min($0, position + Self.remainderByteCount) } }
    return end
  }

  /// Returns false if nothing is read from `position` on, nor soon after.
  func needsTransfer(at position: Int64) -> Bool {
    switch self {
    case .forward, .unknown: true
    case .window(_, let end): position < end
    case .runs(let runs): run(at: position, of: runs) != nil
    }
  }

  private func run(at position: Int64, of runs: [Range<Int64>]) -> Range<Int64>? {
    runs.last { $0.contains(position) }
      ?? runs.first { (0...Self.readThroughByteCount).contains($0.lowerBound - position) }
  }
}

/// Determines how many transfers the reading of samples needs.
private struct RunFinder {
  /// The maximum distance of a sample before the end of one that is read earlier.
  private(set) var distance = 0
  private var reach: Int64 = 0
  /// The current ranges, the last used one last.
  private var open: [Range<Int64>] = []
  private var closed: [Range<Int64>] = []

  /// The ranges in order of position.
  var runs: [Range<Int64>] { (closed + open).sorted { $0.lowerBound < $1.lowerBound } }

  mutating func add(_ sample: Range<Int64>) {
    distance = max(distance, Int(clamping: reach - sample.lowerBound))
    reach = max(reach, sample.upperBound)
    let index = open.lastIndex {
      (0...ReadingOrder.readThroughByteCount).contains(sample.lowerBound - $0.upperBound)
    }
    guard let index else {
      if open.count == ReadingOrder.maximumTransferCount { closed.append(open.removeFirst()) }
      open.append(sample)
      return
    }
    open[index] = open[index].lowerBound..<sample.upperBound
    open.swapAt(index, open.count - 1)
  }
}
