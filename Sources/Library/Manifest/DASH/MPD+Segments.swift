package import ReelCore

extension MPD {
  /// The one of SegmentBase, SegmentList and SegmentTemplate that an element has (ISO/IEC 23009-1 §5.3.9.1).
  package struct SegmentInformation: Sendable {
    package var base: SegmentBase?
    package var list: SegmentList?
    package var template: SegmentTemplate?

    init() {}

    /// True if there is none.
    package var isEmpty: Bool { base == nil && list == nil && template == nil }

    /// Reads and consumes the child element at the reader's position; false for any other element.
    mutating func read(_ child: String, _ reader: inout XMLReader) throws(ReelError) -> Bool {
      switch child {
      case "SegmentBase": base = try SegmentBase(&reader)
      case "SegmentList": list = try SegmentList(&reader)
      case "SegmentTemplate": template = try SegmentTemplate(&reader)
      default: return false
      }
      return true
    }

    /// Returns the segment information of an element inside `parent`: of its own kind, or else of the
    /// parent's kind, completed from the parent (§5.3.9.1).
    func inheriting(from parent: SegmentInformation) -> SegmentInformation {
      if isEmpty { return parent }
      var merged = self
      merged.base = base.map { $0.inheriting(from: parent.base) }
      merged.list = list.map { $0.inheriting(from: parent.list) }
      merged.template = template.map { $0.inheriting(from: parent.template) }
      return merged
    }
  }
}

extension MPD {
  /// The attributes and elements common to SegmentList and SegmentTemplate (ISO/IEC 23009-1 §5.3.9.2.2,
  /// MultipleSegmentBaseType).
  package struct MultipleSegmentBase: Sendable {
    /// Those in common with SegmentBase.
    package var base: SegmentBase
    /// @duration, in ticks.
    package var duration: Int64?
    /// @startNumber; 1 if it is missing.
    package var startNumber: Int64?
    /// @endNumber.
    package var endNumber: Int64?
    /// @eptDelta: how much later than the period the first segment starts, in ticks; may be negative.
    package var earliestPresentationTimeDelta: Int64?
    /// SegmentTimeline.
    package var timeline: SegmentTimeline?
    /// The values of these, and of a SegmentList's SegmentURL elements, that can't be read.
    var malformed = MalformedValues()

    /// Reads the attributes of the start tag.
    init(attributesOf reader: inout XMLReader) {
      base = SegmentBase(attributesOf: &reader)
      duration = malformed.natural("duration", &reader)
      startNumber = malformed.natural("startNumber", &reader)
      endNumber = malformed.natural("endNumber", &reader)
      earliestPresentationTimeDelta = malformed.integer("eptDelta", &reader)
    }

    /// Throws `badManifest` if a value that is needed to find the segments can't be read.
    func check() throws(ReelError) {
      let error = malformed.first() ?? base.malformed.first(except: ["indexRange", "RepresentationIndex"])
      if let error { throw error }
    }

    /// Reads and consumes the child element at the reader's position; false for any other element.
    mutating func read(_ child: String, _ reader: inout XMLReader) throws(ReelError) -> Bool {
      if child == "SegmentTimeline" {
        timeline = try SegmentTimeline(&reader, &malformed)
        return true
      }
      return try base.read(child, &reader)
    }

    /// - Parameter hasURLs: True for a SegmentList that has its own SegmentURL elements.
    func inheriting(from parent: MultipleSegmentBase?, hasURLs: Bool = false) -> MultipleSegmentBase {
      guard let parent else { return self }
      var merged = self
      merged.base = base.inheriting(from: parent.base)
      // An element's own timeline replaces the parent's duration, and vice versa.
      if duration == nil, timeline == nil {
        merged.duration = parent.duration
        merged.timeline = parent.timeline
      }
      merged.startNumber = startNumber ?? parent.startNumber
      merged.endNumber = endNumber ?? parent.endNumber
      merged.earliestPresentationTimeDelta =
        earliestPresentationTimeDelta ?? parent.earliestPresentationTimeDelta
      merged.malformed.inherit(parent.malformed) { name in
        switch name {
        case "duration", "SegmentTimeline": duration != nil || timeline != nil
        case "startNumber": startNumber != nil
        case "endNumber": endNumber != nil
        case "eptDelta": earliestPresentationTimeDelta != nil
        case "SegmentURL": hasURLs
        default: false
        }
      }
      return merged
    }
  }
}

