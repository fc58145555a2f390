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
  /// The whole `pssh` boxes of the media (ISO/IEC 23001-7 §8.1), for the request to a license server.
  public var systemData: [[UInt8]]
  /// The URL of the key itself in an HLS playlist (KEYFORMAT `identity`). Reel fetches it if the provider returns
  /// nil.
  public var keyURL: URL?
  /// The URL or path of the media.
  package var location: String

  package init(
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

/// A fixed list of keys.
package struct KeyList: KeyProvider {
  private var keys: [KeyID: ContentKey] = [:]
  /// The keys for media that names no key.
  private var unnamed: [ContentKey] = []

  /// The largest key file or license that is accepted: 1 MiB.
  package static let byteLimit = 1 << 20

  package init() {}

  package var count: Int { keys.count + unnamed.count }

  /// Adds a key. Without an id, it is for media that names no key id. A later key with the same id replaces an
  /// earlier one.
  package mutating func add(_ key: ContentKey, for id: KeyID? = nil) {
    if let id { keys[id] = key } else { unnamed = [key] }
  }

  /// Adds a key written as `KID:KEY`, or `KEY` alone. Each part is 32 hexadecimal digits or base64url; an id may have
  /// the dashes of a UUID.
  ///
  /// Throws `ReelError.usage` for anything else. The error does not repeat the text.
  package mutating func add(parsing text: some StringProtocol) throws(ReelError) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), let key = ContentKey(parts[parts.count - 1]) else {
      throw ReelError(.usage, "a key is KID:KEY or KEY, each 32 hexadecimal digits or base64url")
    }
    guard parts.count == 2 else { return add(key) }
    guard let id = KeyID(parts[0]) else {
      throw ReelError(.usage, "a key ID is 32 hexadecimal digits, with or without dashes, or base64url")
    }
    add(key, for: id)
  }

  /// Adds the keys of a file. It has either one key per line, in the form that `add(parsing:)` reads, with empty
  /// lines and comments after `#`, or a W3C Clear Key license in JSON (Encrypted Media Extensions §9.1.4).
  ///
  /// Throws `ReelError.usage` with the line number, and for a file without a key. The error does not repeat the
  /// line's text.
  package mutating func add(file: [UInt8]) throws(ReelError) {
    guard file.count <= Self.byteLimit else {
      throw ReelError(.usage, "the key file is too large: \(file.count) bytes")
    }
    // Some editors begin a file with a byte order mark.
    let file = file.starts(with: [0xef, 0xbb, 0xbf]) ? file.dropFirst(3) : file[...]
    let text = String(decoding: file, as: UTF8.self)
    let isLicense = text.drop(while: \.isWhitespace).first == "{"
    let added = isLicense ? try add(license: file) : try add(lines: text)
    guard added > 0 else { throw ReelError(.usage, "the file has no key") }
  }

  /// Returns the key with the requested id.
  ///
  /// If no key in the list has an id, returns the key without one. If the request has no id, returns the key without
  /// one, or else the list's only key unless the playlist gives a key URL.
  package func key(for request: KeyRequest) async throws -> ContentKey? {
    guard let id = request.id else {
      // Without an unnamed key, use the only key in the list, unless the playlist gives a key URL.
      return unnamed.first ?? (request.keyURL == nil && keys.count == 1 ? keys.values.first : nil)
    }
    // An unnamed key also serves media that names a key id, if no key in the list has an id.
    return keys[id] ?? (keys.isEmpty ? unnamed.first : nil)
  }

  /// Returns whether the list has the key with this id, or only a key without an id.
  package func holdsKey(for id: KeyID) -> Bool { keys[id] != nil || keys.isEmpty && !unnamed.isEmpty }

  // MARK: - Private

  private struct License: Decodable {
    struct Key: Decodable {
      let kty: String?
      let kid: String
      let k: String
    }

    let keys: [Key]
  }

  /// Returns the number of added keys.
  private mutating func add(lines text: String) throws(ReelError) -> Int {
    var added = 0
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .enumerated()
    {
      let content = line.prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)
      guard !content.isEmpty else { continue }
      do {
        try add(parsing: content)
      } catch {
        throw ReelError(.usage, error.reason, place: .line(index + 1))
      }
      added += 1
    }
    return added
  }

  /// Returns the number of added keys.
  private mutating func add(license: ArraySlice<UInt8>) throws(ReelError) -> Int {
    guard let license = try? JSONDecoder().decode(License.self, from: Data(license)) else {
      throw ReelError(
        .usage, "the JSON is not a Clear Key license: {\"keys\":[{\"kty\":\"oct\",\"kid\":…,\"k\":…}]}")
    }
    var added = 0
    for (index, entry) in license.keys.enumerated() where entry.kty ?? "oct" == "oct" {
      guard let id = KeyID(entry.kid), let key = ContentKey(entry.k) else {
        throw ReelError(
          .usage, "key \(index + 1) of the license or its ID is not 16 bytes in base64url")
      }
      add(key, for: id)
      added += 1
    }
    return added
  }
}

extension KeyList: CustomStringConvertible, CustomReflectable {
  /// The number of keys, without the keys themselves.
  package var description: String { "\(count) keys" }
  /// A mirror without children, so that the keys do not appear in logs.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
