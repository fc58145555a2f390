package import ReelCore
package import ReelManifest

/// The segments of one rung, by stable index: a complete list, or the window of a live track.
package enum SegmentSupply: Sendable {
  case list(SegmentList)
  /// - `shift`: Added to the times, so that they are on the timeline of the track that was opened first; nil for
  ///   that track itself.
  case live(LiveSegments, shift: MediaTime? = nil)

  /// The index at which playback begins if no other position is requested.
  package var firstIndex: Int {
    switch self {
    case .list: 0
    case .live(let live, _): live.firstIndex
    }
  }

  /// The index at which playback begins beside other tracks.
  package var joiningIndex: Int {
    if case .live(let live, _) = self { live.joiningIndex } else { firstIndex }
  }

  /// The range from the oldest available segment to the newest known one.
  package var knownIndexes: Range<Int> {
    switch self {
    case .list(let list): 0..<list.count
    case .live(let live, _): live.knownIndexes
    }
  }

  /// The part of the timeline that the known segments cover.
  package var range: Range<MediaTime>? {
    let known = knownIndexes
    guard !known.isEmpty, let first = self[known.lowerBound], let last = self[known.upperBound - 1],
      first.start < last.range.upperBound
    else { return nil }
    return first.start..<last.range.upperBound
  }

  /// The end of a complete list; nil for a live track.
  package var end: MediaTime? { if case .list(let list) = self { list.end } else { nil } }

  /// How closely the durations follow those of the media. A live track is placed by those of the list.
  package var precision: SegmentList.Precision {
    if case .list(let list) = self { list.precision } else { .exact }
  }

  /// The live state; nil for a complete list.
  package var timing: LiveTiming? { if case .live(let live, _) = self { live.live } else { nil } }

  /// The live track whose times are those of the timeline; nil for others.
  package var reference: LiveSegments? { if case .live(let live, shift: nil) = self { live } else { nil } }

  /// The number of segments of a live track that were skipped because they could not be loaded, or had left the
  /// window.
  package var missedCount: Int { if case .live(let live, _) = self { live.missedCount } else { 0 } }

  /// The segment at `index`, if it is known.
  package subscript(index: Int) -> SegmentReference? {
    if case .element(let segment) = peek(at: index) { segment } else { nil }
  }

  /// Returns the segment at `index`, without waiting for it.
  package func peek(at index: Int) -> Pulled<SegmentReference> {
    switch self {
    case .list(let list): return list.indices.contains(index) ? .element(list[index]) : .end
    case .live(let live, let shift):
      guard case .element(let segment) = live.peek(at: index) else { return live.peek(at: index) }
      return .element(segment.moved(by: shift))
    }
  }

  /// Returns the segment at `index`, after waiting for it if it has not appeared yet; nil after the last one. If it
  /// has left the live window, the oldest available one is returned instead.
  package func segment(from index: Int) async throws -> (index: Int, segment: SegmentReference)? {
    switch self {
    case .list(let list): return index < list.count ? (index, list[index]) : nil
    case .live(let live, let shift):
      return try await live.segment(from: index).map { ($0.index, $0.segment.moved(by: shift)) }
    }
  }

  /// Looks for newer segments of a live track, if the known ones end before `time` and are outdated.
  package func update(for time: MediaTime) async throws {
    guard case .live(let live, let shift) = self else { return }
    let time = time - (shift ?? .zero)
    guard live.isOutdated(at: time) else { return }
    try await live.update(for: time)
  }

  /// Returns the index of the known segment at `time`.
  package func index(at time: MediaTime) -> Int? {
    switch self {
    case .list(let list): list.index(at: time)
    case .live(let live, let shift): live.index(at: time - (shift ?? .zero))
    }
  }
}

extension SegmentReference {
  /// The segment's part of the timeline.
  package var range: Range<MediaTime> { start..<start + max(.zero, duration) }

  /// Returns true if the segment continues the byte stream that `first` began.
  package func continues(_ first: SegmentReference) -> Bool {
    discontinuity == first.discontinuity && initialization == first.initialization && !isGap
  }

  fileprivate func moved(by shift: MediaTime?) -> SegmentReference {
    guard let shift else { return self }
    var copy = self
    copy.start = start + shift
    return copy
  }
}