extension MPD {
  /// SegmentBase, and the part that SegmentList and SegmentTemplate share with it (ISO/IEC 23009-1 §5.3.9.2).
  package struct SegmentBase: Sendable {
    /// @timescale, in ticks per second; 1 if it is missing.
    package var timescale: Int64?
    /// @presentationTimeOffset, in ticks; 0 if it is missing.
    package var presentationTimeOffset: Int64?
    /// @indexRange; nil also if it states no end: then the index is searched for.
    package var indexRange: ByteRange?
    /// @availabilityTimeOffset, as it is written (a number of seconds, or `INF`).
    package var availabilityTimeOffset: String?
    /// Initialization.
    package var initialization: URLReference?
    /// RepresentationIndex.
    package var representationIndex: URLReference?
    /// The values of these that can't be read.
    var malformed = MalformedValues()

    /// Reads the element, and consumes it.
    init(_ reader: inout XMLReader) throws(ReelError) {
      self.init(attributesOf: &reader)
      while let child = try reader.nextChild() {
        if try !read(child, &reader) { try reader.skip() }
      }
    }

    /// Reads the attributes of the start tag.
    init(attributesOf reader: inout XMLReader) {
      timescale = malformed.counting("timescale", &reader)
      presentationTimeOffset = malformed.integer("presentationTimeOffset", &reader)
      indexRange = malformed.byteRange("indexRange", &reader).flatMap { $0.length == nil ? nil : $0 }
      availabilityTimeOffset = reader.string("availabilityTimeOffset")
    }

    /// Reads and consumes the child element at the reader's position; false for any other element.
    mutating func read(_ child: String, _ reader: inout XMLReader) throws(ReelError) -> Bool {
      switch child {
      case "Initialization", "Initialisation":
        initialization = try URLReference(&reader, "Initialization", &malformed)
      case "RepresentationIndex": representationIndex = try URLReference(&reader, child, &malformed)
      default: return false
      }
      return true
    }

    func inheriting(from parent: SegmentBase?) -> SegmentBase {
      guard let parent else { return self }
      var merged = self
      merged.timescale = timescale ?? parent.timescale
      merged.presentationTimeOffset = presentationTimeOffset ?? parent.presentationTimeOffset
      merged.indexRange = indexRange ?? parent.indexRange
      merged.availabilityTimeOffset = availabilityTimeOffset ?? parent.availabilityTimeOffset
      merged.initialization = initialization ?? parent.initialization
      merged.representationIndex = representationIndex ?? parent.representationIndex
      merged.malformed.inherit(parent.malformed) { name in
        switch name {
        case "timescale": timescale != nil
        case "presentationTimeOffset": presentationTimeOffset != nil
        case "indexRange": indexRange != nil
        case "Initialization": initialization != nil
        case "RepresentationIndex": representationIndex != nil
        default: false
        }
      }
      return merged
    }
  }
}

extension MPD {
  /// SegmentList (ISO/IEC 23009-1 §5.3.9.3).
  package struct SegmentList: Sendable {
    /// A SegmentURL element.
    package struct SegmentURL: Sendable, Hashable {
      /// @media; nil stands for the BaseURL.
      package var media: String?
      /// @mediaRange.
      package var mediaRange: ByteRange?
    }

    /// The part in common with SegmentTemplate.
    package var common: MultipleSegmentBase
    /// SegmentURL elements, in order.
    package var urls: [SegmentURL] = []
    /// @xlink:href: the location of the element's content (§5.5).
    package var href: String?

    init(_ reader: inout XMLReader) throws(ReelError) {
      common = MultipleSegmentBase(attributesOf: &reader)
      href = reader.string(anyPrefix: "href")
      while let child = try reader.nextChild() {
        if child == "SegmentURL" {
          try reader.countTimelineEntry()
          let range = common.malformed.value(of: child, &reader) { reader throws(ReelError) in
            try reader.byteRange("mediaRange")
          }
          urls.append(SegmentURL(media: reader.string("media"), mediaRange: range))
          try reader.skip()
        } else if try !common.read(child, &reader) {
          try reader.skip()
        }
      }
    }

    func inheriting(from parent: SegmentList?) -> SegmentList {
      guard let parent else { return self }
      var merged = self
      merged.common = common.inheriting(from: parent.common, hasURLs: !urls.isEmpty)
      if urls.isEmpty { merged.urls = parent.urls }
      return merged
    }
  }
}

