public import ReelCore

extension MultivariantPlaylist {
  /// EXT-X-STREAM-INF or EXT-X-I-FRAME-STREAM-INF (RFC 8216 §4.3.4.2, §4.3.4.3). Also has what is not used by itself:
  /// `VariantLadder` compares variants to find redundant ones.
  public struct Variant: Sendable, Hashable {
    /// The line after the tag, or URI.
    public var reference: String
    /// BANDWIDTH, in bits per second.
    public var bandwidth: Int?
    /// AVERAGE-BANDWIDTH, in bits per second.
    public var averageBandwidth: Int?
    /// CODECS.
    public var codecs: [String]
    /// SUPPLEMENTAL-CODECS.
    public var supplementalCodecs: [String]
    /// RESOLUTION.
    public var resolution: PixelSize?
    /// FRAME-RATE.
    public var frameRate: Rational?
    /// HDCP-LEVEL.
    public var hdcpLevel: String?
    /// VIDEO-RANGE.
    public var videoRange: String?
    /// ALLOWED-CPC: the classes of content protection that a device must have, by KEYFORMAT.
    public var allowedProtection: String?
    /// REQ-VIDEO-LAYOUT, as the playlist writes it.
    public var requiredVideoLayout: String?
    /// SCORE: how much the variant is to be preferred.
    public var score: Double?
    /// AUDIO: the GROUP-ID of its audio renditions.
    public var audioGroup: String?
    /// VIDEO: the GROUP-ID of its video renditions.
    public var videoGroup: String?
    /// SUBTITLES: the GROUP-ID of its subtitles.
    public var subtitlesGroup: String?
    /// CLOSED-CAPTIONS: the GROUP-ID of its closed captions, or `NONE`.
    public var closedCaptionsGroup: String?
    /// PATHWAY-ID.
    public var pathwayID: String?
    /// NAME.
    public var name: String?
    /// STABLE-VARIANT-ID.
    public var stableID: String?
    /// The line of the tag.
    public var line: Int

    init(_ reader: inout AttributeReader, reference: String, line: Int) {
      self.reference = reference
      self.line = line
      bandwidth = reader.integer("BANDWIDTH", in: 1...Int64.max)
      averageBandwidth = reader.integer("AVERAGE-BANDWIDTH", in: 1...Int64.max)
      codecs = reader.attributes.list("CODECS")
      supplementalCodecs = reader.attributes.list("SUPPLEMENTAL-CODECS")
      resolution = reader.value("RESOLUTION") { PixelSize(resolution: $0) }
      frameRate = reader.value("FRAME-RATE") { Rational(frameRate: $0) }
      hdcpLevel = reader["HDCP-LEVEL"]
      videoRange = reader["VIDEO-RANGE"]
      allowedProtection = reader["ALLOWED-CPC"]
      requiredVideoLayout = reader["REQ-VIDEO-LAYOUT"]
      score = reader.value("SCORE") { Double($0).flatMap { $0.isFinite && $0 >= 0 ? $0 : nil } }
      audioGroup = reader["AUDIO"]
      videoGroup = reader["VIDEO"]
      subtitlesGroup = reader["SUBTITLES"]
      closedCaptionsGroup = reader["CLOSED-CAPTIONS"]
      pathwayID = reader["PATHWAY-ID"]
      name = reader["NAME"]
      stableID = reader["STABLE-VARIANT-ID"]
    }

    /// True where CODECS names sound and nothing else, and nothing else speaks of frames.
    var isAudioOnly: Bool {
      resolution == nil && frameRate == nil && !codecs.isEmpty
        && codecs.allSatisfy { CodecFamily($0) == .audio }
    }
  }
}
