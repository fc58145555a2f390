internal import Foundation
internal import ReelCore
internal import ReelManifest
internal import ReelSources

/// The segments of each rung that are read.
struct SamplePlan {
  /// The indices of the segments of each rung, in order.
  private(set) var indices: [[Int]]
  /// True if the budget leaves out samples.
  private(set) var isCut = false

  /// A list of at most this many segments is read as a whole.
  private static let wholeCount = 12
  /// The bytes of a second of a rung that states no bit rate.
  private static let usualRate = 250_000.0

  init(_ rungs: [RungFacts], _ options: CheckOptions) {
    // In the order of their importance: the first segment of each rung, boundaries, the rest.
    let wanted = rungs.map { $0.isToBeRead ? Self.wanted(in: $0, options.sample) : [] }
    guard let budget = options.byteBudget else {
      indices = wanted.map { $0.sorted() }
      return
    }
    indices = rungs.map { _ in [] }
    var spent = 0.0
    for place in 0..<(wanted.map(\.count).max() ?? 0) {
      for (rung, order) in wanted.enumerated() where place < order.count {
        let index = order[place]
        let cost = Self.byteCount(of: index, in: rungs[rung])
        guard spent + cost <= Double(budget) || indices[rung].isEmpty else {
          isCut = true
          continue
        }
        spent += cost
        indices[rung].append(index)
      }
    }
    indices = indices.map { $0.sorted() }
  }

  /// Splits indices into runs of neighbours that one decoder can decode: without a gap, a discontinuity or another
  /// initialization between them.
  static func runs(of indices: [Int], in segments: SegmentList) -> [[Int]] {
    var runs: [[Int]] = []
    for index in indices {
      if let last = runs.last?.last, index == last + 1, segments[index].continuesMedia(of: segments[last]) {
        runs[runs.count - 1].append(index)
      } else {
        runs.append([index])
      }
    }
    return runs
  }

  // MARK: - Private

  private static func wanted(in rung: RungFacts, _ sample: CheckOptions.Sample) -> [Int] {
    let segments = rung.segments
    let usable = segments.indices.filter(rung.isRequested)
    guard let first = usable.first, let last = usable.last else { return [] }
    let middle = usable[max(0, usable.count / 2 - 1)]
    var order: [Int]
    switch sample {
    case .start: order = [first]
    case .edges:
      order = [first, first + 1, last, last - 1, middle, middle + 1]
      if usable.count <= Self.wholeCount { order += Array(usable) }
    case .all: order = Array(usable)
    case .count(let count):
      order = [first]
      let pairs = max(1, count / 2)
      for pair in 0..<pairs {
        let start = pairs == 1 ? 0 : pair * max(0, usable.count - 2) / (pairs - 1)
        order += [usable[start], usable[start] + 1]
      }
    }
    var seen: Set<Int> = []
    order = order.filter {
      segments.indices.contains($0) && rung.isRequested($0) && seen.insert($0).inserted
    }
    if case .count(let count) = sample { order = Array(order.prefix(max(1, count))) }
    return order
  }

  private static func byteCount(of index: Int, in rung: RungFacts) -> Double {
    if let size = rung.sizes[index] { return Double(size) }
    let rate = rung.declared?.bitsPerSecond.map { Double($0) / 8 } ?? usualRate
    return rate * rung.segments[index].duration.seconds
  }
}

extension RungFacts {
  /// True if players ask for a segment: it is not marked as missing, and not all of it lies outside the period.
  func isRequested(_ index: Int) -> Bool {
    let segment = segments[index]
    let shown = shownRange(of: segment)
    return !segment.isGap && (shown.lowerBound < shown.upperBound || segment.duration.seconds <= 0)
  }
}

extension SegmentReference {
  /// True if one container goes on from `other` to this segment.
  func continuesMedia(of other: SegmentReference) -> Bool {
    discontinuity == other.discontinuity && initialization == other.initialization && !isGap && !other.isGap
  }
}

/// The rungs of a manifest, with names for people.
enum RungList {
  static func rungs(of loaded: LoadedManifest, _ wanted: CheckOptions.Rungs) -> [RungFacts] {
    var rungs: [RungFacts] = []
    for (periodIndex, period) in loaded.presentation.periods.enumerated() {
      for (groupIndex, group) in period.trackGroups.enumerated() {
        guard group.kind == .video || group.kind == .audio else { continue }
        for (rungIndex, rung) in group.rungs.enumerated() {
          var facts = RungFacts(name: name(of: rung, in: group), kind: group.kind)
          facts.place = (periodIndex, groupIndex, rungIndex)
          facts.declared = rung
          facts.language = group.language
          facts.claimsAlignment = group.hasAlignedSegments
          if loaded.presentation.format == .dash {
            let start = period.start.seconds
            facts.span = start...(period.duration.map { start + max(0, $0.seconds) } ?? .infinity)
          }
          let failure = loaded.failures.first {
            ($0.periodIndex, $0.groupIndex, $0.rungIndex) == (periodIndex, groupIndex, rungIndex)
          }
          if let failure {
            facts.status = .unlisted(failure.error)
          } else if let excuse = excuse(for: rung, in: group) {
            facts.status = .excused(excuse)
          }
          if case .segments(let list) = rung.media { facts.segments = list }
          facts.url =
            loaded.playlistURLs[[periodIndex, groupIndex, rungIndex]]
            ?? (loaded.presentation.format == .hls && loaded.documents.count == 1 ? loaded.url : nil)
          facts.roundsDurations = version(of: facts.url, in: loaded) < 3
          rungs.append(facts)
        }
      }
    }
    makeUnique(&rungs)
    shorten(&rungs, isLive: loaded.presentation.isLive)
    if wanted == .firstAndLast { skipInner(&rungs) }
    return rungs
  }

