public import ReelCore

/// Decrypts the media that a ``Gateway`` serves.
///
/// `MediaDecryptor` of ReelGatewayKeys is one. The decrypted bytes must have the size of the encrypted ones, so that byte
/// ranges in playlists and indexes stay right. Methods are called concurrently.
public protocol MediaDecrypting: Sendable {
  /// Returns whether it can decrypt media that is encrypted with this key. Other tracks stay encrypted, or are left out.
  func holdsKey(for id: KeyID) -> Bool

  /// Returns an initialization segment of fragmented MP4 without its encryption.
  ///
  /// Throws `ReelError` for one that can't be decrypted; an HTTP client then gets 502 with the reason, or 403 if a key is missing.
  func initialization(_ bytes: [UInt8]) async throws -> [UInt8]

  /// Returns a segment of fragmented MP4 without its encryption.
  ///
  /// Throws `ReelError` for one that can't be decrypted; an HTTP client then gets 502 with the reason, or 403 if a key is missing.
  ///
  /// - Parameters:
  ///   - bytes: The whole segment.
  ///   - position: The position of its first byte in its file: 0 if the segment is a file.
  ///   - initialization: Its initialization segment, still encrypted; nil if the segment contains its own.
  func segment(_ bytes: [UInt8], at position: Int64, initialization: [UInt8]?) async throws -> [UInt8]
}
