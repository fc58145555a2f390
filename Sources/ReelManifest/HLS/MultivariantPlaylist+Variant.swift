public import ReelCore

extension MultivariantPlaylist {
  /// EXT-X-STREAM-INF or EXT-X-I-FRAME-STREAM-INF (RFC 8216 §4.3.4.2, §4.3.4.3).
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
    /// SCORE.
    public var score: String?
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

    init(_ attributes: AttributeList, reference: String, line: Int) {
      self.reference = reference
      self.line = line
      bandwidth = attributes.integer("BANDWIDTH").flatMap { $0 > 0 ? $0 : nil }
      averageBandwidth = attributes.integer("AVERAGE-BANDWIDTH").flatMap { $0 > 0 ? $0 : nil }
      codecs = attributes.list("CODECS")
      supplementalCodecs = attributes.list("SUPPLEMENTAL-CODECS")
      resolution = attributes["RESOLUTION"].flatMap { PixelSize(resolution: $0) }
      frameRate = attributes["FRAME-RATE"].flatMap { Rational(frameRate: $0) }
      hdcpLevel = attributes["HDCP-LEVEL"]
      videoRange = attributes["VIDEO-RANGE"]
      score = attributes["SCORE"]
      audioGroup = attributes["AUDIO"]
      videoGroup = attributes["VIDEO"]
      subtitlesGroup = attributes["SUBTITLES"]
      closedCaptionsGroup = attributes["CLOSED-CAPTIONS"]
      pathwayID = attributes["PATHWAY-ID"]
      name = attributes["NAME"]
      stableID = attributes["STABLE-VARIANT-ID"]
    }

    /// True where CODECS names sound and nothing else, and nothing else speaks of pictures.
    var isAudioOnly: Bool {
      resolution == nil && frameRate == nil && !codecs.isEmpty
        && codecs.allSatisfy { CodecFamily($0) == .audio }
    }
  }
}
