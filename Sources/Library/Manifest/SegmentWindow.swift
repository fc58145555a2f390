package import ReelCore

/// The segments of a live rung, joined across readings of its manifest.
///
/// A segment keeps its index, its start and its run across readings, whatever the manifest counts from. The
/// window contains only the newest list: a segment that has left the manifest is gone.
package struct SegmentWindow: Sendable {
  /// The property that identifies a segment across readings.
  package enum Identity: Sendable {
    /// Its number (HLS: the media sequence number). Starts are counted from the beginning of each list.
    case number
    /// Its start on a timeline that all lists share (DASH).
    case start

    package init(_ format: ManifestFormat) { self = format == .hls ? .number : .start }
  }

  /// The result of a reading.
  package enum Change: Sendable, Hashable {
    /// This many segments, at least one, continue where the last list ended.
    case grew(by: Int)
    case unchanged
    /// The list ends before the known one, as an old copy from a cache does. It is ignored.
    case steppedBack
    /// The list begins after the known end. This many segments were missed, if known.
    case jumped(missed: Int)
    /// The list has stepped back so often that the stream must have been restarted.
    case restarted
  }

  /// True if no more segments will come.
  package private(set) var hasEnded: Bool

  private let identity: Identity
  private var list: SegmentList
  /// The number to add to an index, a start and a discontinuity number of `list`.
  private var indexShift = 0
  private var timeShift = MediaTime.zero
  private var runShift = 0
  private var stepsBack = 0

  /// The number of consecutive lists that step back before the stream counts as restarted.
  private static let stepsBackLimit = 3

  package init(_ list: SegmentList, identity: Identity, hasEnded: Bool = false) {
    self.list = list
    self.identity = identity
    self.hasEnded = hasEnded
  }

  /// The index of the oldest segment.
  package var startIndex: Int { indexShift }
  /// The index after the newest segment.
  package var endIndex: Int { indexShift + list.count }
  /// The start of the oldest segment.
  package var start: MediaTime { list.first.map { $0.start + timeShift } ?? end }
  /// The end of the newest segment.
  package var end: MediaTime { list.end + timeShift }

  /// The segment at an index, nil if it is not in the window.
  package subscript(index: Int) -> SegmentReference? {
    index >= startIndex && index < endIndex ? placed(index - indexShift) : nil
  }

  /// Returns the index of the segment on show at `time`; nil for an empty window.
  package func index(at time: MediaTime) -> Int? {
    list.index(at: time - timeShift).map { $0 + indexShift }
  }

  /// Applies a newer list. `hasEnded` says that it is the last one, `beginsRun` that its additions do not
  /// continue the previous timestamps.
  package mutating func update(
    _ new: SegmentList, hasEnded: Bool = false, beginsRun: Bool = false
  ) -> Change {
    guard let last = list.last else {
      list = new
      self.hasEnded = hasEnded
      return new.isEmpty ? .unchanged : .grew(by: new.count)
    }
    guard let oldest = new.first else {
      self.hasEnded = hasEnded
      return .unchanged
    }
    let place = new.place(of: last, by: identity)
    if case .after = place {
      stepsBack += 1
      guard stepsBack >= Self.stepsBackLimit else { return .steppedBack }
      append(new, from: end)
      self.hasEnded = hasEnded
      return .restarted
    }
    stepsBack = 0
    self.hasEnded = hasEnded
    if case .at(let anchor) = place {
      let known = new[anchor]
      indexShift += list.count - 1 - anchor
      if identity == .number { timeShift = timeShift + last.start - known.start }
      runShift += last.discontinuity - known.discontinuity + (beginsRun ? 1 : 0)
      list = new
      let count = new.count - 1 - anchor
      return count > 0 ? .grew(by: count) : .unchanged
    }
    let missed = identity == .number ? Int(clamping: Int128(oldest.number) - Int128(last.number) - 1) : 0
    append(new, from: start(after: last, missed: missed, of: oldest, in: new))
    return .jumped(missed: missed)
  }

  // MARK: - Private

  /// Returns a segment of the list, with its start and run in this window.
  private func placed(_ position: Int) -> SegmentReference {
    var segment = list[position]
    segment.start = segment.start + timeShift
    segment.discontinuity += runShift
    return segment
  }

  /// Appends a list that continues after all known segments, at `start`, with a run of its own.
  private mutating func append(_ new: SegmentList, from start: MediaTime) {
    let run = (list.last?.discontinuity ?? 0) + runShift + 1
    indexShift += list.count
    if let first = new.first {
      timeShift = start - first.start
      runShift = run - first.discontinuity
    }
    list = new
  }

  /// Returns the start of the first segment of `new`, if segments between it and `last` were missed.
  private func start(
    after last: SegmentReference, missed: Int, of first: SegmentReference, in new: SegmentList
  ) -> MediaTime {
    if identity == .start { return first.start }
    if let date = programDate(of: list.count - 1, in: list), let newDate = programDate(of: 0, in: new),
      newDate > date
    {
      return last.start + timeShift + (newDate - date)
    }
    return end + last.duration * Int64(missed)
  }

  /// Returns the wall-clock time of a segment: its own, or computed from the nearest segment of the run that
  /// states one.
  private func programDate(of index: Int, in list: SegmentList) -> WallTime? {
    let segment = list[index]
    if let date = segment.programDateTime { return date }
    let reach = 64
    let near = (Swift.max(0, index - reach)..<Swift.min(list.count, index + reach)).map { list[$0] }
    let stated = near.filter { $0.programDateTime != nil && $0.discontinuity == segment.discontinuity }
    return stated.first.flatMap { other in
      other.programDateTime.map { $0 + (segment.start - other.start) }
    }
  }
}
