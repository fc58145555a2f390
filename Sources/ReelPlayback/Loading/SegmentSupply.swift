internal import ReelCore
internal import ReelManifest

/// What is known of a segment before it is waited for.
enum SegmentPeek {
  case segment(SegmentReference)
  /// It may come, but is not there yet.
  case awaited
  /// There is none, and none will come.
  case ended
}

/// What to do after a segment could not be had.
enum SegmentFailureAction {
  case fail
  case tryAgain
  case passOver
}

/// The segments of one track, by an index that stays: all there at once, or coming one after the other.
protocol SegmentSupply: Sendable {
  /// Where playback begins unless another place is asked for.
  var firstIndex: Int { get }
  /// The oldest segment that can be had, and the one after the last that is known.
  var knownIndexes: Range<Int> { get }
  /// How the manifest is followed; nil for a list that is complete.
  var live: LiveTiming? { get }

  func peek(at index: Int) -> SegmentPeek

  /// The segment at `index`, waited for where it is still to come; nil behind the last one. In place of one that has
  /// gone from a live window comes the oldest that is there.
  func segment(from index: Int) async throws -> (index: Int, segment: SegmentReference)?

  /// The index of the segment on show at `time`, of those that are known.
  func index(at time: MediaTime) -> Int?

  /// Asked where the segment at `index`, or what it needs, could not be had. May wait.
  func action(after error: ReelError, at index: Int) async throws -> SegmentFailureAction

  /// A segment was had.
  func noteSuccess()

  /// Segments that were passed over because they could not be had, or had gone before they were read.
  var missedCount: Int { get }
}

/// Segments that are all known.
struct ListedSegments: SegmentSupply {
  let list: SegmentList
  /// Where playback is to start, from the beginning or, where it is negative, from the end; nil for the first segment
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

  func action(after error: ReelError, at index: Int) async throws -> SegmentFailureAction { .fail }

  func noteSuccess() {}

  var missedCount: Int { 0 }
}
