internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
package import ReelSources

/// A source of known kind.
package enum ResolvedSource: Sendable {
  case presentation(ResolvedPresentation)
  case resource(MediaResource)
}

/// One media file: its container and its bytes, some of which may still be on their way.
package struct MediaResource: Sendable {
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
  /// Reads the source if it is a manifest.
  let manifests: ManifestLoader

  private var fetcher: any Fetching { manifests.fetcher }
  private var configuration: LoadingConfiguration { manifests.configuration }
  private var scope: LoadScope { manifests.scope }
  private var recorder: StartupRecorder { manifests.recorder }

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

  /// Returns a fragmented MP4 file with an index of its fragments as a presentation of them; others as they are.
  func indexed(_ resource: MediaResource) async throws -> ResolvedSource {
    guard resource.format == .mp4, resource.layout == .indexFirst(isFragmented: true) else {
      return .resource(resource)
    }
    let (response, url): (FetchResponse, URL)
    var known: [UInt8] = []
    switch resource.access {
    case .file(let path):
      url = URL(fileURLWithPath: path)
      response = try await fetcher.fetch(FetchRequest(url: url, purpose: .segment))
    case .response(let first, let read):
      guard resource.isRepeatable, first.supportsRanges, first.resourceByteCount != nil else {
        return .resource(resource)
      }
      (response, url, known) = (first, first.url, read)
    case .spooled, .standardInput: return .resource(resource)
    }
    if let indexed = try await manifests.presentation(ofFile: response, at: url, known: &known) {
      return .presentation(indexed)
    }
    var resource = resource
    if case .response = resource.access { resource.access = .response(response, read: known) }
    return .resource(resource)
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
      return .presentation(try await manifests.presentation(from: text, format: format, url: url, name: path))
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
      return .presentation(
        try await manifests.presentation(from: text, format: format, url: folder, name: name))
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
      let presentation = try await manifests.presentation(
        from: bytes, format: format, url: response.url, name: name)
      recorder.add(.manifest, recorder.clock.now - start, bytes: Int64(bytes.count - seen))
      return .presentation(presentation)
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
