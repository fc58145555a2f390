extension MediaPlaylist {
  /// EXT-X-PRELOAD-HINT (draft-pantos-hls-rfc8216bis §4.4.5.3): what will be needed next.
  public struct PreloadHint: Sendable, Hashable {
    /// TYPE.
    public enum ResourceType: String, Sendable {
      case part = "PART"
      case map = "MAP"
    }

    /// TYPE.
    public var type: ResourceType
    /// URI.
    public var reference: String
    /// BYTERANGE-START; 0 where it has none.
    public var byteOffset: Int64
    /// BYTERANGE-LENGTH; nil for up to the end.
    public var byteCount: Int64?

    /// Nil where TYPE or URI is missing or unknown.
    init?(_ reader: inout AttributeReader) {
      let type = reader.value("TYPE") { ResourceType(rawValue: $0.uppercased()) }
      guard let type, let reference = reader["URI"] else { return nil }
      self.type = type
      self.reference = reference
      byteOffset = reader.integer("BYTERANGE-START", in: 0...Int64.max).map(Int64.init) ?? 0
      byteCount = reader.integer("BYTERANGE-LENGTH", in: 0...Int64.max).map(Int64.init)
    }
  }
}