extension MPD {
  /// SegmentTemplate (ISO/IEC 23009-1 §5.3.9.4).
  package struct SegmentTemplate: Sendable {
    /// The part in common with SegmentList.
    package var common: MultipleSegmentBase
    /// @media.
    package var media: String?
    /// @initialization.
    package var initialization: String?

    init(_ reader: inout XMLReader) throws(ReelError) {
      common = MultipleSegmentBase(attributesOf: &reader)
      media = reader.string("media")
      initialization = reader.string("initialization")
      while let child = try reader.nextChild() {
        if try !common.read(child, &reader) { try reader.skip() }
      }
    }

    func inheriting(from parent: SegmentTemplate?) -> SegmentTemplate {
      guard let parent else { return self }
      var merged = self
      merged.common = common.inheriting(from: parent.common)
      merged.media = media ?? parent.media
      merged.initialization = initialization ?? parent.initialization
      return merged
    }
  }
}

extension MPD {
  /// SegmentTimeline (ISO/IEC 23009-1 §5.3.9.6).
  package struct SegmentTimeline: Sendable, Hashable {
    /// An `S` element.
    package struct Entry: Sendable, Hashable {
      /// @t: the start of the first segment, in ticks; nil if it follows the previous entry.
      package var start: Int64?
      /// @d: the duration of each segment, in ticks; at least 1.
      package var duration: Int64
      /// @r: the number of segments after the first; if negative, as many as there is room for.
      package var repeatCount: Int64
      /// @n: the number of the first segment.
      package var number: Int64?
      /// @k: the number of parts of each segment; at least 1.
      package var partCount: Int64
      /// How many segments before the first one have a number but no duration: they do not exist.
      package var absentCount: Int64 = 0
    }

    /// The entries, in order.
    package var entries: [Entry] = []

    /// Reads the entries up to the first unreadable one. If not even the first entry can be read, the error is added
    /// to `malformed`.
    init(_ reader: inout XMLReader, _ malformed: inout MalformedValues) throws(ReelError) {
      var isWhole = true
      var absentCount: Int64 = 0
      while let child = try reader.nextChild() {
        if child == "S", isWhole {
          try reader.countTimelineEntry()
          do throws(ReelError) {
            if !entries.isEmpty, try reader.natural("d") == 0 {
              // Packagers write it for a segment that they have lost.
              let repeatCount = max(0, try reader.integer("r") ?? 0)
              absentCount = Int64(clamping: Int128(absentCount) + Int128(repeatCount) + 1)
              reader.warn("S has a @d of 0: its segments are left out")
            } else {
              var entry = try Self.entry(&reader)
              entry.absentCount = absentCount
              absentCount = 0
              entries.append(entry)
            }
          } catch {
            isWhole = false
            if entries.isEmpty {
              malformed.add(error, of: "SegmentTimeline", &reader)
            } else {
              reader.warn("\(error.reason): the SegmentTimeline ends before it")
            }
          }
        }
        try reader.skip()
      }
    }

    // MARK: - Private

    private static func entry(_ xml: inout XMLReader) throws(ReelError) -> Entry {
      guard let duration = try xml.natural("d"), duration > 0 else {
        throw xml.malformed("S has no @d above 0")
      }
      return Entry(
        start: try xml.natural("t"), duration: duration, repeatCount: try xml.integer("r") ?? 0,
        number: try xml.natural("n"), partCount: try xml.counting("k") ?? 1)
    }
  }
}

