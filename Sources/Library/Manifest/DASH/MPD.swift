import Foundation
package import ReelCore

/// A Media Presentation Description (ISO/IEC 23009-1 §5.3.1.2) as written: inherited values are not filled in.
package struct MPD: Sendable {
  /// @type (ISO/IEC 23009-1 §5.3.1.2).
  package enum PresentationType: String, Sendable {
    case `static`
    case dynamic
  }

  /// @profiles.
  package var profiles: [String] = []
  /// @type.
  package var type = PresentationType.static
  /// @availabilityStartTime, as it is written.
  package var availabilityStartTime: String?
  /// @availabilityEndTime, as it is written.
  package var availabilityEndTime: String?
  /// @publishTime, as it is written.
  package var publishTime: String?
  /// @mediaPresentationDuration.
  package var mediaPresentationDuration: MediaTime?
  /// @minimumUpdatePeriod.
  package var minimumUpdatePeriod: MediaTime?
  /// @minBufferTime.
  package var minBufferTime: MediaTime?
  /// @timeShiftBufferDepth.
  package var timeShiftBufferDepth: MediaTime?
  /// @suggestedPresentationDelay.
  package var suggestedPresentationDelay: MediaTime?
  /// @maxSegmentDuration.
  package var maxSegmentDuration: MediaTime?
  /// BaseURL elements (§5.6), in order.
  package var baseURLs: [BaseURL] = []
  /// Location elements.
  package var locations: [String] = []
  /// @target of the first Latency element that states one, of the ServiceDescription elements (§K.4.2.2): how
  /// far behind the live edge to play.
  package var latencyTarget: MediaTime?
  /// UTCTiming elements (§5.8.5.7).
  package var utcTimings: [Descriptor] = []
  /// EssentialProperty elements.
  package var essentialProperties: [Descriptor] = []
  /// ContentProtection elements, which those of adaptation sets may refer to.
  package var contentProtections: [Protection] = []
  /// Period elements, in order (§5.3.2).
  package var periods: [Period] = []
  /// Invalid text that was ignored.
  package var warnings: [ReelError] = []
  /// The first warning about an invalid length or start.
  var malformedLength: ReelError?

  /// Reads an MPD. Throws `badManifest` with line and column.
  package init(_ bytes: [UInt8], limits: ManifestLimits = ManifestLimits()) throws(ReelError) {
    try limits.check(bytes)
    var reader = XMLReader(bytes, limits: limits)
    try reader.root()
    guard reader.name == "MPD" else {
      let name = reader.name
      let what = name.lowercased() == "html" ? "it is an HTML page" : "its root element is <\(name.excerpt)>"
      throw reader.error("not an MPD: \(what)")
    }
    try read(&reader)
    warnings = reader.warnings.warnings
    malformedLength =
      reader.malformedLengths.first {
        ["mediaPresentationDuration", "duration", "start"].contains($0.attribute)
      }?.warning
  }

  // MARK: - Private

  private mutating func read(_ reader: inout XMLReader) throws(ReelError) {
    profiles = reader.string("profiles").map { $0.split(separator: ",").map { String($0).trimmed } } ?? []
    if let text = reader.string("type") {
      if let type = PresentationType(rawValue: text.lowercased()) {
        self.type = type
      } else {
        reader.warn("@type '\(text.excerpt)' is neither static nor dynamic: treated as static")
      }
    }
    availabilityStartTime = reader.string("availabilityStartTime")
    availabilityEndTime = reader.string("availabilityEndTime")
    publishTime = reader.string("publishTime")
    mediaPresentationDuration = reader.duration("mediaPresentationDuration")
    // If the attribute is present, the MPD has to be reloaded, even if its value can't be read.
    minimumUpdatePeriod = reader.duration("minimumUpdatePeriod", fallback: .zero)
    minBufferTime = reader.duration("minBufferTime")
    timeShiftBufferDepth = reader.duration("timeShiftBufferDepth")
    suggestedPresentationDelay = reader.duration("suggestedPresentationDelay")
    maxSegmentDuration = reader.duration("maxSegmentDuration")
    while let child = try reader.nextChild() {
      switch child {
      case "BaseURL": baseURLs.append(try BaseURL(&reader))
      case "Location": locations.append(try reader.text())
      case "PatchLocation": try reader.checkPatchLocation()
      case "ServiceDescription":
        let target = try reader.latencyTarget()
        latencyTarget = latencyTarget ?? target
      case "UTCTiming": utcTimings.append(try Descriptor(&reader))
      case "EssentialProperty": essentialProperties.append(try Descriptor(&reader))
      case "ContentProtection": contentProtections.append(try Protection(&reader))
      case "Period": periods.append(try Period(&reader))
      default: try reader.skip()
      }
    }
  }
}

