import Foundation
import ReelCore
import ReelManifest

/// A segment as JSON. Because there may be very many, they are written one by one (`PrintedSegments.print`).
struct SegmentRecord {
  private let segment: SegmentReference
  /// The index in the rung's list of initializations.
  private let initialization: Int?
  private let url: String
  private let alternateURLs: [String]
  private let encryption: EncryptionRecord?

  /// The number of segments printed for a live rung.
  static let liveLimit = 10_000

  init(_ segment: SegmentReference, initialization: Int?) {
    self.segment = segment
    self.initialization = initialization
    url = segment.url.absoluteString
    alternateURLs = segment.alternateURLs.map(\.absoluteString)
    encryption = segment.encryption.map(EncryptionRecord.init)
  }

  /// About the length of its text.
  var byteCount: Int {
    100 + url.utf8.count + (encryption?.keyUrl?.utf8.count ?? 0)
      + alternateURLs.reduce(0) { $0 + $1.utf8.count }
  }

  /// Writes the record as `JSONLine` would: keys in snake_case and alphabetical order, without keys that have no
  /// value.
  func write(to text: inout JSONText) {
    text.object { text in
      if !alternateURLs.isEmpty { text.field("alternate_urls", alternateURLs) }
      text.field("byte_length", segment.byteRange?.length)
      text.field("byte_offset", segment.byteRange?.offset)
      text.field("discontinuity", Int64(segment.discontinuity))
      text.field("duration", segment.duration.seconds)
      if let encryption {
        text.key("encryption")
        encryption.write(to: &text)
      }
      if segment.isGap { text.field("gap", true) }
      text.field("initialization", initialization.map(Int64.init))
      text.field("number", segment.number)
      text.field("program_date_time", segment.programDateTime?.description)
      text.field("start", segment.start.seconds)
      text.field("url", url)
    }
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
    // A data: URL contains the key itself.
    keyUrl = encryption.keyURL.map { $0.scheme?.lowercased() == "data" ? "data:" : $0.absoluteString }
    keyFormat = encryption.keyFormat
    iv = encryption.initializationVector.map { bytes in
      "0x" + bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
  }

  fileprivate func write(to text: inout JSONText) {
    text.object { text in
      text.field("iv", iv)
      text.field("key_format", keyFormat)
      text.field("key_url", keyUrl)
      text.field("method", method)
    }
  }
}
