package import ReelCore

extension SegmentList {
  /// The same segments, later on the timeline by `shift`, or earlier if it is negative.
  package func moved(by shift: MediaTime) -> SegmentList {
    guard shift != .zero else { return self }
    return SegmentList(count: count, end: end + shift, commonInitialization: commonInitialization) {
      [self] index in
      var segment = self[index]
      segment.start = segment.start + shift
      segment.timestampOffset = segment.timestampOffset.map { $0 + shift }
      return segment
    }
  }

  /// Lists that follow each other, as those of the periods of one track, as one.
  package init(joining lists: [SegmentList]) {
    let parts = lists.filter { !$0.isEmpty }
    if let only = parts.first, parts.count == 1 {
      self = only
      return
    }
    var ends: [Int] = []
    for part in parts { ends.append((ends.last ?? 0) + part.count) }
    self.init(count: ends.last ?? 0, end: parts.last?.end ?? .zero) { [ends] index in
      var (low, high) = (0, ends.count - 1)
      while low < high {
        let middle = (low + high) / 2
        if ends[middle] <= index { low = middle + 1 } else { high = middle }
      }
      return parts[low][index - (low == 0 ? 0 : ends[low - 1])]
    }
  }
}
