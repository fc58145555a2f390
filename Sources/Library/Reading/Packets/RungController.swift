internal import Foundation
package import ReelCore
internal import ReelFFmpeg
package import ReelManifest
package import ReelSources

/// The current conditions for the choice of a rung.
package struct RungConditions: Sendable {
  package var buffered: Duration = .zero
  package var bufferTarget: Duration = .seconds(3)
  package var rate = 1.0
  package var isRebuffering = false
  package var now: Duration = .zero
  package var peakBitRate: Int?
  /// The cap for the first segment alone.
  package var startCap: Int?
  package var maximumHeight: Int?
  package var maximumWidth: Int?

  package init() {}
}

/// Chooses the rung of each segment of one track with an adaptation, among those without a recent failure.
package final class RungController: Sendable {
  /// The location to request segments from first.
  package let location: ServiceLocation

  fileprivate struct Choices {
    var adaptation: any RungAdaptation
    var penalties = RungPenalties()
    var current: String?
    /// The id of the rung for the next segment, if the previous span was ended because of it.
    var pending: String?
    var triedLocations = 1
    /// True if the first rung was chosen under a cap of its own: the next one is chosen as if it were the
    /// first.
    var hasStartedUnderCap = false
    /// The rungs that have failed and were not chosen since.
    var failed: Set<String> = []
    var lastSwitchCause: RungSwitchCause?
    /// The reason why `pending` was chosen.
    var pendingCause: RungSwitchCause?
  }

  private let state: Locked<Choices>
  private let conditions: @Sendable () -> RungConditions

  /// How the rungs of a player's video are chosen.
  package enum Choice {
    /// `FixedRung`
    case fixed
    /// `AdaptiveRungs`, with the estimate of the bandwidth to begin with, in bits per second; nil if unknown.
    case adaptive(estimate: Int?)
  }

  /// Chooses the rungs of a player's video.
  package convenience init(_ choice: Choice, conditions: @escaping @Sendable () -> RungConditions) {
    let adaptation: any RungAdaptation =
      switch choice {
      case .fixed: FixedRung()
      case .adaptive(let estimate): AdaptiveRungs(options: AdaptiveRungs.Options(initialEstimate: estimate))
      }
    self.init(adaptation: adaptation, conditions: conditions)
  }

  /// - Parameter location: If it does not roam, it advances when all rungs have failed.
  package init(
    adaptation: any RungAdaptation, location: ServiceLocation = ServiceLocation(roams: false),
    conditions: @escaping @Sendable () -> RungConditions
  ) {
    state = Locked(Choices(adaptation: adaptation), rank: .transfer)
    self.location = location
    self.conditions = conditions
  }

  /// Chooses the highest rung that the configuration allows, or else the lowest, regardless of transfer
  /// measurements. For stills of a given size, chooses the cheapest one that is large enough.
  package convenience init(
    _ configuration: LoadingConfiguration, clock: any MonotonicClock,
    location: ServiceLocation = ServiceLocation(roams: false)
  ) {
    let adaptation: any RungAdaptation =
      if let size = configuration.shownSize { SizedRung(size: size) } else { FixedRung() }
    self.init(adaptation: adaptation, location: location) {
      var conditions = RungConditions()
      conditions.now = clock.now
      conditions.peakBitRate = configuration.preferredPeakBitRate
      conditions.maximumHeight = configuration.maximumHeight
      return conditions
    }
  }

  /// Returns the rung of the next segment; nil if all have failed.
  package func choose(among ladder: [Rung], segmentDuration: Duration?) -> Rung? {
    let conditions = conditions()
    return state.withLock { state in
      if let pending = state.pending {
        state.pending = nil
        if let rung = ladder.first(where: { $0.id == pending }),
          !state.penalties.isPenalized(pending, now: conditions.now)
        {
          state.change(to: rung, because: state.pendingCause)
          return rung
        }
      }
      let (rung, cause) = state.decide(ladder, conditions, segmentDuration)
      if let rung { state.change(to: rung, because: cause) }
      return rung
    }
  }

  /// Returns false if the next segment should come from a rung other than `rung`.
  package func staysAt(_ rung: Rung, among ladder: [Rung], segmentDuration: Duration?) -> Bool {
    guard ladder.count > 1 else { return true }
    let conditions = conditions()
    return state.withLock { state in
      let (next, cause) = state.decide(ladder, conditions, segmentDuration)
      guard let next, next.id != rung.id else { return true }
      (state.pending, state.pendingCause) = (next.id, cause)
      return false
    }
  }

  /// Returns true if another rung than this one has not failed recently.
  package func hasOther(than rung: Rung, among ladder: [Rung]) -> Bool {
    let now = conditions().now
    return state.withLock { state in
      ladder.contains { $0.id != rung.id && !state.penalties.isPenalized($0.id, now: now) }
    }
  }

  /// Chooses a rung for the next segment, because another one lacks that. Returns false if it has failed recently.
  package func take(_ rung: Rung) -> Bool {
    let now = conditions().now
    return state.withLock { state in
      guard !state.penalties.isPenalized(rung.id, now: now) else { return false }
      (state.pending, state.pendingCause) = (rung.id, .failure)
      return true
    }
  }

  /// Avoids a rung for a while, because it has failed.
  package func avoid(_ rung: Rung) {
    let now = conditions().now
    state.withLock { state in
      state.penalties.penalize(rung.id, now: now)
      state.failed.insert(rung.id)
      state.pending = nil
    }
  }

  /// Returns true if not all of `count` locations have been tried since media was read.
  package func hasOtherLocation(of count: Int) -> Bool { state.withLock { $0.triedLocations < count } }

  /// Switches to the next of `count` locations, where all rungs are tried again.
  package func goToNextLocation(of count: Int) {
    state.withLock { state in
      state.triedLocations += 1
      state.penalties = RungPenalties()
    }
    location.index = (location.index + 1) % count
  }

  /// Allows all rungs and locations again, because nothing else is left to try.
  package func forgive() {
    state.withLock { state in
      state.triedLocations = 1
      state.penalties = RungPenalties()
      state.pending = nil
    }
  }

  /// Reports that media was read.
  package func recordSuccess() { state.withLock { $0.triedLocations = 1 } }

  package func record(_ transfer: SegmentTransfer) {
    let now = conditions().now
    state.withLock { $0.adaptation.recordTransfer(transfer.sample(at: now)) }
  }

  /// The reason why the current rung was chosen; nil if it is the first one.
  package var lastSwitchCause: RungSwitchCause? { state.withLock { $0.lastSwitchCause } }

  /// The estimate in bits per second.
  package var estimatedBandwidth: Double? { state.withLock { $0.adaptation.estimatedBandwidth } }
}

