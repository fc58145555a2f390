import Foundation
import ReelCore
import ReelManifest

/// A segment as JSON.
struct SegmentRecord: Encodable {
  let number: Int64
  let url: String
  let byteOffset: Int64?
  let byteLength: Int64?
  let start: Double
  let duration: Double
  /// An index into the rung's list of them.
  let initialization: Int?
  let encryption: EncryptionRecord?
  let discontinuity: Int
  let gap: Bool?
  let programDateTime: String?
  let alternateUrls: [String]?

  /// Segments of a live rung that are printed at a time.
  static let liveLimit = 10_000

  /// About as many as its text has.
  var byteCount: Int {
    100 + url.utf8.count + (encryption?.keyUrl?.utf8.count ?? 0)
      + (alternateUrls ?? []).reduce(0) { $0 + $1.utf8.count }
  }

  init(_ segment: SegmentReference, initialization: Int?) {
    number = segment.number
    url = segment.url.absoluteString
    byteOffset = segment.byteRange?.offset
    byteLength = segment.byteRange?.length
    start = segment.start.seconds
    duration = segment.duration.seconds
    self.initialization = initialization
    encryption = segment.encryption.map(EncryptionRecord.init)
    discontinuity = segment.discontinuity
    gap = segment.isGap ? true : nil
    programDateTime = segment.programDateTime?.description
    alternateUrls = segment.alternateURLs.isEmpty ? nil : segment.alternateURLs.map(\.absoluteString)
  }
}

/// How a segment is encrypted, as JSON.
struct EncryptionRecord: Encodable {
  let method: String
  let keyUrl: String?
  let keyFormat: String?
  let iv: String?

  init(_ encryption: SegmentEncryption) {
    method = encryption.method
    keyUrl = encryption.keyURL?.absoluteString
    keyFormat = encryption.keyFormat
    iv = encryption.initializationVector.map { bytes in
      "0x" + bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
  }
}