  // MARK: - Private

  /// The most segments of a rung, and of all rungs, that are looked at.
  private static let lengthLimit = 100_000
  private static let totalLimit = 400_000

  /// Leaves out the last segments of very long lists, or the oldest ones if more are added, and sets what is known of
  /// sizes.
  private static func shorten(_ rungs: inout [RungFacts], isLive: Bool) {
    let limit = max(1000, min(lengthLimit, totalLimit / max(1, rungs.count)))
    for index in rungs.indices {
      let list = rungs[index].segments
      let omitted = max(0, list.count - limit)
      if omitted > 0 {
        rungs[index].omittedCount = omitted
        rungs[index].segments = list.part(isLive ? omitted..<list.count : 0..<limit)
      }
      rungs[index].sizes = rungs[index].segments.map { $0.byteRange?.length }
    }
  }

  private static func name(of rung: Rung, in group: TrackGroup) -> String {
    if group.kind == .audio {
      return (group.label ?? group.language ?? group.id ?? rung.id).lowercased()
    }
    if let size = rung.size { return "\(min(size.width, size.height))p" }
    let codecs = rung.codecs
    if !codecs.isEmpty, codecs.allSatisfy({ CodecFamily($0) == .audio }) { return "audio only" }
    return rung.bitsPerSecond.map { "\(($0 + 500) / 1000) kbit/s" } ?? rung.id
  }

  /// Adds the bit rate, and then the id, to names that several rungs have.
  private static func makeUnique(_ rungs: inout [RungFacts]) {
    for step in 0..<3 {
      let counts = Dictionary(rungs.map { ($0.name, 1) }, uniquingKeysWith: +)
      for index in rungs.indices where counts[rungs[index].name, default: 0] > 1 {
        let declared = rungs[index].declared
        switch step {
        case 0:
          if let rate = declared?.bitsPerSecond { rungs[index].name += " \((rate + 500) / 1000)k" }
        case 1:
          if rungs[index].place.period > 0 { rungs[index].name += " period \(rungs[index].place.period + 1)" }
        default:
          rungs[index].name += " #\(index + 1)"
        }
      }
    }
  }

  /// Leaves out all but the first and the last rung of each group.
  private static func skipInner(_ rungs: inout [RungFacts]) {
    let readable = rungs.indices.filter { rungs[$0].isToBeRead }
    for same in Dictionary(grouping: readable, by: { [rungs[$0].place.period, rungs[$0].place.group] }).values
    {
      for index in same.dropFirst().dropLast() { rungs[index].status = .skipped }
    }
  }

  /// The EXT-X-VERSION of a playlist; 1 without one (RFC 8216 §4.3.1.2).
  private static func version(of url: URL?, in loaded: LoadedManifest) -> Int {
    guard let document = loaded.documents.first(where: { $0.url == url && $0.format == .hls }) else {
      return 1
    }
    let tag = Array("#EXT-X-VERSION:".utf8)
    guard let place = document.bytes.firstRange(of: tag) else { return 1 }
    let digits = document.bytes[place.upperBound...].prefix { (0x30...0x39).contains($0) }
    return Int(String(decoding: digits, as: UTF8.self)) ?? 1
  }

  private static func excuse(for rung: Rung, in group: TrackGroup) -> Unjudged? {
    if let reason = group.unplayableReason {
      return Unjudged(rung.protection == nil ? .unsupported : .encrypted, reason)
    }
    if rung.holdsKeyFramesOnly { return Unjudged(.leftOut, "it is for fast forward and rewind") }
    let codecs = rung.codecs.filter { CodecFamily($0) != .text }
    guard !codecs.isEmpty else { return nil }
    if group.kind == .audio {
      guard codecs.contains(where: { AudioCodec(manifestName: $0) != nil }) else {
        return Unjudged(.unsupported, "Reel does not decode \(codecs.joined(separator: ", "))")
      }
      return nil
    }
    let video = codecs.filter { CodecFamily($0) != .audio }
    guard video.isEmpty || video.contains(where: { VideoCodec(manifestName: $0) != nil }) else {
      return Unjudged(.unsupported, "Reel does not decode \(video.joined(separator: ", "))")
    }
    return nil
  }
}