extension MPD {
  /// Period (ISO/IEC 23009-1 §5.3.2).
  package struct Period: Sendable {
    /// @id.
    package var id: String?
    /// @start.
    package var start: MediaTime?
    /// @duration.
    package var duration: MediaTime?
    /// @xlink:href: the location of the element's content (§5.5).
    package var href: String?
    /// BaseURL elements (§5.6), in order.
    package var baseURLs: [BaseURL] = []
    /// SegmentBase, SegmentList or SegmentTemplate (§5.3.9).
    package var segments = SegmentInformation()
    /// AdaptationSet elements, in order (§5.3.3).
    package var adaptationSets: [AdaptationSet] = []
    /// EssentialProperty elements.
    package var essentialProperties: [Descriptor] = []
    /// ContentProtection elements, which those of adaptation sets may refer to.
    package var contentProtections: [Protection] = []

    init(_ reader: inout XMLReader) throws(ReelError) {
      try reader.countTrack()
      id = reader.string("id")
      start = reader.duration("start")
      duration = reader.duration("duration")
      href = reader.string(anyPrefix: "href")
      while let child = try reader.nextChild() {
        switch child {
        case "BaseURL": baseURLs.append(try BaseURL(&reader))
        case "AdaptationSet": adaptationSets.append(try AdaptationSet(&reader))
        case "EventStream": try reader.checkEventStream()
        case "ServiceDescription": _ = try reader.latencyTarget()
        case "EssentialProperty": essentialProperties.append(try Descriptor(&reader))
        case "ContentProtection": contentProtections.append(try Protection(&reader))
        default:
          if try !segments.read(child, &reader) { try reader.skip() }
        }
      }
    }
  }
}

extension MPD {
  /// AdaptationSet (ISO/IEC 23009-1 §5.3.3).
  package struct AdaptationSet: Sendable {
    /// @id.
    package var id: String?
    /// @lang.
    package var language: String?
    /// @contentType, or the type of its ContentComponent elements if they agree, or if one is video.
    package var contentType: String?
    /// True if a ContentComponent is audio (§5.3.4).
    package var hasAudioComponent = false
    /// @segmentAlignment: true if the segments of all Representations begin at the same times (§5.3.3.2).
    package var hasAlignedSegments: Bool
    /// @xlink:href: the location of the element's content (§5.5).
    package var href: String?
    /// Inherited by Representations.
    package var common: CommonAttributes
    /// Role elements (§5.8.4.2).
    package var roles: [Descriptor] = []
    /// The first Label (§5.3.10).
    package var label: String?
    /// BaseURL elements (§5.6), in order.
    package var baseURLs: [BaseURL] = []
    /// SegmentBase, SegmentList or SegmentTemplate (§5.3.9).
    package var segments = SegmentInformation()
    /// Representation elements, in order (§5.3.5).
    package var representations: [Representation] = []

    init(_ reader: inout XMLReader) throws(ReelError) {
      try reader.countTrack()
      id = reader.string("id")
      language = reader.string("lang")
      contentType = reader.string("contentType")?.lowercased()
      reader.checkWhole("selectionPriority")
      hasAlignedSegments = ["true", "1"].contains(reader.string("segmentAlignment"))
      href = reader.string(anyPrefix: "href")
      common = CommonAttributes(&reader)
      while let child = try reader.nextChild() {
        switch child {
        case "Role": roles.append(try Descriptor(&reader))
        case "Label":
          let text = try reader.text()
          if label == nil, !text.isEmpty { label = text }
        case "BaseURL": baseURLs.append(try BaseURL(&reader))
        case "ContentComponent": try readContentComponent(&reader)
        case "Representation": representations.append(try Representation(&reader))
        default:
          if try common.read(child, &reader) { continue }
          if try segments.read(child, &reader) { continue }
          try reader.skip()
        }
      }
    }

    // MARK: - Private

    private mutating func readContentComponent(_ reader: inout XMLReader) throws(ReelError) {
      let type = reader.string("contentType")?.lowercased()
      language = language ?? reader.string("lang")
      hasAudioComponent = hasAudioComponent || type == "audio"
      if contentType == nil || type == "video" { contentType = type ?? contentType }
      try reader.skip()
    }
  }
}

