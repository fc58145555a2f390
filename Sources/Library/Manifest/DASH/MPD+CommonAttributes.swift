package import ReelCore

extension MPD {
  /// The attributes and elements common to AdaptationSet, Representation and SubRepresentation (ISO/IEC 23009-1
  /// §5.3.7).
  package struct CommonAttributes: Sendable {
    /// @mimeType.
    package var mimeType: String?
    /// @codecs.
    package var codecs: [String] = []
    /// @width, in pixels.
    package var width: Int64?
    /// @height, in pixels.
    package var height: Int64?
    /// @sar.
    package var sampleAspectRatio: Rational?
    /// @frameRate.
    package var frameRate: Rational?
    /// @startWithSAP.
    package var startWithSAP: String?
    /// AudioChannelConfiguration elements (§5.8.5.4).
    package var audioChannelConfigurations: [Descriptor] = []
    /// ContentProtection elements (§5.8.4.1).
    package var contentProtections: [Descriptor] = []
    /// EssentialProperty elements (§5.8.4.8).
    package var essentialProperties: [Descriptor] = []
    /// SupplementalProperty elements (§5.8.4.9).
    package var supplementalProperties: [Descriptor] = []

    /// Reads the attributes of the start tag.
    init(_ reader: inout MPDReader) {
      mimeType = reader.xml.string("mimeType")?.lowercased()
      codecs =
        reader.xml.string("codecs").map { text in
          text.split(separator: ",").prefix(64).map { String($0).trimmed }.filter { !$0.isEmpty }
        } ?? []
      width = reader.xml.positive("width")
      height = reader.xml.positive("height")
      sampleAspectRatio = reader.xml.value("sar", "a ratio") { Rational(ratio: $0, separator: ":") }
      frameRate = reader.xml.value("frameRate", "a frame rate") { Rational(frameRate: $0) }
      startWithSAP = reader.xml.string("startWithSAP")
    }

    /// Reads and consumes the child element at the reader's position; false for any other element.
    mutating func read(_ child: String, _ reader: inout MPDReader) throws(ReelError) -> Bool {
      switch child {
      case "AudioChannelConfiguration": audioChannelConfigurations.append(try Descriptor(&reader))
      case "ContentProtection": contentProtections.append(try Descriptor(&reader))
      case "EssentialProperty": essentialProperties.append(try Descriptor(&reader))
      case "SupplementalProperty": supplementalProperties.append(try Descriptor(&reader))
      case "ProducerReferenceTime": try reader.checkProducerReferenceTime()
      default: return false
      }
      return true
    }

    /// These attributes, completed with those of the enclosing element (§5.3.7.1).
    func inheriting(from parent: CommonAttributes) -> CommonAttributes {
      var merged = self
      merged.mimeType = mimeType ?? parent.mimeType
      merged.codecs = codecs.isEmpty ? parent.codecs : codecs
      merged.width = width ?? parent.width
      merged.height = height ?? parent.height
      merged.sampleAspectRatio = sampleAspectRatio ?? parent.sampleAspectRatio
      merged.frameRate = frameRate ?? parent.frameRate
      merged.startWithSAP = startWithSAP ?? parent.startWithSAP
      if audioChannelConfigurations.isEmpty {
        merged.audioChannelConfigurations = parent.audioChannelConfigurations
      }
      if supplementalProperties.isEmpty { merged.supplementalProperties = parent.supplementalProperties }
      if essentialProperties.isEmpty { merged.essentialProperties = parent.essentialProperties }
      if contentProtections.isEmpty { merged.contentProtections = parent.contentProtections }
      return merged
    }
  }
}
