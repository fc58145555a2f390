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