extension RungController.Choices {
  fileprivate mutating func change(to rung: Rung, because cause: RungSwitchCause?) {
    if let current, current != rung.id { lastSwitchCause = cause }
    current = rung.id
    failed.remove(rung.id)
  }

  /// Returns the rung to load next and, if it is another one, the reason.
  fileprivate mutating func decide(
    _ ladder: [Rung], _ conditions: RungConditions, _ segmentDuration: Duration?
  ) -> (rung: Rung?, cause: RungSwitchCause?) {
    let sorted = ladder.sorted { $0.ladderBitsPerSecond < $1.ladderBitsPerSecond }
    let candidates = sorted.enumerated().map { index, rung in
      var candidate = RungCandidate(
        index: index, id: rung.id, bitsPerSecond: rung.bitsPerSecond ?? 0,
        averageBitsPerSecond: rung.averageBitsPerSecond, size: rung.size)
      candidate.holdsKeyFramesOnly = rung.holdsKeyFramesOnly
      return candidate
    }
    let usable = penalties.usable(candidates, now: conditions.now)
    guard !usable.isEmpty else { return (nil, nil) }
    var current = self.current
    let hadStartedUnderCap = current != nil && hasStartedUnderCap
    var cap = conditions.peakBitRate
    if current == nil {
      hasStartedUnderCap = conditions.startCap != nil
      cap = [cap, conditions.startCap].compactMap(\.self).min()
    } else if hasStartedUnderCap {
      hasStartedUnderCap = false
      current = nil
    }
    let state = AdaptationState(
      current: current.flatMap { id in candidates.firstIndex { $0.id == id } },
      buffered: conditions.buffered, bufferTarget: conditions.bufferTarget,
      segmentDuration: segmentDuration, rate: conditions.rate, isRebuffering: conditions.isRebuffering,
      now: conditions.now, peakBitRate: cap, maximumHeight: conditions.maximumHeight,
      maximumWidth: conditions.maximumWidth)
    let chosen = adaptation.choose(among: usable, state)
    let cause =
      hadStartedUnderCap && !penalties.isPenalized(self.current ?? "", now: conditions.now)
      ? .startup : self.cause(of: chosen, among: candidates, state)
    return (sorted.first { $0.id == chosen.id }, cause)
  }

  private func cause(
    of next: RungCandidate, among candidates: [RungCandidate], _ state: AdaptationState
  ) -> RungSwitchCause? {
    guard let current, current != next.id else { return nil }
    if penalties.isPenalized(current, now: state.now) { return .failure }
    guard let old = candidates.first(where: { $0.id == current }) else { return .period }
    if !candidates.allowed(by: state).contains(where: { $0.id == current }) { return .limit }
    if failed.contains(next.id) { return .retry }
    return next.index > old.index ? .adaptationUp : .adaptationDown
  }
}

