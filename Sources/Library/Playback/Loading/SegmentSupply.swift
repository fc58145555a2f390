internal import ReelCore
internal import ReelManifest

/// The state of a segment, without waiting for it.
enum SegmentPeek {
  case segment(SegmentReference)
  /// The segment is not available yet.
  case awaited
  /// There is no such segment, and none will follow.
  case ended
}

/// The segments of one track, by stable index: all at once, or appearing one by one.
protocol SegmentSupply: Sendable {
  /// The index at which playback begins if no other position is requested.
  var firstIndex: Int { get }
  /// The range from the oldest available segment to the newest known one.
  var knownIndexes: Range<Int> { get }
  /// The live state; nil for a complete list.
  var live: LiveTiming? { get }

  func peek(at index: Int) -> SegmentPeek

  /// Returns the segment at `index`, after waiting for it if it has not appeared yet; nil after the last one.
  /// If it has left the live window, the oldest available one is returned instead.
  func segment(from index: Int) async throws -> (index: Int, segment: SegmentReference)?

  /// Returns the index of the known segment at `time`.
  func index(at time: MediaTime) -> Int?

  /// Returns the next step after the segment at `index`, or something that it needs, could not be loaded: `again`,
  /// after waiting, `leaveOut`, or `fail`.
  func recovery(after error: ReelError, at index: Int) async throws -> Recovery

  /// Reports that a segment was loaded.
  func recordSuccess()

  /// The number of segments skipped because they could not be loaded, or had left the live window.
  var missedCount: Int { get }
}

/// A complete list of segments.
struct ListedSegments: SegmentSupply {
  let list: SegmentList
  /// The start of playback: from the beginning or, if negative, from the end; nil for the first segment
  /// (EXT-X-START, RFC 8216 §4.3.5.2).
  var startOffset: MediaTime?

  var firstIndex: Int {
    guard let startOffset else { return 0 }
    return list.index(at: startOffset < .zero ? list.end + startOffset : startOffset) ?? 0
  }
  var knownIndexes: Range<Int> { 0..<list.count }
  var live: LiveTiming? { nil }

  func peek(at index: Int) -> SegmentPeek { index < list.count ? .segment(list[index]) : .ended }

  func segment(from index: Int) async throws -> (index: Int, segment: SegmentReference)? {
    index < list.count ? (index, list[index]) : nil
  }

  func index(at time: MediaTime) -> Int? { list.index(at: time) }

  func recovery(after error: ReelError, at index: Int) async throws -> Recovery { .fail }

  func recordSuccess() {}

  var missedCount: Int { 0 }
}
