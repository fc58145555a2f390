import ReelCore

extension MultivariantPlaylist {
  /// EXT-X-MEDIA (RFC 8216 §4.3.4.1).
  package struct Rendition: Sendable {
    /// TYPE.
    package enum MediaType: String, Sendable {
      case audio = "AUDIO"
      case video = "VIDEO"
      case subtitles = "SUBTITLES"
      case closedCaptions = "CLOSED-CAPTIONS"
    }

    /// TYPE.
    package var type: MediaType
    /// GROUP-ID.
    package var groupID: String
    /// NAME.
    package var name: String?
    /// URI; nil if the rendition is part of the variant's own segments.
    package var reference: String?
    /// LANGUAGE.
    package var language: String?
    /// DEFAULT.
    package var isDefault: Bool
    /// FORCED.
    package var isForced: Bool
    /// CHARACTERISTICS.
    package var characteristics: [String]
    /// CHANNELS.
    package var channels: String?
    /// STABLE-RENDITION-ID.
    package var stableID: String?
    /// The line of the tag.
    package var line: Int

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
