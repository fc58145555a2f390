internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// A source of known kind.
enum ResolvedSource: Sendable {
  case presentation(ResolvedPresentation)
  case resource(MediaResource)
}

/// A manifest that was read.
struct ResolvedPresentation: Sendable {
  var presentation: Presentation
  /// The URL of the manifest, after redirects.
  var url: URL
  /// The clock of a live presentation.
  var clock: any WallClock
}

/// The segments of one rung, and the properties that its playlist or index states.
struct RungSegments: Sendable {
  var list: SegmentList
  /// The live state, if an HLS playlist is not complete.
  var live: LiveTiming?
  /// The position at which an HLS playlist lets playback begin.
  var startOffset: StartOffset?
  /// The transfer that continues with a file whose index was read from its beginning.
  var transfer: FileTransfer?
  /// The reason why the file is read as one segment although the manifest names an index.
  var indexFault: ReelError?
  /// The URL of the rung's own playlist.
  var playlistURL: URL?
  /// True if the rung's own playlist states EXT-X-INDEPENDENT-SEGMENTS.
  var hasIndependentSegments = false
}

/// One media file: its container and its bytes, some of which may still be on their way.
struct MediaResource: Sendable {
  enum Access: Sendable {
    case file(path: String)
    /// An unnamed temporary file with the whole content.
    case spooled(SpoolFile)
    case standardInput
    /// The response to the first request, and the part of its body that was read.
    case response(FetchResponse, read: [UInt8])
  }

  let name: String
  let format: ContainerFormat
  let layout: MP4Layout
  var access: Access
  /// False if it can't be requested again.
  var isRepeatable = true
}

/// Determines the kind of a source: sends the first request, inspects the first bytes, and reads a manifest
/// completely.
struct SourceResolver: Sendable {
  let fetcher: any Fetching
  let configuration: LoadingConfiguration
  let scope: LoadScope
  let recorder: StartupRecorder
  /// Receives each manifest that is read.
  var record: (@Sendable (LoadedManifest.Document) -> Void)?

  /// Throws `ReelError`, located at the source.
  func resolve(_ source: MediaSource) async throws -> ResolvedSource {
    switch source {
    case .standardInput:
      return try await resolveStandardInput()
    case .url(let url) where url.isFileURL && !configuration.fetchesFiles:
      do {
        return try await resolveFile(url)
      } catch var error as ReelError where error.kind == .noSuchFile && error.advice == nil {
        error.advice = source.probableURL.map { "did you mean \($0)?" }
        throw error
      }
    case .url(let url):
      return try await resolveRemote(url)
    }
  }

