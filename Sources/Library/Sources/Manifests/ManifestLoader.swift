package import Foundation
package import ReelCore
package import ReelManifest

/// A manifest that was read.
package struct ResolvedPresentation: Sendable {
  package var presentation: Presentation
  /// The URL of the manifest, after redirects.
  package var url: URL
  /// The clock of a live presentation.
  package var clock: any WallClock
}

/// The segments of one rung, and the properties that its playlist or index states.
package struct RungSegments: Sendable {
  package var list: SegmentList
  /// The live state, if an HLS playlist is not complete.
  package var live: LiveTiming?
  /// The position at which an HLS playlist lets playback begin.
  package var startOffset: StartOffset?
  /// The transfer that continues with a file whose index was read from its beginning.
  package var transfer: FileTransfer?
  /// The reason why the file is read as one segment although the manifest names an index.
  package var indexFault: ReelError?
  /// The URL of the rung's own playlist.
  package var playlistURL: URL?
  /// True if the rung's own playlist states EXT-X-INDEPENDENT-SEGMENTS.
  package var hasIndependentSegments = false
}

/// Fetches and reads what describes a presentation: its manifest, the playlists of its rungs, and indexes of segments.
package struct ManifestLoader: Sendable {
  package let fetcher: any Fetching
  package let configuration: LoadingConfiguration
  package let scope: LoadScope
  package let recorder: StartupRecorder
  /// Receives each manifest that is read.
  package var record: (@Sendable (LoadedManifest.Document) -> Void)?

  package init(
    fetcher: any Fetching, configuration: LoadingConfiguration, scope: LoadScope,
    recorder: StartupRecorder, record: (@Sendable (LoadedManifest.Document) -> Void)? = nil
  ) {
    self.fetcher = fetcher
    self.configuration = configuration
    self.scope = scope
    self.recorder = recorder
    self.record = record
  }

  /// Returns the presentation of a manifest. A live one uses the server's time, if the manifest names a
  /// source of it.
  ///
  /// - Parameter name: The name in errors.
  package func presentation(
    from bytes: [UInt8], format: ManifestFormat, url: URL, name: String
  ) async throws -> ResolvedPresentation {
    record?(LoadedManifest.Document(bytes: bytes, format: format, url: url))
    let reader = ManifestReader(limits: configuration.manifestLimits)
    var presentation: Presentation
    do {
      presentation = try scope.memory.readingManifest { () throws(ReelError) in
        try reader.presentation(from: bytes, format: format, url: url, now: configuration.clock.now)
      }
    } catch {
      var named = error
      if named.location == url.reelName { named.location = name }
      throw named
    }
    var clock = configuration.clock
    if let live = presentation.live {
      clock = try await ServerClock.synchronized(
        clock, by: configuration.asksServersForTime ? live.clockSources : [], fetcher: fetcher,
        timer: recorder.clock)
      if let atTime = live.presentation { presentation = try atTime(clock.now) }
      // Corrected once for all later reloads, so that positions do not jump back if a later reload happens to fit.
      if let drift = presentation.live?.drift { clock = ServerClock(base: clock, offset: drift) }
    }
    return ResolvedPresentation(presentation: presentation, url: url, clock: clock)
  }

  /// Like `segments(of:variables:)`, but throws only `CancellationError`.
  package func outcome(of rung: Rung, variables: [String: String]) async throws -> Result<
    RungSegments, ReelError
  > {
    do {
      return .success(try await segments(of: rung, variables: variables))
    } catch let error as ReelError {
      return .failure(error)
    }
  }

  /// Returns the segments of a rung. Fetches its media playlist or index if necessary.
  ///
  /// If the MPD does not state the position of an index, the beginning of the file is searched for it. A file
  /// without one is one segment.
  ///
  /// - Parameters:
  ///   - variables: The variables of the multivariant playlist.
  ///   - initializations: Receives the initialization of a file if it was read together with the index.
  package func segments(
    of rung: Rung, variables: [String: String], initializations: InitializationStore? = nil
  ) async throws -> RungSegments {
    switch rung.media {
    case .segments(let list):
      return RungSegments(list: list)
    case .playlist(let url):
      return try await ServiceLocation().first(of: [url] + rung.alternateURLs) { url in
        let found = try await playlist(at: url, variables: variables)
        guard !found.list.isEmpty || found.live != nil else {
          throw ReelError(
            .badManifest, "the playlist has no segments", at: (found.playlistURL ?? url).reelName)
        }
        return found
      }
    case .index(let reference):
      do {
        return RungSegments(list: try await index(reference, initializations))
      } catch let error as ReelError where error.kind == .badMedia && reference.indexRange == nil {
        return RungSegments(list: SegmentList([wholeFile(reference)]))
      }
    }
  }

  /// Returns the media playlist at `url`.
  package func playlist(at url: URL, variables: [String: String]) async throws -> RungSegments {
    let (bytes, finalURL) = try await document(at: url)
    record?(LoadedManifest.Document(bytes: bytes, format: .hls, url: finalURL))
    let playlist = try scope.memory.readingManifest {
      try ManifestReader(limits: configuration.manifestLimits).mediaPlaylist(
        from: bytes, url: finalURL, variables: variables)
    }
    return RungSegments(
      list: playlist.segments, live: playlist.live, startOffset: playlist.startOffset, playlistURL: finalURL,
      hasIndependentSegments: playlist.hasIndependentSegments)
  }

  /// Reloads the manifest of `resolved`.
  package func reload(_ resolved: ResolvedPresentation) async throws -> Presentation {
    let locations = resolved.presentation.live?.locations ?? []
    return try await ServiceLocation().first(of: locations + [resolved.url]) { url in
      let (bytes, finalURL) = try await document(at: url)
      return try ManifestReader(limits: configuration.manifestLimits).presentation(
        from: bytes, format: resolved.presentation.format, url: finalURL, now: resolved.clock.now)
    }
  }

  /// Returns a single-file Representation as one segment.
  package func wholeFile(_ reference: SegmentIndexReference) -> SegmentReference {
    SegmentReference(
      number: 0, url: reference.url, start: reference.start, duration: reference.duration ?? .zero,
      timestampOffset: reference.timestampOffset)
  }

  package func document(at url: URL, range: ByteRange? = nil) async throws -> (bytes: [UInt8], url: URL) {
    let start = recorder.clock.now
    let request = FetchRequest(url: url, range: range, purpose: .manifest)
    let response = try await fetcher.fetch(request)
    do {
      let bytes = try await response.ranged(range).collect(
        upTo: configuration.manifestLimits.byteCount, orThrow: .badManifest)
      recorder.add(
        .manifest, recorder.clock.now - start, requests: response.requestCount, bytes: Int64(bytes.count))
      return (bytes, response.url)
    } catch let error as ReelError {
      throw error.located(at: response.url.reelName)
    }
  }

  // MARK: - Private

  /// Returns the segments in the index of a file.
  private func index(
    _ reference: SegmentIndexReference, _ initializations: InitializationStore?
  ) async throws -> SegmentList {
    var reader = SegmentIndexReader(reference: reference, limits: configuration.manifestLimits)
    while let range = reader.missing {
      let (bytes, _) = try await ServiceLocation().first(of: [reference.url] + reference.alternateURLs) {
        url in
        try await document(at: url, range: range)
      }
      try reader.add(bytes, at: range.offset)
      if let initialization = reference.initialization, initialization.url == reference.url,
        initialization.byteRange == range
      {
        initializations?[initialization] = bytes
      }
    }
    return try reader.segments()
  }
}
