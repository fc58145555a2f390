internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelSources

/// The search for the segment that is on show at a time, in a list whose durations are rounded.
///
/// The sum of all rounding errors before a segment may be any number of segments. Each segment that was opened shows where
/// it is, and the next guess assumes that all are as long as those before it.
struct SegmentSearch {
  let target: MediaTime
  /// The last segment that is known to begin at or before the target.
  private var lower: Int?
  /// The first one that is known to begin after it.
  private var upper: Int?
  private var stepCount = 0

  /// The number of segments that are opened at most.
  private static let stepLimit = 8
  /// Audio that begins so much later than the target is no loss.
  private static let audioTolerance = MediaTime(value: 1, timescale: 10)

  init(target: MediaTime) { self.target = target }

  /// Returns the index of the segment to open after one that begins at `time`; nil if that is the right one, or the best.
  ///
  /// - Parameters:
  ///   - isMain: False for separate audio.
  ///   - origin: The segment where the timestamps begin.
  ///   - drift: The most by which `time` may differ from the list. Otherwise the timestamps are of another clock.
  mutating func next(
    after place: SegmentSource.Place, at time: MediaTime, isMain: Bool, origin: SegmentSource.Place,
    drift: MediaTime
  ) -> Int? {
    let (index, supply) = (place.index, place.track.supply)
    let distance = time - place.segment.start
    stepCount += 1
    guard max(distance, .zero - distance) <= drift + TimestampMapper.tolerance, stepCount < Self.stepLimit,
      index > origin.index
    else { return nil }
    let count = Double(index - origin.index)
    let length = max(0.001, (time - origin.segment.start).seconds / count)
    let guess = origin.index + Int((target - origin.segment.start).seconds / length)
    let isLate = time > target + (isMain ? .zero : Self.audioTolerance)
    if isLate {
      upper = min(upper ?? index, index)
      guard index - 1 > lower ?? -1 else { return lower }
      return min(max(guess, lower ?? origin.index), index - 1)
    }
    lower = max(lower ?? index, index)
    let last =
      upper.map { $0 - 1 } ?? (index..<supply.knownIndexes.upperBound).bisect {
        supply[$0]?.discontinuity != place.segment.discontinuity
      } - 1
    guard (target - time).seconds > length * 1.5, index < last else { return nil }
    return min(max(guess, index + 1), last)
  }
}

/// The video of one container, for a decoder.
final class ContainerVideo: AccessUnitSource {
  /// The time of the first unit.
  private(set) var firstTime: MediaTime?
  private let container: ContainerReader

  init(_ container: ContainerReader) { self.container = container }

  func nextUnit() throws -> Pulled<Packet> {
    while true {
      let unit = try container.next()
      switch unit {
      case .video(let packet):
        firstTime = firstTime ?? container.mainUnit(unit)?.time
        return .element(packet)
      case .audio: continue
      case .programChanged, .end: return .end
      }
    }
  }

  func didOpen(_ opening: OpeningPicture) {}
}

extension ContainerReader {
  /// Returns what places a unit of the video, or of the audio of a container without video; nil for others.
  func mainUnit(_ unit: Unit) -> (time: MediaTime, isKey: Bool)? {
    switch unit {
    case .video(let packet): return video.flatMap { placed(packet, of: $0) }
    case .audio(let packet): return video == nil ? audio.flatMap { placed(packet, of: $0) } : nil
    case .programChanged, .end: return nil
    }
  }

  private func placed(_ packet: Packet, of stream: StreamInfo) -> (time: MediaTime, isKey: Bool)? {
    let ticks = packet.presentationTicks ?? packet.decodingTicks
    return ticks.map { (stream.time(ticks: $0), packet.isKey || stream.kind == .audio) }
  }
}
