internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelSources

/// The keys of one source's segments, each fetched once.
actor KeyStore {
  private let fetcher: any Fetching
  private let runtime: any PlayerRuntime
  private var keys: [URL: Task<[UInt8], any Error>] = [:]

  /// The maximum number of keys. Beyond it, all are dropped.
  private static let limit = 256
  /// A key has 16 bytes. A longer response is an error page.
  private static let byteLimit = 4096

  init(fetcher: any Fetching, runtime: any PlayerRuntime = SystemRuntime.shared) {
    self.fetcher = fetcher
    self.runtime = runtime
  }

  /// Returns the decryptor for `encryption`; nil if the segment is not encrypted, or only its samples are.
  ///
  /// Throws the errors of `check`, `badManifest` for a key without a URL, `badMedia` for an invalid key, and
  /// the fetcher's errors.
  func decryption(for encryption: SegmentEncryption?, at url: URL) async throws -> Decryption? {
    guard let encryption, !encryption.encryptsSamples else { return nil }
    try Self.check(encryption, at: url)
    guard let keyURL = encryption.keyURL else {
      throw ReelError(.badManifest, "the segment is encrypted, and its key has no URL", at: url.reelName)
    }
    guard let vector = encryption.initializationVector else {
      throw ReelError(
        .badManifest, "an encrypted EXT-X-MAP needs a key with an IV (RFC 8216 §4.3.2.5)", at: url.reelName)
    }
    return Decryption(
      key: try await key(at: keyURL, of: url.reelName), initializationVector: vector, keyURL: keyURL)
  }

  /// Throws `unsupported` with the method's name for segments that are encrypted as a whole by any method other than
  /// AES-128 with a plain key.
  static func check(_ encryption: SegmentEncryption?, at url: URL) throws(ReelError) {
    guard let encryption, !encryption.encryptsSamples, encryption.method != "AES-128" else { return }
    throw ReelError(
      .unsupported, found: .encrypted,
      "the segment is encrypted (\(encryption.method)), and only AES-128 is supported",
      at: url.reelName)
  }

  /// Returns the 16 bytes at a key's URL. Throws `badMedia` for any other number of bytes, and the fetcher's
  /// errors; they say that it is a key.
  ///
  /// - Parameter media: The URL or path of the media that it is for.
  func key(at url: URL, of media: String) async throws -> [UInt8] {
    do {
      return try await key(at: url)
    } catch var error as ReelError {
      error.reason += " (the key of \(media))"
      throw error
    }
  }

  // MARK: - Private

  private func key(at url: URL) async throws -> [UInt8] {
    while true {
      let task =
        keys[url]
        ?? runtime.throwingTask { [fetcher] in try await Self.key(at: url, fetcher) }
      if keys.count >= Self.limit { keys.removeAll() }
      keys[url] = task
      do {
        return try await withTaskCancellationHandler {
          try await task.value
        } onCancel: {
          task.cancel()
        }
      } catch {
        if keys[url] == task { keys[url] = nil }
        // The task may have been cancelled by another caller that waited for it.
        guard error is CancellationError, !Task.isCancelled else { throw error }
      }
    }
  }

  private static func key(at url: URL, _ fetcher: any Fetching) async throws -> [UInt8] {
    do {
      let response = try await fetcher.fetch(FetchRequest(url: url, purpose: .key))
      let bytes = try await response.body.collect(upTo: byteLimit)
      guard bytes.count == AES128Decryptor.blockByteCount else {
        throw ReelError(
          .badMedia, "the key has \(bytes.count) bytes, not \(AES128Decryptor.blockByteCount)",
          at: url.reelName)
      }
      return bytes
    } catch let error as ReelError {
      throw error.located(at: url.reelName)
    }
  }
}

/// The decryption of the body of one segment.
struct Decryption: Sendable {
  let key: [UInt8]
  let initializationVector: [UInt8]
  let keyURL: URL

  /// Returns the decrypted bytes of a whole body. Throws `badMedia`, with the key's URL, if decryption fails.
  func plain(_ bytes: [UInt8]) throws(ReelError) -> [UInt8] {
    var decryptor = try AES128Decryptor(key: key, initializationVector: initializationVector)
    let plain = decryptor.update(bytes)
    return plain + (try ending(of: &decryptor))
  }

  /// Returns the decrypted body. Its pulls throw `badMedia`, with the key's URL, if decryption fails.
  func plain(_ body: FetchBody) throws(ReelError) -> FetchBody {
    let state = Locked<AES128Decryptor?>(
      try AES128Decryptor(key: key, initializationVector: initializationVector))
    return FetchBody {
      while let chunk = try await body.next() {
        let plain = state.withLock { $0?.update(chunk) ?? [] }
        if !plain.isEmpty { return plain }
      }
      let last = try state.withLock { decryptor throws(ReelError) -> [UInt8]? in
        guard var ending = decryptor.take() else { return nil }
        return try self.ending(of: &ending)
      }
      return last.flatMap { $0.isEmpty ? nil : $0 }
    }
  }

  private func ending(of decryptor: inout AES128Decryptor) throws(ReelError) -> [UInt8] {
    do throws(ReelError) {
      return try decryptor.finish()
    } catch {
      var named = error
      named.reason += " (key \(keyURL.reelName))"
      throw named
    }
  }
}

