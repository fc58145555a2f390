internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The keys that a source has got of the program's provider.
final class ProvidedKeys: Sendable {
  private let keys = Locked<[KeyID?: ContentKey]>([:])

  /// Where media has rotated through more keys, all are asked for anew.
  private static let limit = 4096

  subscript(id: KeyID?) -> ContentKey? {
    get { keys.withLock { $0[id] } }
    set {
      keys.withLock { keys in
        if keys.count >= Self.limit { keys = [:] }
        keys[id] = newValue
      }
    }
  }
}

/// The keys of one container's samples: from the program's provider, else from the URLs of a playlist.
final class ContainerKeys: SampleKeys {
  private struct State {
    /// Ids that the provider has no key of.
    var missing: Set<KeyID?> = []
    /// The key of the last URL.
    var fetched: (url: URL, key: ContentKey?)?
    var scope: LoadScope
    /// The place of the container's first byte in the stream of segments.
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
  ///   - protection: what the manifest says.
  ///   - location: of the media.
  ///   - scope: ends the waiting for keys.
  ///   - store: fetches the keys that a playlist names.
  ///   - encryption: gives what a playlist says of the segment that a byte is of; nil for a file of its own.
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

  /// The container's bytes begin at another place of the stream of segments from now on.
  func setShift(_ shift: Int64) { state.withLock { $0.shift = shift } }

  /// Another scope ends the waiting from now on.
  func setScope(_ scope: LoadScope) { state.withLock { $0.scope = scope } }

  func key(for request: SampleKeyRequest) throws -> SampleKey {
    let encryption = encryption?(request.position + state.withLock { $0.shift })
    if request.keyID == nil {
      // Of MPEG-TS the playlist tells.
      guard self.encryption == nil ? request.isAnnounced : encryption?.encryptsSamples ?? false else {
        return .clear
      }
    }
    var systems = encryption?.systems ?? []
    for system in (protection?.systems ?? []) + request.systems where !systems.contains(system) {
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
    if let known = provided[wanted.id] { return known }
    if state.withLock({ $0.missing.contains(wanted.id) }) { return nil }
    let key = try BlockingThread.wait(scope: state.withLock { $0.scope }) {
      try await provider.key(for: wanted)
    }
    if let key {
      provided[wanted.id] = key
    } else {
      _ = state.withLock { $0.missing.insert(wanted.id) }
    }
    return key
  }

  /// The key that a playlist names the URL of; nil where a system has it.
  private func fetched(_ wanted: KeyRequest) throws -> ContentKey? {
    guard let store, let url = wanted.keyURL else { return nil }
    let (known, scope) = state.withLock { ($0.fetched, $0.scope) }
    if let known, known.url == url { return known.key }
    let bytes = try BlockingThread.wait(scope: scope) { try await store.key(at: url) }
    var key = ContentKey(bytes: bytes)
    // Packagers that do not know the key's URL write the id in place of the key.
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
