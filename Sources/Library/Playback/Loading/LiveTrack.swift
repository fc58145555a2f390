internal import Foundation
internal import ReelCore
internal import ReelManifest

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
