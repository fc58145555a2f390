/// The header of an element of EBML, the format of Matroska and WebM files: its id and the size of its
/// content (RFC 8794 §4 to §6).
package struct EBMLHeader: Sendable, Hashable {
  /// The ids of elements that Reel reads by itself (RFC 9559 §5.1), with their length markers.
  package enum ID {
    package static let ebml: UInt64 = 0x1a45_dfa3
    package static let segment: UInt64 = 0x1853_8067
    package static let info: UInt64 = 0x1549_a966
    package static let timestampScale: UInt64 = 0x2a_d7b1
    package static let duration: UInt64 = 0x4489
    package static let tracks: UInt64 = 0x1654_ae6b
    package static let cluster: UInt64 = 0x1f43_b675
    package static let cues: UInt64 = 0x1c53_bb6b
    package static let cuePoint: UInt64 = 0xbb
    package static let cueTime: UInt64 = 0xb3
    package static let cueTrackPositions: UInt64 = 0xb7
    package static let cueTrack: UInt64 = 0xf7
    package static let cueClusterPosition: UInt64 = 0xf1
  }

  package let id: UInt64
  package let headerByteCount: Int
  /// As written, and so possibly wrong; nil if it is unknown.
  package let contentByteCount: Int64?

  /// Reads the header at the start of `bytes`; nil if it is not complete.
  package init?(_ bytes: ArraySlice<UInt8>) {
    guard let id = Self.number(in: bytes), let size = Self.number(in: bytes.dropFirst(id.byteCount)) else {
      return nil
    }
    self.id = id.value
    headerByteCount = id.byteCount + size.byteCount
    let marker: UInt64 = 1 << (7 * size.byteCount)
    contentByteCount = size.value - marker == marker - 1 ? nil : Int64(size.value - marker)
  }

  /// Returns the elements in `bytes`, each with the available part of its content. A last element that is cut
  /// off is included; one with an unknown size extends to the end.
  package static func elements(of bytes: ArraySlice<UInt8>) -> [(
    header: EBMLHeader, content: ArraySlice<UInt8>
  )] {
    var elements: [(header: EBMLHeader, content: ArraySlice<UInt8>)] = []
    var rest = bytes
    while let header = EBMLHeader(rest) {
      let content = rest.dropFirst(header.headerByteCount)
      let part = content.prefix(Int(clamping: header.contentByteCount ?? .max))
      elements.append((header, part))
      rest = content.dropFirst(part.count)
    }
    return elements
  }

  // MARK: - Private

  /// Reads a number of variable length, with its length marker.
  private static func number(in bytes: ArraySlice<UInt8>) -> (value: UInt64, byteCount: Int)? {
    guard let first = bytes.first else { return nil }
    let count = first.leadingZeroBitCount + 1
    guard count <= 8, bytes.count >= count else { return nil }
    return (bytes.prefix(count).bigEndianNumber, count)
  }
}
