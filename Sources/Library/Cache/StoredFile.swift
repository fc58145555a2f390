internal import Foundation
internal import ReelCore
internal import ReelFFmpeg

/// The name of an entry: the hash of what identifies it.
struct EntryKey: Hashable, Sendable {
  private let high: UInt64
  private let low: UInt64

  /// Creates the name of what these parts identify together.
  init(hashing parts: [String]) {
    // The length before each part, so that no two lists are the same text.
    let text = parts.map { "\($0.utf8.count):\($0)" }.joined()
    let digest = SHA256Hash.digest(of: Array(text.utf8))
    high = digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    low = digest.dropFirst(8).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Returns nil for a text that is not a name.
  init?(name: String) {
    guard name.utf8.count == 32, let high = UInt64(digits: name.utf8.prefix(16)),
      let low = UInt64(digits: name.utf8.dropFirst(16))
    else { return nil }
    self.high = high
    self.low = low
  }

  /// 32 hexadecimal digits.
  var name: String { high.digits + low.digits }

  /// The name of the folder that has the entry's folder.
  var group: String { String(name.prefix(2)) }
}

/// Tells versions of an entry apart: bytes of different ones are never joined.
typealias EntryVersion = UInt64

/// A file of an entry, by its name, which a listing of the folder tells.
enum EntryFile: Equatable {
  case record
  case piece(EntryVersion, Range<Int64>)
  /// Not a file that this version of Reel writes.
  case other(String)

  init(name: String) {
    var text = name
    let piece = text.withUTF8 { text -> EntryFile? in
      guard text.count == 50, let version = UInt64(digits: text[..<16]),
        let start = UInt64(digits: text[17..<33]),
        let end = UInt64(digits: text[34...]), start < end, end <= Int64.max,
        end - start <= StoredFile.byteLimit
      else { return nil }
      return .piece(version, Int64(start)..<Int64(end))
    }
    self = piece ?? (name == "record" ? .record : .other(name))
  }

  var name: String {
    switch self {
    case .record: "record"
    case .piece(let version, let range):
      "\(version.digits)-\(UInt64(range.lowerBound).digits)-\(UInt64(range.upperBound).digits)"
    case .other(let name): name
    }
  }

  /// The order of the files of an entry: the record, then by position. The last is removed first.
  var place: Int64 {
    switch self {
    case .record: -1
    case .piece(_, let range): range.lowerBound
    case .other: .max
    }
  }

  /// True for what is removed before the heads of other entries: all but the record and the first 512 KiB.
  var isTail: Bool { place >= 512 << 10 }
}

/// The content of a record or piece on disk: a head that says which it is, and the payload.
///
///     0    text, filled up with zeros: format, key, name of the file, number of bytes
///     128  SHA-256 of each block of 64 KiB of the payload, of missing ones zeros
///     256  SHA-256 of the 256 bytes before
///     288  payload
///
/// So a file that is damaged, cut off, or in another's place is recognized, and a read checks only the blocks
/// that it needs.
enum StoredFile {
  /// The largest payload.
  static let byteLimit = 4 * blockByteCount
  private static let blockByteCount = 64 << 10
  private static let textByteCount = 128
  private static let headByteCount = 288

  static func encode(_ payload: ArraySlice<UInt8>, of key: EntryKey, as file: EntryFile) -> [UInt8] {
    var bytes = text(of: key, file, payload.count)
    bytes.reserveCapacity(headByteCount + payload.count)
    var start = payload.startIndex
    while start < payload.endIndex {
      let end = min(start + blockByteCount, payload.endIndex)
      bytes += SHA256Hash.digest(of: Array(payload[start..<end]))
      start = end
    }
    bytes += [UInt8](repeating: 0, count: headByteCount - 32 - bytes.count)
    bytes += SHA256Hash.digest(of: bytes)
    return bytes + payload
  }

  /// Returns at most `maximum` bytes of the payload from `offset` on, which is within it, and at least one if there
  /// is any. Returns nil if they or the head are not as they were written.
  static func decode(
    _ source: borrowing OpenFile, of key: EntryKey, as file: EntryFile, from offset: Int = 0,
    maximum: Int = byteLimit
  ) -> [UInt8]? {
    guard let status = source.status, status.isRegular else { return nil }
    let count = status.byteCount - headByteCount
    if case .piece(_, let range) = file, range.count != count { return nil }
    guard (0...byteLimit).contains(count), let head = source.read(headByteCount, at: 0),
      head.starts(with: text(of: key, file, count)),
      head.suffix(32).elementsEqual(SHA256Hash.digest(of: Array(head.dropLast(32))))
    else { return nil }
    let blocks = offset / blockByteCount
    var end = offset + min(maximum, count - offset)
    // Ends with a block if it can, because the next read would check the same one again.
    let wholeEnd = end / blockByteCount * blockByteCount
    if end < count, wholeEnd > offset { end = wholeEnd }
    var payload: [UInt8] = []
    for block in blocks..<max(blocks, (end + blockByteCount - 1) / blockByteCount) {
      let start = block * blockByteCount
      guard let bytes = source.read(min(blockByteCount, count - start), at: headByteCount + start),
        SHA256Hash.digest(of: bytes).elementsEqual(
          head[textByteCount + block * 32..<textByteCount + block * 32 + 32])
      else { return nil }
      let wanted = max(offset, start) - start..<min(end, start + bytes.count) - start
      if payload.isEmpty, wanted == bytes.indices { payload = bytes } else { payload += bytes[wanted] }
    }
    return payload
  }

  private static func text(of key: EntryKey, _ file: EntryFile, _ count: Int) -> [UInt8] {
    let text = Array("reel.cache.1 \(key.name) \(file.name) \(count)\n".utf8)
    return text + [UInt8](repeating: 0, count: textByteCount - text.count)
  }
}

extension UInt64 {
  /// Reads hexadecimal digits as `digits` writes them.
  fileprivate init?(digits: some Sequence<UInt8>) {
    self = 0
    for digit in digits {
      // Capitals lack this bit.
      guard digit & 0x20 != 0, let value = digit.hexDigitValue else { return nil }
      self = self << 4 | UInt64(value)
    }
  }

  /// 16 hexadecimal digits, with lower-case letters.
  var digits: String {
    let digits = String(self, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
