import Foundation
import ReelCore
import ReelManifest

extension VirtualHLS {
  /// The state that the playlists of a live presentation keep from one reading of the manifest to the next.
  struct Live: Sendable {
    /// The timing of the latest manifest; nil once the presentation has ended.
    var timing: LiveTiming?
    /// The wall-clock time of the timeline's zero (@availabilityStartTime when the manifest was first read); nil if segments
    /// are not tied to the clock.
    var start: WallTime?
    /// The time by which the timeline of the latest manifest is later than the first one's, because the presentation was
    /// restarted.
    var shift = MediaTime.zero
    /// The numbers of the latest periods, by their starts in tenths of a second.
    var periods: [Int64: Int] = [:]
    /// The number of the next new period.
    var nextPeriod = 0
    /// The start of the newest period.
    var newestStart: MediaTime?
  }
}

/// Numbers the segments of a live presentation: each has the same number in every reading of the manifest.
///
/// Numbers begin with the position of the first segment on the timeline, counted in segments, so that another process
/// gives the same ones, and renditions with segments of equal length are in step. From then on, a segment is the one that
/// was listed before if it is at the same place of the timeline (DASH), or has the same number (HLS).
struct LiveNumbering {
  let format: ManifestFormat
  /// The length that positions are counted in.
  let nominalDuration: MediaTime

  /// The number of segments that a playlist lists in one period.
  static let limit = 5000
  /// The number of readings that end before what is listed, after which the presentation counts as restarted.
  private static let patience = 3

  /// Returns a part that was not listed before.
  ///
  /// - Parameters:
  ///   - part: The part before it in the playlist.
  ///   - published: The last part that was listed before; nil at first. Only segments after it are new.
  func part(
    _ list: SegmentList, period: Int, after part: VirtualHLS.Part?, published: VirtualHLS.Part?
  ) -> VirtualHLS.Part? {
    var first = max(0, list.count - Self.limit)
    if let published, format == .dash {
      first = max(
        first, list.indices.bisect { list[$0].middle > published.list.end })
    }
    guard first < list.count else { return nil }
    // Numbers follow each other in a playlist, whatever was missed.
    let firstIndex = part?.endIndex ?? max(published?.endIndex ?? 0, number(of: list[first]))
    return VirtualHLS.Part(
      list.part(first..<list.count), firstIndex: firstIndex, period: period, statesDurations: true)
  }

  /// Returns a part as the latest manifest lists it. Segments that were listed before keep their numbers.
  func part(_ known: VirtualHLS.Part, continuing list: SegmentList) -> VirtualHLS.Part {
    guard let last = known.list.last, !list.isEmpty else { return known }
    let firstIndex: Int
    var list = list
    var dropped = max(0, list.count - Self.limit)
    switch list.place(of: last, by: .init(format)) {
    case .at(let index):
      // Segments that were removed do not come back.
      dropped = max(dropped, index - (known.list.count - 1))
      firstIndex = known.endIndex - 1 - index
      // The end of a period cuts the last segment. It keeps the duration that players know.
      list = list.replacing(index, by: last)
    case .before:
      firstIndex = max(known.endIndex, number(of: list[dropped]) - dropped)
    case .after:
      var part = known
      part.stepsBack += 1
      // An old copy from a cache, or a playlist whose numbers have restarted.
      guard part.stepsBack >= Self.patience, format == .hls else { return part }
      firstIndex = known.endIndex
    }
    var part = VirtualHLS.Part(list, firstIndex: firstIndex, period: known.period, statesDurations: true)
    part.drop(dropped)
    return part
  }

  /// Returns a part that gets no more segments, because another one follows. Segments that the manifest no longer lists are
  /// removed.
  func closed(_ known: VirtualHLS.Part, trimmedTo list: SegmentList) -> VirtualHLS.Part {
    guard let start = list.first?.start else { return known }
    let segments = known.list
    let gone = segments.indices.bisect { segments[$0].middle > start }
    var part = known
    part.drop(min(gone, segments.count - 1))
    return part
  }

  // MARK: - Private

  private func number(of segment: SegmentReference) -> Int {
    if format == .hls { return Int(clamping: max(0, segment.number)) }
    guard nominalDuration > .zero else { return 0 }
    return Int(max(0, min(segment.start.seconds / nominalDuration.seconds, 1e15)).rounded())
  }
}

extension SegmentList {
  /// The same list with the duration of another reading at `index`.
  fileprivate func replacing(_ index: Int, by segment: SegmentReference) -> SegmentList {
    guard self[index].duration != segment.duration else { return self }
    return SegmentList(count: count, end: end, commonInitialization: commonInitialization) { [self] place in
      var result = self[place]
      if place == index { result.duration = segment.duration }
      return result
    }
  }

  /// The same list, with the number of its period, and with gaps where its timeline has holes: each at most as long as the
  /// longer of the segments around it.
  func filled(period: Int) -> SegmentList {
    var lists: [SegmentList] = []
    var next = 0
    for index in holes.prefix(LiveNumbering.limit) {
      let (before, after) = (self[index - 1], self[index])
      let (start, longest) = (before.start + before.duration, Swift.max(before.duration, after.duration))
      let length = after.start - start
      // Less is the imprecision of a timeline.
      guard length > longest.half, longest > .zero else { continue }
      let pieces = Int(Swift.min((length.seconds / longest.seconds).rounded(.up), 1000))
      let duration = MediaTime(seconds: length.seconds / Double(pieces))
      let gap = after.gap
      lists.append(part(next..<index))
      lists.append(
        SegmentList(count: pieces, end: start + duration * Int64(pieces)) { index in
          var gap = gap
          (gap.start, gap.duration) = (start + duration * Int64(index), duration)
          return gap
        })
      next = index
    }
    let result = lists.isEmpty ? self : SegmentList(joining: lists + [part(next..<count)])
    return SegmentList(count: result.count, end: result.end, commonInitialization: commonInitialization) {
      index in
      var segment = result[index]
      segment.discontinuity = period
      return segment
    }
  }
}

extension LiveTiming {
  /// The target duration of playlists, in whole seconds, given that of the segments that are listed so far.
  func targetDuration(atLeast longest: Int64) -> Int64 {
    if case .targetDuration(let stated) = reload { return max(longest, Int64(stated.seconds.rounded())) }
    // Players keep three target durations to the edge: a limit far above the segments would cost latency.
    guard let limit = maxSegmentDuration, limit.seconds <= Double(2 * longest) else { return longest }
    return max(longest, Int64(limit.seconds.rounded()))
  }
}

extension SegmentReference {
  /// A gap of the same place.
  var gap: SegmentReference {
    var segment = self
    segment.isGap = true
    segment.byteRange = nil
    segment.encryption = nil
    segment.alternateURLs = []
    if let url = VirtualHLS.emptySegment { segment.url = url }
    return segment
  }

  /// True for a gap that the manifest does not list.
  var isFiller: Bool { isGap && url == VirtualHLS.emptySegment }
}

extension VirtualHLS {
  /// The placeholder for missing media: an empty `free` box (ISO/IEC 14496-12 §8.1.2).
  ///
  /// Not every player respects EXT-X-GAP: FFmpeg 5.1 requests all of these segments, Chromium the first. An empty segment
  /// does less harm than an error.
  static let emptySegment = URL(string: "data:video/mp4;base64,AAAACGZyZWU=")
}
