public import Foundation
public import ReelCore
import ReelManifest
public import ReelSources

extension VirtualHLS {
  /// Reads a presentation of HLS or DASH, with the playlists and indexes that its manifest refers to.
  ///
  /// - Parameters:
  ///   - url: The URL of the manifest: `http`, `https`, or `file` with a fetcher that reads files.
  ///   - fetcher: Fetches the manifests.
  ///   - configuration: The header fields and limits of the requests, and the height above which video is left out.
  ///   - decryption: Decrypts the media whose keys it has, when a gateway serves it; nil for none.
  ///   - maximumBitRate: The bit rate above which video is left out; nil for none.
  /// - Throws: `ReelError` if it can't be fetched or read, or of kind `unsupported` if nothing in it can be presented as HLS;
  ///   `CancellationError`.
  public init(
    url: URL, fetcher: any Fetching, configuration: LoadingConfiguration = LoadingConfiguration(),
    decryption: (any MediaDecrypting)? = nil, maximumBitRate: Int? = nil
  ) async throws {
    let loader = ManifestLoader(
      fetcher: ConfinedFetcher(base: fetcher, source: url, headers: configuration.headers(of: url)),
      configuration: configuration, scope: LoadScope(), recorder: StartupRecorder())
    let resolved = try await loader.presentation(at: url)
    var source = ManifestSource(resolved: resolved, loader: loader, maximumBitRate: maximumBitRate)
    try self.init(await source.first(), decryption: decryption)
    self.source = source
  }

  /// Makes HLS from a manifest that was read, and decrypts the media whose keys there are.
  ///
  /// Throws the reason why a rung has no segments if no other rung is left, and `unsupported`.
  package init(
    _ loaded: LoadedManifest, decryption: (any MediaDecrypting)? = nil
  ) throws(ReelError) {
    do throws(ReelError) {
      try self.init(loaded.presentation, decryption: decryption)
    } catch {
      throw loaded.failures.first?.error ?? error.located(at: loaded.url.reelName)
    }
    failures = loaded.failures.map(\.error)
  }

  /// Reads a live presentation again, and returns it as it is now: with the same numbers, URLs and target duration, and
  /// without the segments that it no longer lists. Of HLS, only the playlist of `track` is read.
  ///
  /// - Parameters:
  ///   - track: The track that a client asks for; nil if the presentation has not begun.
  ///   - reads: True to fetch the manifest; false for the segments that the known manifest has by now.
  ///
  /// - Throws: `ReelError` if it can't be read, `CancellationError`.
  package func next(for track: Track?, reads: Bool) async throws -> VirtualHLS {
    guard var source else { return self }
    if source.isByTrack, let track {
      let found = try await source.playlist(at: track.anchor.place)
      var next = self
      next.tracks[track.index].take(found)
      return next
    }
    let presentation = reads ? try await source.reload() : try await source.atTime()
    var next = try VirtualHLS(
      presentation, following: tracks.isEmpty ? nil : self, decryption: decryption)
    next.source = source
    next.failures = failures
    return next
  }
}

extension VirtualHLS.Track {
  /// Takes over a reading of its own playlist (HLS).
  fileprivate mutating func take(_ found: RungSegments) {
    let numbering = LiveNumbering(format: .hls, nominalDuration: .zero)
    let list = isDecrypted ? found.list.withoutSampleEncryption : found.list
    if let known = parts.last {
      parts = [numbering.part(known, continuing: list)]
    } else if let part = numbering.part(list, period: 0, after: nil, published: nil) {
      parts = [part]
    }
    hasEnded = found.live == nil
  }
}

/// Reads the manifest of a presentation and the playlists and indexes that it refers to, repeatedly if it is live.
struct ManifestSource: Sendable {
  private(set) var resolved: ResolvedPresentation
  let loader: ManifestLoader
  /// True if each rung of a live presentation has a playlist of its own (HLS).
  private(set) var isByTrack = false
  /// The indexes of files that were requested.
  private var indexes: [SegmentIndexReference: FileIndex] = [:]

  private let maximumBitRate: Int?

  private struct FileIndex {
    /// Nil if it could not be read.
    var list: SegmentList?
    var requestedAt: WallTime
  }

  /// The time after which an index that could not be read is requested again.
  private static let retryInterval = MediaTime(value: 30, timescale: 1)

