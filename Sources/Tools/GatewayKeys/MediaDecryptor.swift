public import ReelCore
import ReelFFmpeg
public import ReelGateway
public import ReelSources

/// Decrypts the media that a gateway serves: fragmented MP4 with Common Encryption (ISO/IEC 23001-7).
///
/// Pass it to `Gateway.start`. It supports the schemes `cenc`, `cens`, `cbc1` and `cbcs`, and keys that change within a
/// track. A key is never part of an error.
public struct MediaDecryptor: MediaDecrypting {
  private let keys: any KeyProvider
  private let known = KnownKeys()

  /// Creates a decryptor that gets its keys from a provider.
  ///
  /// A key that was returned is not requested again, up to 4096 keys. After nil or an error, the next segment requests it
  /// again. Different keys may be requested at the same time. `KeyProvider.holdsKey(for:)` decides which tracks are decrypted.
  public init(keys: any KeyProvider) {
    self.keys = keys
  }

  public func holdsKey(for id: KeyID) -> Bool { keys.holdsKey(for: id) }

  public func initialization(_ bytes: [UInt8]) async throws -> [UInt8] {
    try ProtectedSegment.clearInitialization(bytes)
  }

  public func segment(_ bytes: [UInt8], at position: Int64, initialization: [UInt8]?) async throws -> [UInt8]
  {
    let segment = try ProtectedSegment(bytes, at: position, initialization: initialization)
    var found: [KeyID: ContentKey] = [:]
    for request in segment.requests {
      guard let id = request.keyID else { continue }
      found[id] = try await known.key(
        KeyRequest(
          id: id, scheme: request.scheme, systems: request.systems, systemData: request.systemData),
        from: keys)
    }
    return try segment.decrypted(with: found)
  }
}

/// The keys that a provider has returned.
private actor KnownKeys {
  private var keys: [KeyID: ContentKey] = [:]
  private var requests: [KeyID: Task<ContentKey?, any Error>] = [:]

  /// Beyond it, all keys are requested again.
  private static let limit = 4096

  /// Returns a key; nil if the provider does not have it. The next call then asks it again. Callers that want the same
  /// key at the same time wait for one request.
  func key(_ request: KeyRequest, from provider: any KeyProvider) async throws -> ContentKey? {
    guard let id = request.id else { return nil }
    if let known = keys[id] { return known }
    let task = requests[id] ?? Task { try await provider.key(for: request) }
    requests[id] = task
    defer { if requests[id] == task { requests[id] = nil } }
    let key = try await task.value
    if keys.count >= Self.limit { keys = [:] }
    keys[id] = key
    return key
  }
}