extension MPD {
  /// Representation (ISO/IEC 23009-1 §5.3.5).
  package struct Representation: Sendable {
    /// @id.
    package var id: String?
    /// @bandwidth, in bits per second.
    package var bandwidth: Int64?
    /// @dependencyId: the Representations that this one can't be decoded without.
    package var dependencyID: String?
    /// Its own attributes.
    package var common: CommonAttributes
    /// BaseURL elements (§5.6), in order.
    package var baseURLs: [BaseURL] = []
    /// SegmentBase, SegmentList or SegmentTemplate (§5.3.9).
    package var segments = SegmentInformation()

    init(_ reader: inout XMLReader) throws(ReelError) {
      try reader.countTrack()
      id = reader.string("id")
      bandwidth = reader.positive("bandwidth")
      reader.checkWhole("qualityRanking")
      dependencyID = reader.string("dependencyId")
      common = CommonAttributes(&reader)
      while let child = try reader.nextChild() {
        if child == "BaseURL" {
          baseURLs.append(try BaseURL(&reader))
          continue
        }
        if try common.read(child, &reader) { continue }
        if try segments.read(child, &reader) { continue }
        try reader.skip()
      }
    }
  }
}

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
    package var contentProtections: [Protection] = []
    /// EssentialProperty elements (§5.8.4.8).
    package var essentialProperties: [Descriptor] = []
    /// SupplementalProperty elements (§5.8.4.9).
    package var supplementalProperties: [Descriptor] = []

    /// Reads the attributes of the start tag.
    init(_ reader: inout XMLReader) {
      mimeType = reader.string("mimeType")?.lowercased()
      codecs =
        reader.string("codecs").map { text in
          text.split(separator: ",").prefix(64).map { String($0).trimmed }.filter { !$0.isEmpty }
        } ?? []
      width = reader.positive("width")
      height = reader.positive("height")
      sampleAspectRatio = reader.value("sar", "a ratio") { Rational(ratio: $0, separator: ":") }
      frameRate = reader.value("frameRate", "a frame rate") { Rational(frameRate: $0) }
      startWithSAP = reader.string("startWithSAP")
    }

    /// Reads and consumes the child element at the reader's position; false for any other element.
    mutating func read(_ child: String, _ reader: inout XMLReader) throws(ReelError) -> Bool {
      switch child {
      case "AudioChannelConfiguration": audioChannelConfigurations.append(try Descriptor(&reader))
      case "ContentProtection": contentProtections.append(try Protection(&reader))
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

extension MPD {
  /// A descriptor (ISO/IEC 23009-1 §5.8.2): a role, a property and the like.
  package struct Descriptor: Sendable {
    /// @schemeIdUri.
    package var scheme: String
    /// @value.
    package var value: String?

    init(_ reader: inout XMLReader) throws(ReelError) {
      scheme = reader.string("schemeIdUri") ?? ""
      value = reader.string("value")
      try reader.skip()
    }
  }
}

extension MPD {
  /// ContentProtection (ISO/IEC 23009-1 §5.8.4.1).
  package struct Protection: Sendable {
    /// @schemeIdUri.
    package var scheme: String
    /// @value.
    package var value: String?
    /// @ref: the @refId of the element that it stands for.
    package var reference: String?
    /// @refId, which others may refer to.
    package var referenceID: String?
    /// The key ids in @cenc:default_KID (ISO/IEC 23001-7 §11.2).
    package var keyIDs: [KeyID] = []
    /// The whole `pssh` boxes of its cenc:pssh elements (ISO/IEC 23001-7 §11.2).
    package var systemData: [[UInt8]] = []
    /// The PlayReady Object of its mspr:pro element.
    package var playReadyObject: [UInt8]?
    /// The `skd:` URI of a FairPlay key, in @value or in a Laurl element.
    package var keyURI: String?

    init(_ reader: inout XMLReader) throws(ReelError) {
      scheme = reader.string("schemeIdUri") ?? ""
      value = reader.string("value")
      reference = reader.string("ref")
      referenceID = reader.string("refId")
      keyIDs =
        reader.string(anyPrefix: "default_KID")?.split(whereSeparator: \.isWhitespace).prefix(64)
        .compactMap { KeyID($0) } ?? []
      keyURI = Self.keyURI(value)
      while let child = try reader.nextChild() {
        switch child {
        case "pssh": try readSystemData(&reader)
        case "pro":
          let object = try reader.base64(limit: Self.byteLimit)
          playReadyObject = playReadyObject ?? object
        case "Laurl", "laurl":
          let text = try reader.text()
          keyURI = keyURI ?? Self.keyURI(text)
        default: try reader.skip()
        }
      }
    }

    // MARK: - Private

    /// The most bytes of a `pssh` box or PlayReady Object, and the most boxes of an element.
    private static let (byteLimit, boxLimit) = (16_384, 8)

    private mutating func readSystemData(_ reader: inout XMLReader) throws(ReelError) {
      guard systemData.count < Self.boxLimit else {
        reader.warn("more than \(Self.boxLimit) pssh elements: the rest is ignored")
        return try reader.skip()
      }
      guard let bytes = try reader.base64(limit: Self.byteLimit) else { return }
      let size = bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
      if bytes.count >= 32, size == bytes.count, bytes.has("pssh", at: 4) {
        systemData.append(bytes)
      } else if !bytes.has("pssh", at: 4),
        let id = ProtectionSystem.id(ofScheme: scheme).flatMap({ KeyID($0) })
      {
        // Some writers leave out the box around its data.
        reader.warn("the content of <pssh> is not a pssh box: treated as the data of one")
        systemData.append(Self.box(id, data: bytes))
      } else {
        reader.warn("the content of <pssh> is not a pssh box: ignored")
      }
    }

    /// Returns a `pssh` box of version 0 (ISO/IEC 23001-7 §8.1).
    private static func box(_ system: KeyID, data: [UInt8]) -> [UInt8] {
      func bytes(_ number: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
      }
      return bytes(32 + data.count) + Array("pssh".utf8) + bytes(0) + system.bytes + bytes(data.count) + data
    }

    private static func keyURI(_ text: String?) -> String? {
      guard let text, text.lowercased().hasPrefix("skd:"), text.utf8.count <= byteLimit else { return nil }
      return text
    }
  }
}

extension MPD {
  /// BaseURL (ISO/IEC 23009-1 §5.6).
  package struct BaseURL: Sendable {
    /// The URL as it is written.
    package var reference: String
    /// @availabilityTimeOffset, as it is written (a number of seconds, or `INF`).
    package var availabilityTimeOffset: String?
    /// @dvb:priority: the lowest is preferred; 1 where it is missing (ETSI TS 103 285 §10.8.2.1).
    package var priority: Int64?
    /// @dvb:weight: of those of one priority, the heaviest is preferred; 1 where it is missing.
    package var weight: Int64?

    init(_ reader: inout XMLReader) throws(ReelError) {
      availabilityTimeOffset = reader.string("availabilityTimeOffset")
      priority = reader.value(anyPrefix: "priority", "a whole number") { $0.wholeNumber }
      weight = reader.value(anyPrefix: "weight", "a whole number") { $0.wholeNumber }
      reference = try reader.text()
    }
  }
}

extension MPD {
  /// A URL with a byte range (ISO/IEC 23009-1 §5.3.9.2.2, URLType).
  package struct URLReference: Sendable, Hashable {
    /// @sourceURL; nil stands for the BaseURL.
    package var sourceURL: String?
    /// @range; nil also if it states no end, because what it leads to ends before the media.
    package var range: ByteRange?

    /// - Parameter element: The element name under which an unreadable range is recorded.
    init(
      _ reader: inout XMLReader, _ element: String, _ malformed: inout MalformedValues
    ) throws(ReelError) {
      sourceURL = reader.string("sourceURL")
      range = malformed.value(of: element, &reader) { reader throws(ReelError) in
        try reader.byteRange("range")
      }
      if range?.length == nil { range = nil }
      try reader.skip()
    }
  }
}

extension XMLReader {
  /// Reads a byte range, `first-last` including both bytes, or `first-` (RFC 9110 §14.1.1). The schema also allows `first`
  /// alone, which states no end either. Throws `badManifest` for anything else.
  package mutating func byteRange(_ name: StaticString) throws(ReelError) -> ByteRange? {
    guard let text = string(name) else { return nil }
    let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    if let first = String(parts[0]).integer, first >= 0 {
      if parts.count == 1 || parts[1].isEmpty { return ByteRange(offset: first, length: nil) }
      if let last = String(parts[1]).integer, last >= first, last < .max {
        return ByteRange(offset: first, length: last - first + 1)
      }
    }
    throw malformed("@\(name) '\(text.excerpt)' is not a byte range of the form first-last")
  }

  /// Reads the element's text as base64 (RFC 4648 §4) with white space anywhere, and consumes the element. Returns nil if
  /// there is no text, and with a warning for other text or more than `limit` bytes.
  fileprivate mutating func base64(limit: Int) throws(ReelError) -> [UInt8]? {
    let element = name
    let digits = Data(try text().utf8.filter { !$0.isSpace })
    if digits.isEmpty { return nil }
    guard digits.count / 4 * 3 <= limit + 2 else {
      warn("<\(element)> has more than \(limit) bytes: ignored")
      return nil
    }
    guard let data = Data(base64Encoded: digits) else {
      warn("the content of <\(element)> is not base64: ignored")
      return nil
    }
    return Array(data)
  }
}

extension ClockSource {
  /// Returns the sources named by UTCTiming elements, in order (ISO/IEC 23009-1 §5.8.5.7), at most 16.
  /// Sources without HTTP are ignored with a warning.
  static func sources(
    _ timings: [MPD.Descriptor], _ resolver: URLResolver, warnings: inout WarningLog
  ) -> [ClockSource] {
    var sources: [ClockSource] = []
    for timing in timings {
      let values = (timing.value ?? "").split { $0.isWhitespace }.map(String.init)
      switch timing.scheme.lowercased() {
      case "urn:mpeg:dash:utc:direct:2014", "urn:mpeg:dash:utc:direct:2012":
        if let time = WallTime(iso8601: (timing.value ?? "").trimmed) {
          sources.append(.direct(time))
        } else {
          warn("the value '\((timing.value ?? "").excerpt)' is not a date", &warnings)
        }
      case "urn:mpeg:dash:utc:http-head:2014", "urn:mpeg:dash:utc:http-head:2012":
        sources += urls(values, resolver, &warnings).map { .httpHead($0) }
      case "urn:mpeg:dash:utc:http-xsdate:2014", "urn:mpeg:dash:utc:http-xsdate:2012",
        "urn:mpeg:dash:utc:http-iso:2014", "urn:mpeg:dash:utc:http-iso:2012":
        sources += urls(values, resolver, &warnings).map { .httpBody($0) }
      default:
        warn("the scheme \(timing.scheme.excerpt) is not asked", &warnings)
      }
    }
    return Array(sources.prefix(16))
  }

  // MARK: - Private

  private static func urls(
    _ values: [String], _ resolver: URLResolver, _ warnings: inout WarningLog
  ) -> [URL] {
    values.prefix(16).compactMap { value in
      do throws(ReelError) {
        return try resolver.resolve(value)
      } catch {
        warn(error.reason, &warnings)
        return nil
      }
    }
  }

  private static func warn(_ reason: String, _ warnings: inout WarningLog) {
    warnings.add("\(reason): this UTCTiming is ignored", place: .element("MPD/UTCTiming"))
  }
}

extension MPD.Descriptor {
  /// The number of channels that an AudioChannelConfiguration names (ISO/IEC 23009-1 §5.8.5.4); nil if the scheme or
  /// its value is not known.
  var channelCount: Int? {
    guard let value = value?.trimmed else { return nil }
    switch scheme.lowercased() {
    case "urn:mpeg:dash:23003:3:audio_channel_configuration:2011":
      return value.integer.flatMap { (1...64).contains($0) ? Int($0) : nil }
    case "urn:mpeg:mpegb:cicp:channelconfiguration":
      return value.integer.flatMap { Self.codePointChannels[$0] }
    case "tag:dolby.com,2014:dash:audio_channel_configuration:2011",
      "urn:dolby:dash:audio_channel_configuration:2011":
      return UInt16(value, radix: 16).map(Self.dolbyChannels)
    case "urn:mpeg:dash:outputchannelpositionlist:2012":
      return value.split(separator: " ").count
    case "urn:dts:dash:audio_channel_configuration:2012":
      return value.integer.flatMap { (1...64).contains($0) ? Int($0) : nil }
    default:
      return nil
    }
  }

  // MARK: - Private

  /// ISO/IEC 23091-3 Table 1: ChannelConfiguration.
  private static let codePointChannels: [Int64: Int] = [
    1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 8, 8: 2, 9: 3, 10: 4, 11: 7, 12: 8, 13: 24, 14: 8, 15: 12, 16: 10,
    17: 12, 18: 14, 19: 12, 20: 14,
  ]

  /// ETSI TS 103 190-1 §G.3: a bit for each channel position, from the highest; some positions have two
  /// channels.
  private static func dolbyChannels(_ mask: UInt16) -> Int {
    let pairs: UInt16 = 0b0000_0110_1110_1100
    return mask.nonzeroBitCount + (mask & pairs).nonzeroBitCount
  }
}

extension MPD {
  /// The unreadable values of a SegmentBase, SegmentList or SegmentTemplate.
  ///
  /// They do not make the whole MPD invalid, only the Representations that the element applies to. Each one has
  /// caused a warning when it was read. Attributes that only describe the media (`@bandwidth`, `@frameRate`,
  /// `@minBufferTime`) are not recorded: an unreadable one is ignored with a warning.
  struct MalformedValues: Sendable {
    /// The errors by the name of the attribute, or of the child element that contains it.
    private var errors: [(name: String, error: ReelError)] = []

    /// Returns the first error about any other attribute or element than `names`.
    func first(except names: Set<String> = []) -> ReelError? {
      errors.first { !names.contains($0.name) }?.error
    }

    /// Returns the result of `read`; nil if it throws, in which case the error is recorded.
    mutating func value<Value>(
      of name: String, _ reader: inout XMLReader,
      _ read: (inout XMLReader) throws(ReelError) -> Value?
    ) -> Value? {
      do throws(ReelError) {
        return try read(&reader)
      } catch {
        add(error, of: name, &reader)
        return nil
      }
    }

    /// Records an error. Only the first one for each name counts.
    mutating func add(_ error: ReelError, of name: String, _ reader: inout XMLReader) {
      guard !contains(name) else { return }
      reader.warnings.add(error)
      errors.append((name, error))
    }

    /// Inherits the errors of the parent element, except for values that this element states itself.
    mutating func inherit(_ parent: MalformedValues, unless isStated: (String) -> Bool) {
      errors += parent.errors.filter { !contains($0.name) && !isStated($0.name) }
    }

    func contains(_ name: String) -> Bool { errors.contains { $0.name == name } }
  }
}

extension MPD.MalformedValues {
  /// Reads a whole number attribute.
  mutating func integer(_ name: StaticString, _ reader: inout XMLReader) -> Int64? {
    value(of: name.description, &reader) { reader throws(ReelError) in try reader.integer(name) }
  }

  /// Reads a non-negative whole number attribute.
  mutating func natural(_ name: StaticString, _ reader: inout XMLReader) -> Int64? {
    value(of: name.description, &reader) { reader throws(ReelError) in try reader.natural(name) }
  }

  /// Reads a positive whole number attribute.
  mutating func counting(_ name: StaticString, _ reader: inout XMLReader) -> Int64? {
    value(of: name.description, &reader) { reader throws(ReelError) in try reader.counting(name) }
  }

  /// Reads a byte range attribute.
  mutating func byteRange(_ name: StaticString, _ reader: inout XMLReader) -> ByteRange? {
    value(of: name.description, &reader) { reader throws(ReelError) in try reader.byteRange(name) }
  }
}

/// Elements that are hardly used. Their values are checked all the same: each unreadable one causes a
/// warning. Each method consumes the element.
extension XMLReader {
  /// EventStream (ISO/IEC 23009-1 §5.10.2).
  mutating func checkEventStream() throws(ReelError) {
    _ = positive("timescale")
    checkWhole("presentationTimeOffset")
    while let child = try nextChild() {
      if child == "Event" {
        checkWhole("presentationTime")
        checkWhole("duration")
      }
      try skip()
    }
  }

  /// ProducerReferenceTime (ISO/IEC 23009-1 §5.12).
  mutating func checkProducerReferenceTime() throws(ReelError) {
    checkWhole("presentationTime")
    try skip()
  }

  /// PatchLocation (ISO/IEC 23009-1 §5.15).
  mutating func checkPatchLocation() throws(ReelError) {
    _ = value("ttl", "a duration") { XMLDuration($0) }
    try skip()
  }

  /// ServiceDescription (ISO/IEC 23009-1 Annex K): @target of its first Latency element.
  mutating func latencyTarget() throws(ReelError) -> MediaTime? {
    var (target, hasLatency): (MediaTime?, Bool) = (nil, false)
    while let child = try nextChild() {
      if child == "Latency", !hasLatency {
        hasLatency = true
        target = milliseconds("target")
        _ = milliseconds("min")
        _ = milliseconds("max")
      }
      try skip()
    }
    return target
  }

  // MARK: - Private

  private mutating func milliseconds(_ name: StaticString) -> MediaTime? {
    value(name, "a whole number of 0 or more") { text in
      text.wholeNumber.flatMap { $0 >= 0 ? MediaTime(value: $0, timescale: 1000) : nil }
    }
  }
}
