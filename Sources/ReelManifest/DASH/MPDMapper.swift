import Foundation
import ReelCore

/// Makes a `Presentation` of an MPD: periods with their times, inheritance, URLs.
///
/// What can't be used of an MPD is passed over with a warning, as long as something else can be.
struct MPDMapper {
  let mpd: MPD
  let limits: ManifestLimits
  var warnings: WarningLog
  /// The first reason why something could not be used: what is thrown where nothing can.
  var failure: ReelError?
  /// Timelines that were compiled for this period, since representations share them.
  var timings: [TimingKey: SegmentTiming] = [:]
  /// The entries of those that were compiled, in all periods.
  var compiledEntries = 0
  /// The addresses of lists of URLs whose URLs have been looked at.
  var checkedLists: Set<Int> = []

  private let url: URL
  /// Why nothing of the MPD is played.
  private let unplayableReason: String?

  init(_ mpd: MPD, url: URL, limits: ManifestLimits) {
    self.mpd = mpd
    self.url = url
    self.limits = limits
    unplayableReason = Playability.reason(essential: mpd.essentialProperties)
    warnings = WarningLog(limit: limits.warnings)
    for warning in mpd.warnings { warnings.add(warning) }
  }

  /// What a compiled timeline depends on.
  struct TimingKey: Hashable {
    var entries: Int
    var frame: SegmentTiming.Frame
  }

  /// What holds for one period.
  struct PeriodContext {
    var index: Int
    var path: String
    var start: MediaTime
    var duration: MediaTime?
    var resolver: URLResolver
    var segments: MPD.SegmentInformation
    /// True where a BaseURL leads to a file of its own.
    var hasBaseURL: Bool
    var unplayableReason: String?
  }

  /// The presentation. Throws `badManifest` or `unsupported` where nothing in it can be used.
  mutating func presentation() throws(ReelError) -> Presentation {
    guard !mpd.periods.isEmpty else {
      throw ReelError(.badManifest, "the MPD has no Period", place: .element("MPD"))
    }
    let resolver = try base(mpd.baseURLs, URLResolver(base: url, limit: limits.urlByteCount), path: "MPD")
    var periods: [Period] = []
    var previousEnd: MediaTime? = .zero
    for index in mpd.periods.indices {
      timings.removeAll(keepingCapacity: true)
      do throws(ReelError) {
        let context = try context(index, previousEnd: previousEnd, resolver)
        let period = try period(context)
        previousEnd = (period.duration ?? period.segmentsDuration).map { context.start + $0 }
        if !period.trackGroups.isEmpty { periods.append(period) }
      } catch {
        note(error)
        let start = mpd.periods[index].start ?? previousEnd
        previousEnd = mpd.periods[index].duration.flatMap { duration in start.map { $0 + duration } }
      }
    }
    guard !periods.isEmpty else {
      throw failure
        ?? ReelError(.badManifest, "the MPD has no selectable Representation", place: .element("MPD"))
    }
    return Presentation(
      format: .dash, live: liveTiming, duration: duration(of: periods), periods: periods,
      warnings: warnings.warnings)
  }

  // MARK: - For what it is made of

  /// Keeps a reason why something is passed over.
  mutating func note(_ error: ReelError) {
    if failure == nil { failure = error }
    warnings.add(error)
  }

  /// `resolver` with the first BaseURL that is not empty applied (ISO/IEC 23009-1 §5.6.4).
  func base(
    _ baseURLs: [MPD.BaseURL], _ resolver: URLResolver, path: String
  ) throws(ReelError) -> URLResolver {
    guard let first = baseURLs.first(where: { !$0.reference.isEmpty }) else { return resolver }
    let url = try resolver.resolve(first.reference, place: .element(path))
    return URLResolver(base: url, limit: limits.urlByteCount)
  }

  // MARK: - Private

  /// When a period starts and ends (ISO/IEC 23009-1 §5.3.2.1), and what it inherits.
  private mutating func context(
    _ index: Int, previousEnd: MediaTime?, _ resolver: URLResolver
  ) throws(ReelError) -> PeriodContext {
    let period = mpd.periods[index]
    let path = "MPD/Period[\(index + 1)]"
    guard let start = period.start ?? previousEnd else {
      throw ReelError(
        .badManifest, "the period's start can't be computed: it has none, and the one before it no end",
        place: .element(path))
    }
    var duration = period.duration
    if duration == nil {
      let isLast = index + 1 == mpd.periods.count
      let end = isLast ? mpd.mediaPresentationDuration : mpd.periods[index + 1].start
      duration = end.map { $0 - start }
    }
    if let length = duration, length <= .zero {
      warnings.add("the period's duration is not above 0: passed over", place: .element(path))
      duration = nil
    }
    return PeriodContext(
      index: index, path: path, start: start, duration: duration,
      resolver: try base(period.baseURLs, resolver, path: path), segments: period.segments,
      hasBaseURL: !mpd.baseURLs.isEmpty || !period.baseURLs.isEmpty,
      unplayableReason: unplayableReason ?? Playability.reason(essential: period.essentialProperties))
  }

  private mutating func period(_ context: PeriodContext) throws(ReelError) -> Period {
    let period = mpd.periods[context.index]
    if let href = period.href, period.adaptationSets.isEmpty {
      if href != "urn:mpeg:dash:resolve-to-zero:2013" {
        throw ReelError(
          .unsupported, "the period stands in another file (xlink:href '\(href.excerpt)'), which is not read",
          place: .element(context.path))
      }
    }
    var groups: [TrackGroup] = []
    for (index, set) in period.adaptationSets.enumerated() {
      let path = "\(context.path)/AdaptationSet[\(index + 1)]"
      do throws(ReelError) {
        if let group = try trackGroup(set, path: path, in: context) { groups.append(group) }
      } catch {
        note(error)
      }
    }
    return Period(id: period.id, start: context.start, duration: context.duration, trackGroups: groups)
  }

  private var liveTiming: LiveTiming? {
    guard mpd.type == .dynamic else { return nil }
    return LiveTiming(
      reload: mpd.minimumUpdatePeriod.map { .after($0) } ?? .never,
      delay: mpd.suggestedPresentationDelay ?? MediaTime(value: 10, timescale: 1))
  }

  private func duration(of periods: [Period]) -> MediaTime? {
    if mpd.type == .dynamic { return nil }
    if let duration = mpd.mediaPresentationDuration, duration > .zero { return duration }
    guard let last = periods.last, let length = last.duration ?? last.segmentsDuration else { return nil }
    return last.start + length
  }
}

extension Period {
  /// How long its segments last, where the manifest does not tell how long it lasts itself.
  fileprivate var segmentsDuration: MediaTime? {
    let ends = trackGroups.flatMap(\.rungs).compactMap { rung -> MediaTime? in
      guard case .segments(let list) = rung.media, !list.isEmpty else { return nil }
      return list.end
    }
    return ends.max().map { $0 - start }
  }
}
