package import ReelCore

extension MPD {
  /// A descriptor (ISO/IEC 23009-1 §5.8.2): a role, a property, a content protection and the like.
  package struct Descriptor: Sendable {
    /// @schemeIdUri.
    package var scheme: String
    /// @value.
    package var value: String?
    /// @ref of a ContentProtection: the @refId of the one that it stands for (§5.8.4.1).
    package var reference: String?
    /// @refId of a ContentProtection, which others may refer to.
    package var referenceID: String?
    /// The key ids in @cenc:default_KID of a ContentProtection (ISO/IEC 23001-7 §11.2).
    package var keyIDs: [KeyID] = []

    init(_ reader: inout MPDReader) throws(ReelError) {
      scheme = reader.xml.string("schemeIdUri") ?? ""
      value = reader.xml.string("value")
      reference = reader.xml.string("ref")
      referenceID = reader.xml.string("refId")
      keyIDs =
        reader.xml.string(anyPrefix: "default_KID")?.split(whereSeparator: \.isWhitespace).prefix(64)
        .compactMap { KeyID($0) } ?? []
      try reader.xml.skip()
    }
  }
}