extension Rung {
  /// Returns the same rung, with the playlist requested from another location first.
  func beginning(at location: Int) -> Rung {
    guard case .playlist(let url) = media, !alternateURLs.isEmpty else { return self }
    let urls = [url] + alternateURLs
    let first = location % urls.count
    var copy = self
    copy.media = .playlist(urls[first])
    copy.alternateURLs = Array(urls[(first + 1)...] + urls[..<first])
    return copy
  }
}

/// Opens rungs of a presentation: determines their segments, and creates their loaders.
struct RungOpener {
  let resolved: ResolvedPresentation
  let manifests: ManifestLoader
  let role: ReaderRole
  let context: TrackContext
  let location: ServiceLocation
  let offsets: TimestampOffsets
  let keys: KeyStore
  let initializations: InitializationStore
  let log: ReadingLog

  /// Returns the segments of a rung, from its playlist or index.
  ///
  /// - Parameters:
  ///   - ladder: The rungs from which it was chosen.
  ///   - fromStart: True if the rung is read from its beginning: the index of a file is then read in the transfer of its
  ///     media.
  /// - Throws: `ReelError` if they can't be loaded, if there are none, or if they can't be read.
  func open(_ rung: Rung, among ladder: [Rung], fromStart: Bool) async throws -> RungTrack {
    let matcher = RungMatcher(rung: rung, role: role, configuration: context.configuration)
    let live = LiveTrack(
      resolved, manifests: manifests, role: role,
      choose: { period throws(ReelError) in try matcher.rung(in: period) })
    if resolved.presentation.isLive {
      return track(rung, ladder, .live(try live.segments()), startOffset: resolved.presentation.startOffset)
    }
    let placed = rung.beginning(at: location.index)
    let variables = resolved.presentation.variables
    let found =
      try await fromStart
      ? manifests.opening(
        of: placed, variables: variables, initializations: initializations, location: location)
      : manifests.segments(of: placed, variables: variables, initializations: initializations)
    guard !found.list.isEmpty || found.live != nil else {
      throw ReelError(.badManifest, "no segments to play", at: context.name)
    }
    if isIFramePlaylist(rung) {
      // Without a map, the tables of a transport stream would have to be fetched for each frame.
      let isAlone = found.list[0].initialization != nil || found.list[0].byteRange?.offset ?? 0 == 0
      guard found.live == nil, isAlone else {
        throw ReelError(
          .unsupported, "a playlist of I-frames that is live or has no EXT-X-MAP", at: context.name)
      }
    }
    let startOffset = found.startOffset ?? resolved.presentation.startOffset
    if let segments = live.segments(found, of: rung) {
      return track(rung, ladder, offsets.aligned(segments), startOffset: startOffset)
    }
    if let fault = found.indexFault {
      log(.failure(fault.located(at: context.name), rung: rung.id, outcome: .tolerated))
    }
    return track(rung, ladder, .list(found.list), startOffset: startOffset, opening: found.transfer)
  }

  // MARK: - Private

  private func isIFramePlaylist(_ rung: Rung) -> Bool {
    rung.holdsKeyFramesOnly && resolved.presentation.iFrameRungs.contains { $0.id == rung.id }
  }

  private func track(
    _ rung: Rung, _ ladder: [Rung], _ supply: SegmentSupply, startOffset: StartOffset?,
    opening: FileTransfer? = nil
  ) -> RungTrack {
    let (log, id) = (log, rung.id)
    // The rest of the fragment around an I-frame in a playlist is missing, which is not damage.
    var recordDamage: (@Sendable (ReelError, Range<MediaTime>?) -> Void)?
    if !rung.holdsKeyFramesOnly || resolved.presentation.format == .dash {
      recordDamage = { error, range in log(.damage(error, rung: id, in: range)) }
    } else if resolved.presentation.iFrameRungs.isEmpty {
      // If it is read as a whole, the rest must be padded.
      recordDamage = { error, range in
        if error.kind != .badMedia { log(.damage(error, rung: id, in: range)) }
      }
    }
    let loader = SegmentLoader(
      fetcher: context.fetcher, keys: keys, location: location, recorder: context.recorder,
      initializations: initializations, opening: opening, media: media(of: rung, ladder, supply),
      byteRate: context.configuration.segmentByteRate, recordDamage: recordDamage,
      recordMissed: { [kind = role.kind] error, range in
        log(
          .failure(
            error, rung: id, outcome: .lost(MediaLoss(kind: kind, reason: .missing, range: range))))
      }, record: { transfer in log(.transfer(transfer, rung: id)) })
    return RungTrack(rung: rung, supply: supply, loader: loader, startOffset: startOffset)
  }

