import Foundation
import ReelCore
import ReelManifest

/// Reads what a parser gave: lists make their elements when they are asked for, and traps may wait in them.
enum Walker {
  /// How many rungs of a presentation are walked through.
  private static let rungLimit = 24

  static func walk(_ presentation: Presentation) {
    walkOnce(presentation)
    guard let again = presentation.live?.presentation else { return }
    var window = first(presentation).map { SegmentWindow($0, identity: .start) }
    for time in times {
      guard let other = try? again(time) else { continue }
      walkOnce(other)
      if let list = first(other) { _ = window?.update(list) }
      if let window { walk(window) }
    }
  }

  static func walk(_ playlist: MediaPlaylistSegments) {
    walk(playlist.segments)
    use(playlist.live?.delay.seconds, playlist.startOffset?.seconds)
    check(playlist.warnings)
  }

  static func walk(_ list: SegmentList) {
    use(list.end.seconds)
    guard list.count > 0 else {
      guard list.index(at: .zero) == nil else { fatalError("an index in an empty list") }
      return
    }
    for index in Set([0, 1, list.count / 3, list.count / 2, list.count - 2, list.count - 1])
    where (0..<list.count).contains(index) {
      let segment = list[index]
      use(
        segment.url.absoluteString, segment.start.seconds, (segment.start + segment.duration).seconds,
        segment.byteRange?.httpHeaderValue, segment.initialization?.url.absoluteString,
        segment.initialization?.byteRange?.httpHeaderValue, segment.encryption?.keyURL?.absoluteString,
        segment.encryption?.initializationVector, segment.programDateTime?.description,
        segment.timestampOffset?.seconds, segment.alternateURLs.count)
      check(list.index(at: segment.start), in: list)
    }
    let beyond = [
      MediaTime.zero, list.end, MediaTime(value: .max, timescale: 1), MediaTime(value: .min, timescale: 1),
      MediaTime(value: 1, timescale: .max),
    ]
    for time in beyond { check(list.index(at: time), in: list) }
  }

  static func walk(_ window: SegmentWindow) {
    use(window.start.seconds, window.end.seconds, window.hasEnded)
    guard window.startIndex <= window.endIndex else { fatalError("a window that ends before it starts") }
    for index in [window.startIndex - 1, window.startIndex, window.endIndex - 1, window.endIndex] {
      let segment = window[index]
      guard (segment != nil) == (window.startIndex..<window.endIndex).contains(index) else {
        fatalError("a window without one of its segments")
      }
      use(segment?.url.absoluteString, segment?.discontinuity, segment?.start.seconds)
    }
    for time in [MediaTime.zero, window.start, window.end, MediaTime(value: .max, timescale: 7)] {
      guard let index = window.index(at: time) else { continue }
      guard window[index] != nil else { fatalError("no index of the window: \(index)") }
    }
  }

  // MARK: - Private

  /// The segments of the first track in all periods.
  private static func first(_ presentation: Presentation) -> SegmentList? {
    let lists = presentation.periods.compactMap { period -> SegmentList? in
      guard case .segments(let list)? = period.trackGroups.first?.rungs.first?.media else { return nil }
      return list
    }
    return lists.isEmpty ? nil : SegmentList(joining: lists)
  }

  /// What the clock may say: then, an hour later, long ago, never.
  private static let times = [
    0, 1_769_860_802_000_000_000, 1_769_864_400_000_000_000, 1_300_000_000_123_456_789, .max, .min,
  ].map { WallTime(nanosecondsSince1970: $0) }

  private static func walkOnce(_ presentation: Presentation) {
    check(presentation.warnings)
    use(presentation.duration?.seconds, presentation.startOffset?.seconds, presentation.variables.count)
    if let live = presentation.live {
      for duration in [nil, MediaTime.zero, MediaTime(value: .max, timescale: 1)] {
        use(live.reloadDelay(hasChanged: true, segmentDuration: duration)?.seconds)
        use(live.reloadDelay(hasChanged: false, segmentDuration: duration)?.seconds)
      }
      use(live.delay.seconds, live.timeShiftBufferDepth?.seconds, live.availabilityStart?.description)
      use(live.availabilityEnd?.description, live.locations.count, live.clockSources.count)
    }
    var rungCount = 0
    for period in presentation.periods {
      use(period.id, period.start.seconds, period.duration?.seconds)
      for group in period.trackGroups {
        guard !group.rungs.isEmpty else { fatalError("a group without rungs") }
        for rung in group.rungs {
          rungCount += 1
          guard rungCount <= rungLimit else { return }
          use(rung.id, rung.frameRate?.value, rung.size?.description, rung.availabilityTimeOffset?.seconds)
          switch rung.media {
          case .segments(let list): walk(list)
          case .playlist(let url): use(url.absoluteString)
          case .index(let reference): use(reference.url.absoluteString, reference.start.seconds)
          }
        }
      }
    }
  }

  private static func check(_ index: Int?, in list: SegmentList) {
    guard let index, (0..<list.count).contains(index) else {
      fatalError("no index of the list: \(index as Any)")
    }
  }

  private static func check(_ warnings: [ReelError]) {
    guard warnings.count <= 100 else { fatalError("\(warnings.count) warnings") }
    for warning in warnings where warning.description.utf8.count > 100_000 {
      fatalError("a warning of \(warning.description.utf8.count) bytes")
    }
  }

  /// Keeps the optimizer from leaving out what nobody looks at.
  @inline(never) private static func use(_ values: Any?...) {}
}
