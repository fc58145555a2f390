internal import ReelCore
internal import ReelManifest

/// The offsets shared by the readers of one item, so that video, audio and all rungs are on one timeline.
final class TimestampOffsets: Sendable {
  private struct Key: Hashable {
    let period: Int
    let discontinuity: Int
  }

  private struct State {
    var offsets: [Key: TimestampOffset] = [:]
    /// The first live playlist that was read. Later ones are aligned with it.
    var reference: LiveSegments?
  }

  private let state = Locked(State())

  /// A live item adds an offset at each jump, so old ones are dropped.
  private static let countLimit = 256

  /// Returns the offset of a segment's timestamps: the one that the manifest states, or that of all segments
  /// with the same discontinuity number (RFC 8216 §6.2.4: the timestamps of variants match).
  func offset(for segment: SegmentReference, period: Int) -> TimestampOffset {
    if let offset = segment.timestampOffset { return TimestampOffset(offset: offset) }
    let key = Key(period: period, discontinuity: segment.discontinuity)
    return state.withLock { state in
      if let known = state.offsets[key] { return known }
      if state.offsets.count >= Self.countLimit { state.offsets = [:] }
      let made = TimestampOffset(offset: nil)
      state.offsets[key] = made
      return made
    }
  }

  /// Returns a live playlist, shifted so that segments with the same number begin at the same time as in
  /// earlier playlists.
  func aligned(_ segments: LiveSegments) -> SegmentSupply {
    let reference = state.withLock { state in
      defer { state.reference = state.reference ?? segments }
      return state.reference
    }
    guard let reference else { return .live(segments) }
    return .live(segments, shift: Self.shift(from: segments.window, to: reference.window))
  }

  // MARK: - Private

  private static func shift(from window: SegmentWindow, to reference: SegmentWindow) -> MediaTime {
    for index in window.startIndex..<window.endIndex {
      guard let segment = window[index] else { continue }
      let twin = (reference.startIndex..<reference.endIndex).lazy.compactMap { reference[$0] }.first {
        $0.number == segment.number
      }
      if let twin { return twin.start - segment.start }
    }
    return reference.end - window.end
  }
}
