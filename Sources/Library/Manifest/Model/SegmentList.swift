package import ReelCore

/// The segments of one rung, in order. Elements are created when they are accessed, so a list of 50,000 takes
/// no more memory than its manifest.
package struct SegmentList: RandomAccessCollection, Sendable {
  /// How closely the durations of a list follow those of the media.
  package enum Precision: Sendable {
    case exact
    /// Written to the millisecond or better, but in whole seconds: they may be exact, or rounded.
    case whole
    /// Written with fewer digits, so a start is off by the sum of all errors before it.
    case rounded
  }

  package let count: Int
  /// The end of the last segment on the presentation's timeline.
  package let end: MediaTime
  /// The initialization segment that all segments share; nil if they have none, or different ones.
  package let commonInitialization: InitializationReference?
  package let precision: Precision
  /// DASH: the indices of the segments that begin later than the ones before them end.
  package let holes: [Int]
  private let element: @Sendable (Int) -> SegmentReference

  /// Creates a list of `count` segments; `element` returns the one at an index, counted from 0.
  package init(
    count: Int, end: MediaTime, commonInitialization: InitializationReference? = nil,
    precision: Precision = .exact, holes: [Int] = [],
    element: @escaping @Sendable (Int) -> SegmentReference
  ) {
    self.count = count
    self.end = end
    self.commonInitialization = commonInitialization
    self.precision = precision
    self.holes = holes
    self.element = element
  }

  /// A list of these segments.
  package init(_ segments: [SegmentReference]) {
    self.init(
      count: segments.count, end: segments.last.map { $0.start + $0.duration } ?? .zero,
      element: { segments[$0] })
  }

  package var startIndex: Int { 0 }
  package var endIndex: Int { count }
  package subscript(index: Int) -> SegmentReference { element(index) }

  /// Returns the index of the segment on show at `time`: the last one that starts at or before it; 0 for a
  /// time before the first. Nil for an empty list.
  package func index(at time: MediaTime) -> Int? {
    guard count > 0 else { return nil }
    return Swift.max((0..<count).bisect { self[$0].start > time } - 1, 0)
  }
}

extension SegmentList {
  /// The place of a segment of another reading in a list.
  package enum Place: Sendable, Hashable {
    case at(Int)
    /// Before the list, which begins later.
    case before
    /// After the list, which ends earlier.
    case after
  }

  /// Returns where a segment of an earlier reading of the same rung is in this one.
  package func place(of segment: SegmentReference, by identity: SegmentWindow.Identity) -> Place {
    guard let first, let last else { return .before }
    switch identity {
    case .number:
      if segment.number < first.number { return .before }
      return segment.number > last.number
        ? .after : .at(Int(clamping: Int128(segment.number) - Int128(first.number)))
    case .start:
      // By its middle, because starts may be rounded differently in the new list.
      if segment.middle < first.start { return .before }
      return segment.start >= last.start + last.duration ? .after : .at(index(at: segment.middle) ?? 0)
    }
  }

  /// The same segments, later on the timeline by `shift`, or earlier if it is negative.
  package func moved(by shift: MediaTime) -> SegmentList {
    guard shift != .zero else { return self }
    return SegmentList(
      count: count, end: end + shift, commonInitialization: commonInitialization, holes: holes
    ) { [self] index in
      var segment = self[index]
      segment.start = segment.start + shift
      segment.timestampOffset = segment.timestampOffset.map { $0 + shift }
      return segment
    }
  }

  /// The same segments and initializations, encrypted as `change` says.
  package func encrypted(
    _ change: @escaping @Sendable (SegmentEncryption?) -> SegmentEncryption?
  ) -> SegmentList {
    var common = commonInitialization
    let encryption = change(common?.encryption)
    common?.encryption = encryption
    return SegmentList(
      count: count, end: end, commonInitialization: common, precision: precision, holes: holes
    ) { [self] index in
      var segment = self[index]
      segment.encryption = change(segment.encryption)
      let encryption = change(segment.initialization?.encryption)
      segment.initialization?.encryption = encryption
      return segment
    }
  }

  /// The segments at these indices, which must be in the list.
  package func part(_ indices: Range<Int>) -> SegmentList {
    let last = indices.isEmpty ? nil : self[indices.upperBound - 1]
    let end = last.map { $0.start + $0.duration } ?? .zero
    return SegmentList(count: indices.count, end: end, commonInitialization: commonInitialization) {
      [self] index in self[indices.lowerBound + index]
    }
  }

  /// Joins consecutive lists, such as those of the periods of one track.
  package init(joining lists: [SegmentList]) {
    let parts = lists.filter { !$0.isEmpty }
    if let only = parts.first, parts.count == 1 {
      self = only
      return
    }
    var ends: [Int] = []
    for part in parts { ends.append((ends.last ?? 0) + part.count) }
    self.init(count: ends.last ?? 0, end: parts.last?.end ?? .zero) { [ends] index in
      let part = ends.indices.bisect { ends[$0] > index }
      return parts[part][index - (part == 0 ? 0 : ends[part - 1])]
    }
  }
}