  /// Like `segments(of:variables:)`, but throws only `CancellationError`.
  func outcome(of rung: Rung, variables: [String: String]) async throws -> Result<RungSegments, ReelError> {
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
  func segments(
    of rung: Rung, variables: [String: String], initializations: InitializationStore? = nil
  ) async throws -> RungSegments {
    switch rung.media {
    case .segments(let list):
      return RungSegments(list: list)
    case .playlist(let url):
      return try await firstOf([url] + rung.alternateURLs) { url in
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
  func playlist(at url: URL, variables: [String: String]) async throws -> RungSegments {
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
  func reload(_ resolved: ResolvedPresentation) async throws -> Presentation {
    let locations = resolved.presentation.live?.locations ?? []
    return try await firstOf(locations + [resolved.url]) { url in
      let (bytes, finalURL) = try await document(at: url)
      return try ManifestReader(limits: configuration.manifestLimits).presentation(
        from: bytes, format: resolved.presentation.format, url: finalURL, now: resolved.clock.now)
    }
  }

  /// Returns a single-file Representation as one segment.
  func wholeFile(_ reference: SegmentIndexReference) -> SegmentReference {
    SegmentReference(
      number: 0, url: reference.url, start: reference.start, duration: reference.duration ?? .zero,
      timestampOffset: reference.timestampOffset)
  }

  // MARK: - Private

  private func resolveFile(_ url: URL) async throws -> ResolvedSource {
    let path = url.path
    let isCancelled = { @Sendable in scope.isCancelled }
    let bytes = try await BlockingThread.run(named: "open", on: scope.runtime) {
      let file = try FileByteSource(path: path, isCancelled: isCancelled)
      return file.isSeekable ? try Self.firstBytes(of: file) : nil
    }
    recorder.add(.open, recorder.clock.now - recorder.start, requests: 1, bytes: Int64(bytes?.count ?? 0))
    guard let bytes else {
      throw ReelError(.badMedia, "not a regular file", at: path, advice: "pass a pipe as - on standard input")
    }
    switch SourceSniffer.kind(of: bytes) {
    case .manifest(let format):
      let text = try await BlockingThread.run(named: "open", on: scope.runtime) {
        try FileByteSource(path: path, isCancelled: isCancelled).prefix(
          configuration.manifestLimits.byteCount + 1)
      }
      recorder.add(.open, bytes: Int64(text.count - bytes.count))
      return try await presentation(from: text, format: format, url: url, name: path)
    case .media(let format):
      let layout = try await BlockingThread.run(named: "open", on: scope.runtime) {
        try Self.layout(of: try FileByteSource(path: path), format: format, prefix: bytes)
      }
      return .resource(MediaResource(name: path, format: format, layout: layout, access: .file(path: path)))
    case .other(let what, let found):
      throw Self.unplayable(what, found, at: path)
    }
  }

  private func resolveStandardInput() async throws -> ResolvedSource {
    let (name, isCancelled) = (MediaSource.standardInput.name, { @Sendable in scope.isCancelled })
    let input = try await BlockingThread.run(named: "open", on: scope.runtime) {
      let file = FileByteSource.standardInput(isCancelled: isCancelled)
      return (
        isSeekable: file.isSeekable, bytes: file.isSeekable ? try Self.firstBytes(of: file) : []
      )
    }
    if input.isSeekable {
      recorder.add(
        .open, recorder.clock.now - recorder.start, requests: 1, bytes: Int64(input.bytes.count))
    }
    if input.isSeekable, case .media(let format) = SourceSniffer.kind(of: input.bytes) {
      let layout = try await BlockingThread.run(named: "open", on: scope.runtime) {
        try Self.layout(
          of: FileByteSource.standardInput(isCancelled: isCancelled), format: format, prefix: input.bytes)
      }
      return .resource(MediaResource(name: name, format: format, layout: layout, access: .standardInput))
    }
    let folder = URL(fileURLWithPath: FileManager.default.currentDirectoryPath, isDirectory: true)
    if input.isSeekable, case .manifest(let format) = SourceSniffer.kind(of: input.bytes) {
      let limit = configuration.manifestLimits.byteCount
      let text = try await BlockingThread.run(named: "open", on: scope.runtime) {
        try FileByteSource.standardInput(isCancelled: isCancelled).prefix(limit + 1)
      }
      recorder.add(.open, bytes: Int64(text.count - input.bytes.count))
      return try await presentation(from: text, format: format, url: folder, name: name)
    }
    if input.isSeekable, case .other(let what, let found) = SourceSniffer.kind(of: input.bytes) {
      throw Self.unplayable(what, found, at: name)
    }
    // A pipe is read like the body of a response.
    let queue = StandardInputBody(isCancelled: isCancelled)
    let response = FetchResponse(
      url: folder, contentType: nil,
      bodyOffset: 0, bodyByteCount: nil, resourceByteCount: nil, supportsRanges: false,
      body: FetchBody { try await queue.next() })
    let resolved = try await resolve(response, name: name)
    guard case .resource(var resource) = resolved else { return resolved }
    resource.isRepeatable = false
    return .resource(resource)
  }

  private func resolveRemote(_ url: URL) async throws -> ResolvedSource {
    let request = FetchRequest(url: url, purpose: .source)
    let response = try await fetcher.fetch(request)
    return try await resolve(response, name: url.reelName)
  }

  private func resolve(_ response: FetchResponse, name: String) async throws -> ResolvedSource {
    var (bytes, hasEnded) = try await read(response, from: [], atLeast: SourceSniffer.byteCount)
    if !hasEnded, SourceSniffer.needsMore(bytes) {
      (bytes, hasEnded) = try await read(response, from: bytes, atLeast: SourceSniffer.largestByteCount)
    }
    recorder.add(
      .open, recorder.clock.now - recorder.start, requests: response.requestCount,
      bytes: Int64(bytes.count))
    switch SourceSniffer.kind(of: bytes) {
    case .manifest(let format):
      let start = recorder.clock.now
      let seen = bytes.count
      let limit = configuration.manifestLimits.byteCount
      if !hasEnded { (bytes, hasEnded) = try await read(response, from: bytes, atLeast: limit + 1) }
      let presentation = try await presentation(from: bytes, format: format, url: response.url, name: name)
      recorder.add(.manifest, recorder.clock.now - start, bytes: Int64(bytes.count - seen))
      return presentation
    case .media(let format):
      var layout = MP4Layout(prefix: bytes, format: format)
      let seen = bytes.count
      while format == .matroska, layout == .unknown, !hasEnded, bytes.count < Self.remoteLayoutByteCount {
        // The tracks may come after a long element. If they are not near the beginning, the file can't be
        // read forward.
        (bytes, hasEnded) = try await read(response, from: bytes, atLeast: bytes.count * 2)
        layout = MP4Layout(prefix: bytes, format: format)
      }
      recorder.add(.open, bytes: Int64(bytes.count - seen))
      let needsEnd = layout == .indexLast || format == .mp4 && layout == .unknown && !hasEnded
      if needsEnd, !response.supportsRanges || response.resourceByteCount == nil {
        return .resource(
          MediaResource(
            name: name, format: format, layout: .indexLast,
            access: .spooled(try await spool(response, from: bytes, name: name))))
      }
      return .resource(
        MediaResource(name: name, format: format, layout: layout, access: .response(response, read: bytes)))
    case .other(let what, let found):
      throw Self.unplayable(what, found, at: name)
    }
  }

  /// Returns the presentation of a manifest. A live one uses the server's time, if the manifest names a
  /// source of it.
  ///
  /// - Parameter name: The name in errors.
  private func presentation(
    from bytes: [UInt8], format: ManifestFormat, url: URL, name: String
  ) async throws -> ResolvedSource {
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
    return .presentation(ResolvedPresentation(presentation: presentation, url: url, clock: clock))
  }

  /// Returns the segments in the index of a file.
  private func index(
    _ reference: SegmentIndexReference, _ initializations: InitializationStore?
  ) async throws -> SegmentList {
    var reader = SegmentIndexReader(reference: reference, limits: configuration.manifestLimits)
    while let range = reader.missing {
      let (bytes, _) = try await firstOf([reference.url] + reference.alternateURLs) { url in
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

  /// Returns the result of `body` for the first of `urls` that succeeds.
  func firstOf<Result: Sendable>(
    _ urls: [URL], _ body: (URL) async throws -> Result
  ) async throws -> Result {
    var first: ReelError?
    for url in urls {
      do {
        return try await body(url)
      } catch let error as ReelError {
        first = first ?? error
      }
    }
    throw first ?? ReelError(.internalFault, "no URL to read from")
  }

  func document(at url: URL, range: ByteRange? = nil) async throws -> (bytes: [UInt8], url: URL) {
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

  /// Reads until there are this many bytes, or the end is reached.
  private func read(
    _ response: FetchResponse, from first: [UInt8], atLeast count: Int
  ) async throws -> (bytes: [UInt8], hasEnded: Bool) {
    var bytes = first
    while bytes.count < count {
      guard let chunk = try await response.body.next() else { return (bytes, true) }
      bytes.append(contentsOf: chunk)
    }
    return (bytes, false)
  }

  /// Writes the whole body to a temporary file.
  private func spool(_ response: FetchResponse, from first: [UInt8], name: String) async throws -> SpoolFile {
    let file = try SpoolFile(of: response.url.isFileURL ? nil : name)
    try file.append(first)
    for try await chunk in response.body {
      guard file.byteCount + Int64(chunk.count) <= configuration.spoolByteLimit else {
        let cause =
          response.url.isFileURL ? "a pipe can't be read from there" : "the server does not support ranges"
        throw ReelError(
          .badMedia, "the index is at the end, \(cause), and the file is too large to keep", at: name)
      }
      try file.append(chunk)
    }
    return file
  }

  private static func unplayable(_ what: String, _ found: ReelError.Found, at name: String) -> ReelError {
    ReelError(
      found: found, "not media: \(what)", at: name,
      advice: "HLS, DASH, MP4, MPEG-TS, MPEG-PS, Matroska, FLV, AVI, IVF and raw H.264 or HEVC can be read")
  }

  /// Returns the first bytes of a local file, enough to detect its format.
  private static func firstBytes(of file: FileByteSource) throws -> [UInt8] {
    let bytes = try file.prefix(SourceSniffer.byteCount)
    return SourceSniffer.needsMore(bytes) ? try file.prefix(SourceSniffer.largestByteCount) : bytes
  }

  /// Returns the layout of a local file, reading more than its first bytes if necessary.
  private static func layout(
    of file: FileByteSource, format: ContainerFormat, prefix bytes: [UInt8]
  ) throws -> MP4Layout {
    let layout = MP4Layout(prefix: bytes, format: format)
    // `mvex` may follow a long `trak`, and the tracks of Matroska a long element.
    let mayChange =
      switch format {
      case .mp4: layout == .unknown || layout == .indexFirst(isFragmented: false)
      case .matroska: layout == .unknown
      default: false
      }
    return mayChange ? MP4Layout(prefix: try file.prefix(layoutByteCount), format: format) : layout
  }

  /// The number of bytes of a local file to search for the elements that determine its layout.
  private static let layoutByteCount = 4 << 20
  /// The same for Matroska that arrives from a server or a pipe.
  private static let remoteLayoutByteCount = 1 << 20
}

/// Reads standard input chunk by chunk, on its own thread.
private struct StandardInputBody: Sendable {
  let isCancelled: @Sendable () -> Bool

  func next() async throws -> [UInt8]? {
    let isCancelled = isCancelled
    let chunk = try await BlockingThread.run(named: "stdin") {
      try FileByteSource.standardInput(isCancelled: isCancelled).chunk(64 << 10)
    }
    return chunk.isEmpty ? nil : chunk
  }
}
