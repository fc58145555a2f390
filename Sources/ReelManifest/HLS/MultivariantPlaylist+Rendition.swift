import ReelCore

extension MultivariantPlaylist {
  /// EXT-X-MEDIA (RFC 8216 §4.3.4.1).
  public struct Rendition: Sendable {
    /// TYPE.
    public enum MediaType: String, Sendable {
      case audio = "AUDIO"
      case video = "VIDEO"
      case subtitles = "SUBTITLES"
      case closedCaptions = "CLOSED-CAPTIONS"
    }

    /// TYPE.
    public var type: MediaType
    /// GROUP-ID.
    public var groupID: String
    /// NAME.
    public var name: String?
    /// URI; nil where the rendition is part of the variant's own segments.
    public var reference: String?
    /// LANGUAGE.
    public var language: String?
    /// DEFAULT.
    public var isDefault: Bool
    /// FORCED.
    public var isForced: Bool
    /// CHARACTERISTICS.
    public var characteristics: [String]
    /// CHANNELS.
    public var channels: String?
    /// STABLE-RENDITION-ID.
    public var stableID: String?
    /// The line of the tag.
    public var line: Int

    init(_ reader: inout AttributeReader, line: Int) throws(ReelError) {
      let attributes = reader.attributes
      let place = ReelError.Place.line(line)
      guard let type = attributes["TYPE"].flatMap({ MediaType(rawValue: $0.uppercased()) }) else {
        throw ReelError(
          .badManifest, "EXT-X-MEDIA of the TYPE '\((attributes["TYPE"] ?? "").excerpt)'", place: place)
      }
      guard let groupID = attributes["GROUP-ID"] else {
        throw ReelError(.badManifest, "EXT-X-MEDIA without GROUP-ID", place: place)
      }
      self.type = type
      self.groupID = groupID
      self.line = line
      name = attributes["NAME"]
      reference = attributes["URI"]
      language = attributes["LANGUAGE"]
      isDefault = attributes.flag("DEFAULT")
      isForced = attributes.flag("FORCED")
      characteristics = attributes.list("CHARACTERISTICS")
      channels = attributes["CHANNELS"]
      stableID = attributes["STABLE-RENDITION-ID"]
      for name in ["BIT-DEPTH", "SAMPLE-RATE"] { reader.checkInteger(name, in: 1...Int64.max) }
    }
  }
}
