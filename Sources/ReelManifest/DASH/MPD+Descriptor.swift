import ReelCore

extension MPD {
  /// A descriptor (ISO/IEC 23009-1 §5.8.2): a role, a property, a content protection and the like.
  public struct Descriptor: Sendable, Hashable {
    /// @schemeIdUri.
    public var scheme: String
    /// @value.
    public var value: String?
    /// @id.
    public var id: String?

    init(_ reader: inout MPDReader) throws(ReelError) {
      scheme = reader.xml.string("schemeIdUri") ?? ""
      value = reader.xml.string("value")
      id = reader.xml.string("id")
      try reader.xml.skip()
    }
  }
}
