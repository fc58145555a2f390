extension MultivariantPlaylist {
  /// EXT-X-SESSION-DATA (RFC 8216 §4.3.4.4): something that the server tells of the whole session.
  public struct SessionData: Sendable, Hashable {
    /// DATA-ID.
    public var id: String
    /// VALUE.
    public var value: String?
    /// URI: where the value is to be had.
    public var reference: String?
    /// FORMAT of what the URI leads to: `JSON` unless told, or `RAW` (draft-pantos-hls-rfc8216bis §4.4.6.4).
    public var format: String
    /// LANGUAGE.
    public var language: String?
    /// The line of the tag.
    public var line: Int

    /// Nil where DATA-ID is missing.
    init?(_ attributes: AttributeList, line: Int) {
      guard let id = attributes["DATA-ID"] else { return nil }
      self.id = id
      self.line = line
      value = attributes["VALUE"]
      reference = attributes["URI"]
      format = attributes["FORMAT"]?.uppercased() ?? "JSON"
      language = attributes["LANGUAGE"]
    }
  }
}