/// A URL with identifiers to be filled in (ISO/IEC 23009-1 §5.3.9.4.4), compiled once for a Representation.
package struct SegmentURLTemplate: Sendable {
  /// How a number is written: `%05d`.
  struct NumberFormat: Sendable, Hashable {
    var width = 0
    var radix = 10
    var isUppercase = false
  }

  private enum Part: Sendable {
    case literal(Substring)
    case number(NumberFormat)
    case time(NumberFormat)
    case subNumber(NumberFormat)
  }

  private var parts: [Part] = []
  /// True if `$Number$` or `$Time$` makes a difference between segments.
  package private(set) var isPerSegment = false
  /// True if each segment consists of parts.
  package private(set) var usesSubNumber = false

  /// True if it contains `$Number$`.
  package var usesNumber: Bool { parts.contains { if case .number = $0 { true } else { false } } }
  /// True if it contains `$Time$`.
  package var usesTime: Bool { parts.contains { if case .time = $0 { true } else { false } } }

  private static let widthLimit = 32

  /// Compiles `text`. Throws `badManifest` for an identifier that is unknown, not closed, or without a value
  /// here.
  package init(_ text: String, representationID: String?, bandwidth: Int64?) throws(ReelError) {
    var rest = text[...]
    // The bytes of the replaced identifiers; the text itself is already limited.
    var byteCount = 0
    while let open = rest.firstIndex(of: "$") {
      if open > rest.startIndex { parts.append(.literal(rest[..<open])) }
      let afterOpen = rest.index(after: open)
      guard let close = rest[afterOpen...].firstIndex(of: "$") else {
        throw ReelError(.badManifest, "the template '\(text.excerpt)' has a $ without its pair")
      }
      let identifier = rest[afterOpen..<close]
      rest = rest[rest.index(after: close)...]
      let part = try Self.part(identifier, of: text, representationID, bandwidth)
      if case .literal(let literal) = part { byteCount += literal.utf8.count }
      parts.append(part)
    }
    if !rest.isEmpty { parts.append(.literal(rest)) }
    guard byteCount <= ManifestLimits().urlByteCount else {
      throw ReelError(.badManifest, "the URL is longer than \(ManifestLimits().urlByteCount) bytes")
    }
    for part in parts {
      switch part {
      case .literal: break
      case .number, .time: isPerSegment = true
      case .subNumber: usesSubNumber = true
      }
    }
  }

  /// Returns the text with its identifiers filled in.
  package func text(number: Int64, time: Int64, subNumber: Int64) -> String {
    var text = ""
    for part in parts {
      switch part {
      case .literal(let literal): text += literal
      case .number(let format): text += format.text(number)
      case .time(let format): text += format.text(time)
      case .subNumber(let format): text += format.text(subNumber)
      }
    }
    return text
  }

  // MARK: - Private

  private static func part(
    _ identifier: Substring, of text: String, _ representationID: String?, _ bandwidth: Int64?
  ) throws(ReelError) -> Part {
    if identifier.isEmpty { return .literal("$") }
    let pieces = identifier.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
    let format = pieces.count == 2 ? NumberFormat(pieces[1]) : NumberFormat()
    guard let format, format.width <= widthLimit else {
      throw ReelError(
        .badManifest, "the template '\(text.excerpt)' has a format that is not of the form %0[width]d")
    }
    switch pieces[0] {
    case "Number": return .number(format)
    case "Time": return .time(format)
    case "SubNumber": return .subNumber(format)
    case "RepresentationID":
      guard let representationID else {
        throw ReelError(.badManifest, "the template asks for an @id that the Representation does not have")
      }
      return .literal(representationID[...])
    case "Bandwidth":
      guard let bandwidth else {
        throw ReelError(
          .badManifest, "the template asks for a @bandwidth that the Representation does not have")
      }
      return .literal(format.text(bandwidth)[...])
    default:
      throw ReelError(
        .badManifest, "the template '\(text.excerpt)' has the unknown identifier $\(pieces[0])$")
    }
  }
}

extension SegmentURLTemplate.NumberFormat {
  /// The part after the `%`: `0[width]d`; the `x`, `X` and `o` of older writers are accepted too.
  fileprivate init?(_ text: Substring) {
    guard let conversion = text.last else { return nil }
    switch conversion {
    case "d", "i", "u": radix = 10
    case "x": radix = 16
    case "X": (radix, isUppercase) = (16, true)
    case "o": radix = 8
    default: return nil
    }
    let digits = text.dropLast()
    guard digits.isEmpty || digits.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
    guard let width = digits.isEmpty ? 0 : Int(digits) else { return nil }
    self.width = width
  }

  fileprivate func text(_ value: Int64) -> String {
    let digits = String(value, radix: radix, uppercase: isUppercase)
    return digits.count >= width ? digits : String(repeating: "0", count: width - digits.count) + digits
  }
}