/// The keys that a source has received from the application's provider.
final class ProvidedKeys: Sendable {
  /// The identity of a key: its id, or the URL in a playlist if the media names no id.
  enum Name: Hashable {
    case id(KeyID)
    case url(URL?)

    init(_ request: KeyRequest) { self = request.id.map(Name.id) ?? .url(request.keyURL) }
  }

  private let keys = Locked<[Name: ContentKey]>([:])

  /// The maximum number of keys. If media rotates through more, all of them are requested again.
  private static let limit = 4096

  subscript(name: Name) -> ContentKey? {
    get { keys.withLock { $0[name] } }
    set {
      keys.withLock { keys in
        if keys.count >= Self.limit { keys = [:] }
        keys[name] = newValue
      }
    }
  }
}

/// The keys for the samples of one container, from the application's provider or else from the URLs in a
/// playlist.
final class ContainerKeys: SampleKeys {
  private struct State {
    /// Keys that the provider does not have.
    var missing: Set<ProvidedKeys.Name> = []
    /// The last key that was fetched, and its URL.
    var fetched: (url: URL, key: ContentKey?)?
    var scope: LoadScope
    /// The position of the container's first byte in the stream of segments.
    var shift: Int64 = 0
  }

  private let provider: (any KeyProvider)?
  private let provided: ProvidedKeys
  private let protection: ContentProtection?
  private let location: String
  private let store: KeyStore?
  private let encryption: (@Sendable (Int64) -> SegmentEncryption?)?
  private let state: Locked<State>

  /// - Parameters:
  ///   - protection: The encryption as the manifest states it.
  ///   - location: The URL or path of the media.
  ///   - scope: Cancelling it ends the wait for keys.
  ///   - store: Fetches the keys whose URLs a playlist gives.
  ///   - encryption: Returns the encryption that the playlist states for the segment at a byte position; nil
  ///     for a single file.
  init(
    context: TrackContext, protection: ContentProtection? = nil, location: String, scope: LoadScope,
    store: KeyStore? = nil, encryption: (@Sendable (Int64) -> SegmentEncryption?)? = nil
  ) {
    provider = context.configuration.keyProvider
    provided = context.providedKeys
    self.protection = protection
    self.location = location
    self.store = store
    self.encryption = encryption
    state = Locked(State(scope: scope))
  }

  /// Sets the position of the container's first byte in the stream of segments.
  func setShift(_ shift: Int64) { state.withLock { $0.shift = shift } }

  /// Sets the scope that ends the wait for keys.
  func setScope(_ scope: LoadScope) { state.withLock { $0.scope = scope } }

  func key(for request: SampleKeyRequest) throws -> SampleKey {
    let encryption = encryption?(request.position + state.withLock { $0.shift })
    if request.keyID == nil {
      // For MPEG-TS in a playlist, the playlist decides.
      guard self.encryption == nil ? request.isAnnounced : encryption?.encryptsSamples ?? false else {
        return .clear
      }
    }
    var systems = encryption?.systems ?? []
    for system in (protection?.systemNames ?? []) + request.systems where !systems.contains(system) {
      systems.append(system)
    }
    var wanted = KeyRequest(
      id: request.keyID, scheme: request.scheme, systems: systems, systemData: request.systemData,
      location: location)
    if let encryption, encryption.encryptsSamples, encryption.systems.isEmpty, store != nil {
      wanted.keyURL = encryption.keyURL
    }
    guard let key = try provided(wanted) ?? fetched(wanted) else {
      throw request.refusal(systems: systems)
    }
    return .key(key, vector: encryption?.initializationVector)
  }

  // MARK: - Private

  private func provided(_ wanted: KeyRequest) throws -> ContentKey? {
    guard let provider else { return nil }
    let name = ProvidedKeys.Name(wanted)
    if let known = provided[name] { return known }
    if state.withLock({ $0.missing.contains(name) }) { return nil }
    let key = try BlockingThread.wait(scope: state.withLock { $0.scope }) {
      try await provider.key(for: wanted)
    }
    if let key {
      provided[name] = key
    } else {
      _ = state.withLock { $0.missing.insert(name) }
    }
    return key
  }

  /// Returns the key at the URL that a playlist states; nil if a DRM system has it.
  private func fetched(_ wanted: KeyRequest) throws -> ContentKey? {
    guard let store, let url = wanted.keyURL else { return nil }
    let (known, scope) = state.withLock { ($0.fetched, $0.scope) }
    if let known, known.url == url { return known.key }
    let bytes = try BlockingThread.wait(scope: scope) { [location] in
      try await store.key(at: url, of: location)
    }
    var key = ContentKey(bytes: bytes)
    // Packagers that do not know the key's URL write a data: URL with the key id in place of the key.
    if let id = KeyID(bytes: bytes), url.scheme?.lowercased() == "data" {
      if id == wanted.id {
        key = nil
      } else if wanted.id == nil, let provider, provider.holdsKey(for: id) {
        var named = wanted
        named.id = id
        key = try provided(named) ?? key
      }
    }
    let fetched = key
    state.withLock { $0.fetched = (url, fetched) }
    return fetched
  }
}
