package import ReelCore

extension MultivariantPlaylist {
  /// EXT-X-STREAM-INF or EXT-X-I-FRAME-STREAM-INF (RFC 8216 §4.3.4.2, §4.3.4.3). Includes fields that are only
  /// compared, by `VariantLadder`, to find redundant variants.
  package struct Variant: Sendable, Hashable {
    /// The line after the tag, or URI.
    package var reference: String
    /// BANDWIDTH, in bits per second.
    package var bandwidth: Int?
    /// AVERAGE-BANDWIDTH, in bits per second.
    package var averageBandwidth: Int?
    /// CODECS.
    package var codecs: [String]
    /// SUPPLEMENTAL-CODECS.
    package var supplementalCodecs: [String]
    /// RESOLUTION.
    package var resolution: PixelSize?
    /// FRAME-RATE.
    package var frameRate: Rational?
    /// HDCP-LEVEL.
    package var hdcpLevel: String?
    /// VIDEO-RANGE.
    package var videoRange: String?
    /// ALLOWED-CPC: the classes of content protection that a device must have, by KEYFORMAT.
    package var allowedProtection: String?
    /// REQ-VIDEO-LAYOUT, as the playlist writes it.
    package var requiredVideoLayout: String?
    /// SCORE: the preference for the variant.
    package var score: Double?
    /// AUDIO: the GROUP-ID of its audio renditions.
    package var audioGroup: String?
    /// VIDEO: the GROUP-ID of its video renditions.
    package var videoGroup: String?
    /// SUBTITLES: the GROUP-ID of its subtitles.
    package var subtitlesGroup: String?
    /// CLOSED-CAPTIONS: the GROUP-ID of its closed captions, or `NONE`.
    package var closedCaptionsGroup: String?
    /// PATHWAY-ID.
    package var pathwayID: String?
    /// NAME.
    package var name: String?
    /// STABLE-VARIANT-ID.
    package var stableID: String?
    /// The line of the tag.
    package var line: Int

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

    /// True if CODECS names only audio, and no other attribute indicates video.
    var isAudioOnly: Bool {
      resolution == nil && frameRate == nil && !codecs.isEmpty
        && codecs.allSatisfy { CodecFamily($0) == .audio }
    }
  }
}
