public import Foundation
public import ReelCore

/// Gives the keys of encrypted media: Common Encryption (ISO/IEC 23001-7), SAMPLE-AES, and WebM.
///
/// Set it as ``LoadingConfiguration/keyProvider``. Reel asks before the first encrypted sample of each key id, and keeps
/// the answer as long as the source is loaded. Until then, everything that is in the clear plays.
public protocol KeyProvider: Sendable {
  /// The key that `request` names; nil where there is none.
  ///
  /// Reading the media waits for the answer; the task is cancelled with it. An error that is thrown ends the loading as a
  /// transfer's error does: temporary ones (``ReelError/isTemporary``) are tried again.
  func key(for request: KeyRequest) async throws -> ContentKey?

  /// True where `key(for:)` is likely to give the key with this id. Where a manifest has tracks that are encrypted with
  /// different keys, or in the clear, those that can be played are preferred. True unless it is implemented.
  func holdsKey(for id: KeyID) -> Bool
}

extension KeyProvider {
  public func holdsKey(for id: KeyID) -> Bool { true }
}

/// Which key is wanted.
public struct KeyRequest: Sendable, Hashable {
  /// Nil where the media names none, as MPEG-TS.
  public var id: KeyID?
  /// `cenc`, `cens`, `cbc1`, `cbcs`, `SAMPLE-AES` or `WebM`.
  public var scheme: String
  /// The names of the systems that the manifest and the media say have the key, as `Widevine`.
  public var systems: [String]
  /// `pssh` boxes of the media, whole (ISO/IEC 23001-7 §8.1): what a licence server is asked with.
  public var systemData: [[UInt8]]
  /// Where an HLS playlist says that the key itself is (KEYFORMAT `identity`): it is fetched where the provider has none.
  public var keyURL: URL?
  /// The URL or path of the media.
  public var location: String

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
