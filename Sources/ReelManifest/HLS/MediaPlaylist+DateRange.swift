public import ReelCore

extension MediaPlaylist {
  /// EXT-X-DATERANGE (RFC 8216 §4.3.2.7): a stretch of the wall clock and what belongs to it.
  public struct DateRange: Sendable, Hashable {
    /// ID.
    public var id: String
    /// CLASS.
    public var rangeClass: String?
    /// START-DATE; nil where another tag of the same ID states it.
    public var start: WallTime?
    /// CUE: `PRE`, `POST`, `ONCE` (draft-pantos-hls-rfc8216bis §4.4.5.1).
    public var cues: [String]
    /// END-DATE.
    public var end: WallTime?
    /// DURATION.
    public var duration: MediaTime?
    /// PLANNED-DURATION.
    public var plannedDuration: MediaTime?
    /// END-ON-NEXT: it ends where the next one of its class begins.
    public var endsOnNext: Bool
    /// SCTE35-CMD, as the playlist writes it.
    public var spliceCommand: String?
    /// SCTE35-OUT, as the playlist writes it.
    public var spliceOut: String?
    /// SCTE35-IN, as the playlist writes it.
    public var spliceIn: String?
    /// The attributes whose names begin with `X-`, in order.
    public var clientAttributes: [AttributeList.Attribute]
    /// The line of the tag.
    public var line: Int

    /// Nil where ID is missing.
    init?(_ reader: inout AttributeReader, line: Int) {
      guard let id = reader["ID"] else { return nil }
      self.id = id
      self.line = line
      rangeClass = reader["CLASS"]
      start = reader.value("START-DATE") { WallTime(iso8601: $0) }
      cues = reader.attributes.list("CUE")
      end = reader.value("END-DATE") { WallTime(iso8601: $0) }
      duration = reader.length("DURATION")
      plannedDuration = reader.length("PLANNED-DURATION")
      endsOnNext = reader.attributes.flag("END-ON-NEXT")
      spliceCommand = reader["SCTE35-CMD"]
      spliceOut = reader["SCTE35-OUT"]
      spliceIn = reader["SCTE35-IN"]
      clientAttributes = reader.attributes.attributes.filter { $0.name.hasPrefix("X-") }
    }
  }
}