  init(resolved: ResolvedPresentation, loader: ManifestLoader, maximumBitRate: Int?) {
    self.resolved = resolved
    self.loader = loader
    self.maximumBitRate = maximumBitRate
    self.resolved.presentation = limited(resolved.presentation)
  }

  var clock: any WallClock { resolved.clock }

  /// Returns the presentation with all segments.
  mutating func first() async throws -> LoadedManifest {
    guard !resolved.presentation.isLive else {
      return LoadedManifest(
        presentation: try await withIndexes(resolved.presentation), url: resolved.url,
        fetcher: loader.fetcher)
    }
    let loaded = try await loader.loadAll(of: resolved, withImages: false, Locked([]))
    if loaded.presentation.isLive {
      isByTrack = true
      resolved.presentation.live = loaded.presentation.live
    }
    return loaded
  }

  /// Reads the manifest again.
  mutating func reload() async throws -> Presentation {
    let presentation = limited(try await loader.reload(resolved))
    let next = try await withIndexes(presentation)
    // The locations of the newest live manifest replace the ones before.
    if presentation.isLive { resolved.presentation = presentation }
    return next
  }

  /// Returns the presentation of the same manifest as it is by now.
  mutating func atTime() async throws -> Presentation {
    guard let atTime = resolved.presentation.live?.presentation else {
      return try await withIndexes(resolved.presentation)
    }
    return try await withIndexes(limited(atTime(clock.now)))
  }

  /// Reads the playlist of one rung (HLS).
  func playlist(at place: VirtualHLSCandidate.Place) async throws -> RungSegments {
    let group = resolved.presentation.periods[0].trackGroups[place.group]
    return try await loader.segments(
      of: group.rungs[place.rung], variables: resolved.presentation.variables)
  }

  // MARK: - Private

  /// Returns a presentation without the rungs of video above the limits. If all of a group are, the lowest one stays.
  private func limited(_ presentation: Presentation) -> Presentation {
    let height = loader.configuration.maximumHeight
    guard height != nil || maximumBitRate != nil else { return presentation }
    var presentation = presentation
    presentation.updateGroups { group in
      guard group.kind == .video else { return }
      let lowest = group.rungs.min {
        ($0.size?.height ?? 0, $0.bitsPerSecond ?? 0) < ($1.size?.height ?? 0, $1.bitsPerSecond ?? 0)
      }
      group.rungs.removeAll { rung in
        rung.size?.height ?? 0 > height ?? .max || rung.bitsPerSecond ?? 0 > maximumBitRate ?? .max
      }
      if group.rungs.isEmpty, let lowest { group.rungs = [lowest] }
    }
    return presentation
  }

  /// Returns a presentation with the segments of the files that are complete: those of periods that have ended. One whose
  /// end by the clock has come is not live any more.
  private mutating func withIndexes(_ presentation: Presentation) async throws -> Presentation {
    let now = clock.now
    var requested: [SegmentIndexReference: FileIndex] = [:]
    for period in presentation.periods where hasEnded(period, of: presentation, at: now) {
      for rung in period.trackGroups.filter({ $0.kind != .image }).flatMap(\.rungs) {
        guard case .index(let reference) = rung.media else { continue }
        if let known = indexes[reference],
          known.list != nil || now < known.requestedAt + Self.retryInterval
        {
          requested[reference] = known
        } else {
          let outcome = try await loader.outcome(of: rung, variables: [:])
          requested[reference] = FileIndex(list: try? outcome.get().list, requestedAt: now)
        }
      }
    }
    indexes = requested
    var presentation = presentation
    presentation.updateGroups { group in
      for index in group.rungs.indices {
        guard case .index(let reference) = group.rungs[index].media, let list = requested[reference]?.list
        else {
          continue
        }
        group.rungs[index].media = .segments(list)
      }
    }
    if presentation.live?.isOver(at: now, lastPeriod: presentation.periods.last) == true {
      presentation.live = nil
    }
    return presentation
  }

  private func hasEnded(_ period: Period, of presentation: Presentation, at now: WallTime) -> Bool {
    guard let start = presentation.live?.availabilityStart else { return true }
    return period.duration.map { start + period.start + $0 <= now } ?? false
  }
}

extension Presentation {
  /// Changes each track group of each period.
  fileprivate mutating func updateGroups(_ update: (inout TrackGroup) -> Void) {
    for period in periods.indices {
      for group in periods[period].trackGroups.indices { update(&periods[period].trackGroups[group]) }
    }
  }
}
