internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
package import ReelManifest

/// Opens rungs of a presentation: determines their segments, and creates their loaders.
struct RungOpener {
  let resolved: ResolvedPresentation
  let resolver: SourceResolver
  let role: ReaderRole
  let context: TrackContext
  let location: ServiceLocation
  let offsets: TimestampOffsets
  let keys: KeyStore
  let initializations: InitializationStore
  let log: any ReadingLog

  /// Returns the segments of a rung, from its playlist or index.
  ///
  /// - Parameters:
  ///   - fromStart: True if the rung is read from its beginning: the index of a file is then read in the
  ///     transfer of its media.
  ///   - waits: Increased by the waits for the playlist or the index.
  /// - Throws: `ReelError` if they can't be loaded, if there are none, or if they can't be read.
  func open(
    _ rung: Rung, fromStart: Bool, scope: LoadScope, waits: inout ReaderWaits
  ) throws -> RungTrack {
    let matcher = RungMatcher(rung: rung, role: role, configuration: context.configuration)
    let live = LiveTrack(
      resolved, resolver: resolver, role: role,
      choose: { period throws(ReelError) in try matcher.rung(in: period) })
    if resolved.presentation.isLive { return track(rung, .live(try live.segments())) }
    let placed = rung.beginning(at: location.index)
    let found =
      try fromStart
      ? opening(of: placed, scope: scope, waits: &waits) : list(of: placed, scope: scope, waits: &waits)
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
    if let segments = live.segments(found, of: rung) { return track(rung, offsets.aligned(segments)) }
    if let fault = found.indexFault {
      log.recordFailure(fault.located(at: context.name), rung: rung.id, outcome: .tolerated)
    }
    let startOffset = found.startOffset ?? resolved.presentation.startOffset
    return track(rung, .list(found.list, startOffset: startOffset), opening: found.transfer)
  }

  // MARK: - Private

  private func isIFramePlaylist(_ rung: Rung) -> Bool {
    rung.holdsKeyFramesOnly && resolved.presentation.iFrameRungs.contains { $0.id == rung.id }
  }

  private func list(of rung: Rung, scope: LoadScope, waits: inout ReaderWaits) throws -> RungSegments {
    let (resolver, variables, initializations) = (resolver, resolved.presentation.variables, initializations)
    let start = context.recorder.clock.now
    defer { waits.manifests += context.recorder.clock.now - start }
    return try BlockingThread.wait(scope: scope) {
      try await resolver.segments(of: rung, variables: variables, initializations: initializations)
    }
  }

  private func opening(of rung: Rung, scope: LoadScope, waits: inout ReaderWaits) throws -> RungSegments {
    guard case .index = rung.media else { return try list(of: rung, scope: scope, waits: &waits) }
    let (resolver, variables) = (resolver, resolved.presentation.variables)
    let (initializations, location) = (initializations, location)
    let start = context.recorder.clock.now
    defer { waits.media += context.recorder.clock.now - start }
    return try BlockingThread.wait(scope: scope) {
      try await resolver.opening(
        of: rung, variables: variables, initializations: initializations, location: location)
    }
  }

  private func track(
    _ rung: Rung, _ supply: SegmentSupply, opening: FileTransfer? = nil
  ) -> RungTrack {
    let (log, id) = (log, rung.id)
    // The rest of the fragment around an I-frame in a playlist is missing, which is not damage.
    var recordDamage: (@Sendable (ReelError, Range<MediaTime>?) -> Void)?
    if !rung.holdsKeyFramesOnly || resolved.presentation.format == .dash {
      recordDamage = { error, range in log.recordDamage(error, rung: id, in: range) }
    } else if resolved.presentation.iFrameRungs.isEmpty {
      // If it is read as a whole, the rest must be padded.
      recordDamage = { error, range in
        if error.kind != .badMedia { log.recordDamage(error, rung: id, in: range) }
      }
    }
    let loader = SegmentLoader(
      fetcher: context.fetcher, headers: context.configuration.headers, keys: keys,
      location: location, recorder: context.recorder, initializations: initializations, opening: opening,
      recordDamage: recordDamage,
      recordMissed: { [kind = role.kind] error, range in
        log.recordFailure(
          error, rung: id, outcome: .lost(MediaLoss(kind: kind, reason: .missing, range: range)))
      }, record: { transfer in log.recordTransfer(transfer, rung: id) })
    return RungTrack(rung: rung, supply: supply, loader: loader)
  }
}

/// One rung's segments and their loader.
package struct RungTrack: Sendable {
  package let rung: Rung
  let supply: SegmentSupply
  let loader: SegmentLoader
}

/// One track of a live presentation, and the way to find its segments in each reading of the manifest.
struct LiveTrack: Sendable {
  private let resolved: ResolvedPresentation
  private let resolver: SourceResolver
  private let role: ReaderRole
  private let choose: @Sendable (Period) throws(ReelError) -> Rung

  /// - Parameters:
  ///   - role: The kind of track. Periods without it are skipped.
  ///   - choose: Chooses the rung of a period that has the track.
  init(
    _ resolved: ResolvedPresentation, resolver: SourceResolver, role: ReaderRole,
    choose: @escaping @Sendable (Period) throws(ReelError) -> Rung
  ) {
    self.resolved = resolved
    self.resolver = resolver
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
    let identity: SegmentWindow.Identity = resolved.presentation.format == .hls ? .number : .start
    return segments(first, identity: identity, startOffset: resolved.presentation.startOffset) {
      try reading(of: await resolver.reload(resolved), since: start)
    }
  }

  /// Returns the segments of a variant if its media playlist is live; nil if it is complete.
  func segments(_ found: RungSegments, of rung: Rung) -> LiveSegments? {
    guard found.live != nil, let url = found.playlistURL else { return nil }
    let variables = resolved.presentation.variables
    return segments(
      LiveReading(segments: found.list, live: found.live), identity: .number,
      startOffset: found.startOffset ?? resolved.presentation.startOffset
    ) {
      let playlist = try await resolver.playlist(at: url, variables: variables)
      return LiveReading(segments: playlist.list, live: playlist.live)
    }
  }

  // MARK: - Private

  private func segments(
    _ first: LiveReading, identity: SegmentWindow.Identity, startOffset: MediaTime?,
    read: @escaping @Sendable () async throws -> LiveReading
  ) -> LiveSegments {
    LiveSegments(
      first, identity: identity, startOffset: startOffset, clock: resolved.clock,
      stallLimit: resolver.configuration.liveStallLimit,
      skipsRefused: resolver.configuration.reading.skipsRefused, read: read)
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
