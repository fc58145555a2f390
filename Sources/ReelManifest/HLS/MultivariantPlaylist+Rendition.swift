import ReelCore

extension MultivariantPlaylist {
  /// EXT-X-MEDIA (RFC 8216 §4.3.4.1).
  public struct Rendition: Sendable, Hashable {
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
    /// ASSOC-LANGUAGE.
    public var associatedLanguage: String?
    /// DEFAULT.
    public var isDefault: Bool
    /// AUTOSELECT.
    public var isAutoselect: Bool
    /// FORCED.
    public var isForced: Bool
    /// INSTREAM-ID.
    public var instreamID: String?
    /// CHARACTERISTICS.
    public var characteristics: [String]
    /// CHANNELS.
    public var channels: String?
    /// BIT-DEPTH, in bits a sample.
    public var bitDepth: Int?
    /// SAMPLE-RATE, in Hz.
    public var sampleRate: Int?
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
      associatedLanguage = attributes["ASSOC-LANGUAGE"]
      isDefault = attributes.flag("DEFAULT")
      isAutoselect = attributes.flag("AUTOSELECT")
      isForced = attributes.flag("FORCED")
      instreamID = attributes["INSTREAM-ID"]
      characteristics = attributes.list("CHARACTERISTICS")
      channels = attributes["CHANNELS"]
      bitDepth = reader.integer("BIT-DEPTH", in: 1...Int64.max)
      sampleRate = reader.integer("SAMPLE-RATE", in: 1...Int64.max)
      stableID = attributes["STABLE-RENDITION-ID"]
    }
  }
}