  private func media(of rung: Rung, _ ladder: [Rung], _ supply: SegmentSupply) -> RequestedMedia {
    let isDASH = resolved.presentation.format == .dash
    // A media playlist alone states nothing, and its segments mostly have both.
    let isMuxed = rung.ownAudio != nil || !isDASH && rung.codecs.isEmpty && rung.audioGroup == nil
    let tracks: RequestedMedia.Tracks =
      switch role {
      case .audio: .audio
      case .main: isMuxed ? .videoAndAudio : .video
      }
    return RequestedMedia(
      tracks: tracks, bitRate: rung.bitsPerSecond ?? rung.averageBitsPerSecond,
      topBitRate: ladder.compactMap { $0.bitsPerSecond ?? $0.averageBitsPerSecond }.max(), isDASH: isDASH,
      isLive: supply.timing != nil)
  }
}

/// One track of a live presentation, and the way to find its segments in each reading of the manifest.
struct LiveTrack: Sendable {
  private let resolved: ResolvedPresentation
  private let manifests: ManifestLoader
  private let role: ReaderRole
  private let choose: @Sendable (Period) throws(ReelError) -> Rung

  /// - Parameters:
  ///   - role: The kind of track. Periods without it are skipped.
  ///   - choose: Chooses the rung of a period that has the track.
  init(
    _ resolved: ResolvedPresentation, manifests: ManifestLoader, role: ReaderRole,
    choose: @escaping @Sendable (Period) throws(ReelError) -> Rung
  ) {
    self.resolved = resolved
    self.manifests = manifests
    self.role = role
    self.choose = choose
  }

  /// Returns the segments of a presentation that is itself live: an MPD, or a media playlist without a
  /// multivariant playlist.
  func segments() throws(ReelError) -> LiveSegments {
    let periods = resolved.presentation.periods
    // The track may be absent for a while, but some period must have it at the start.
    if let first = periods.first, !periods.contains(where: { $0.carries(role) }) { _ = try choose(first) }
    let first = try reading(of: resolved.presentation)
    let start = resolved.presentation.live?.availabilityStart
    return segments(first, identity: .init(resolved.presentation.format)) {
      try reading(of: await manifests.reload(resolved), since: start)
    }
  }

  /// Returns the segments of a variant if its media playlist is live; nil if it is complete.
  func segments(_ found: RungSegments, of rung: Rung) -> LiveSegments? {
    guard found.live != nil, let url = found.playlistURL else { return nil }
    let variables = resolved.presentation.variables
    return segments(LiveReading(segments: found.list, live: found.live), identity: .number) {
      let playlist = try await manifests.playlist(at: url, variables: variables)
      return LiveReading(segments: playlist.list, live: playlist.live)
    }
  }

  // MARK: - Private

  private func segments(
    _ first: LiveReading, identity: SegmentWindow.Identity,
    read: @escaping @Sendable () async throws -> LiveReading
  ) -> LiveSegments {
    LiveSegments(
      first, identity: identity, clock: resolved.clock,
      stallLimit: manifests.configuration.liveStallLimit,
      skipsRefused: manifests.configuration.reading.skipsRefused, read: read)
  }

  /// Returns the track over all periods that have it. The rung is chosen in each.
  ///
  /// - Parameter start: The zero of the player's timeline. A restarted presentation has another zero, and is
  ///   shifted accordingly.
  private func reading(
    of presentation: Presentation, since start: WallTime? = nil
  ) throws(ReelError) -> LiveReading {
    var shift = MediaTime.zero
    var live = presentation.live
    if let start, let own = live?.availabilityStart {
      shift = own - start
      live?.availabilityStart = start
    }
    var reading = LiveReading(segments: try segments(in: presentation).moved(by: shift), live: live)
    reading.timelineShift = shift
    reading.absences = presentation.absences(of: role).map { absence in
      Absence(start: absence.start + shift, end: absence.end.map { $0 + shift })
    }
    let last = presentation.periods.last { $0.carries(role) }
    if let last, let rung = try? choose(last) {
      reading.availabilityTimeOffset = rung.availabilityTimeOffset ?? .zero
    }
    if let atTime = presentation.live?.presentation {
      reading.segmentsAtTime = { [shift] now in try segments(in: atTime(now)).moved(by: shift) }
    }
    return reading
  }

  private func segments(in presentation: Presentation) throws(ReelError) -> SegmentList {
    var lists: [SegmentList] = []
    var failure: ReelError?
    for period in presentation.periods where period.carries(role) {
      do throws(ReelError) {
        let rung = try choose(period)
        guard case .segments(let list) = rung.media else {
          throw ReelError(.unsupported, "a live presentation with a segment index can't be followed")
        }
        lists.append(list)
      } catch {
        failure = failure ?? error
      }
    }
    if lists.isEmpty, let failure { throw failure }
    return SegmentList(joining: lists)
  }
}
