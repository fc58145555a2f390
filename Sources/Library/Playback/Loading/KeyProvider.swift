public import Foundation
public import ReelCore

/// Provides the keys of encrypted media: Common Encryption (ISO/IEC 23001-7), SAMPLE-AES, and WebM.
///
/// Set it as ``LoadingConfiguration/keyProvider``. Reel requests a key before the first encrypted sample of each key
/// id, or of each key URL if the media names no id, and keeps the key as long as the source is loaded. Media before
/// that sample plays without a key.
public protocol KeyProvider: Sendable {
  /// Returns the requested key, or nil if there is none.
  ///
  /// Reading the media waits for this call, and cancels its task if reading is cancelled. An error that you throw is
  /// handled like an error of a transfer: loading fails, and is retried if the error is temporary
  /// (`ReelError.isTemporary`).
  func key(for request: KeyRequest) async throws -> ContentKey?

  /// Returns whether `key(for:)` is likely to return the key with this id. If the tracks of a manifest are encrypted
  /// with different keys, or some are in the clear, Reel prefers those that can be played. The default implementation
  /// returns true.
  func holdsKey(for id: KeyID) -> Bool
}

extension KeyProvider {
  /// Returns true.
  public func holdsKey(for id: KeyID) -> Bool { true }
}

/// A description of the key that is needed.
public struct KeyRequest: Sendable, Hashable {
  /// The id of the key; nil if the media names none, as in MPEG-TS.
  public var id: KeyID?
  /// The encryption scheme: `cenc`, `cens`, `cbc1`, `cbcs`, `SAMPLE-AES` or `WebM`.
  public var scheme: String
  /// The names of the DRM systems that have the key according to the manifest and the media, such as `Widevine`.
  public var systems: [String]
  /// The whole `pssh` boxes of the media (ISO/IEC 23001-7 §8.1), for the request to a licence server.
  public var systemData: [[UInt8]]
  /// The URL of the key itself in an HLS playlist (KEYFORMAT `identity`). Reel fetches it if the provider returns
  /// nil.
  public var keyURL: URL?
  /// The URL or path of the media.
  public var location: String

  /// Creates a request.
  public init(
    id: KeyID?, scheme: String, systems: [String] = [], systemData: [[UInt8]] = [], keyURL: URL? = nil,
    location: String = ""
  ) {
    self.id = id
    self.scheme = scheme
    self.systems = systems
    self.systemData = systemData
    self.keyURL = keyURL
    self.location = location
  }
}
