import Foundation
package import ReelCore

/// A pull reader of XML 1.0 for manifests: it reads start tag by start tag, without a tree.
///
/// Reel has its own instead of Foundation's `XMLParser` for four reasons. Many real manifests are not
/// well-formed XML (attributes without a space between them, prefixes that are never bound, a bare `&` in a
/// URL), and libxml2 stops at those. This reader makes strings only for values that are used, so an MPD with
/// a timeline of 10,000 entries becomes a `Presentation` in 1.4 ms. No entity is ever declared, expanded or
/// loaded, which rules out entity bombs and external entities. And FoundationXML costs each process 5 ms at
/// its start.
///
/// Names are local names: prefixes are dropped, whatever they are bound to.
///
/// After `root()` or `nextChild()` has returned a start tag, read its attributes, and then consume the
/// element, with `nextChild()` until it returns nil, `text()` or `skip()`.
package struct XMLReader {
  /// The local name of the start tag that was read last.
  package private(set) var name = ""
  package var warnings: WarningLog
  /// The warnings about invalid durations, with the attribute's name.
  var malformedLengths: [(attribute: String, warning: ReelError)] = []

  private let bytes: [UInt8]
  private let limits: ManifestLimits
  private var position = 0
  private var tagStart = 0
  private var attributes: [Attribute] = []
  /// The full names of the open elements.
  private var open: [Range<Int>] = []
  private var isSelfClosed = false
  private var elementCount = 0
  private var trackCount = 0
  private var timelineEntryCount = 0
  /// The index of the last reported place, the number of lines before it, and the start of its line.
  private var warned = 0
  private var warnedLines = 0
  private var warnedLineStart = 0

  private struct Attribute {
    var name: Range<Int>
    var value: Range<Int>
  }

  private static let attributeLimit = 256

  package init(_ bytes: [UInt8], limits: ManifestLimits) {
    self.bytes = Self.utf8(bytes)
    self.limits = limits
    warnings = WarningLog(limit: limits.warnings)
    if self.bytes.has("\u{FEFF}", at: 0) { position = 3 }
  }

  // MARK: - Elements

  /// Reads up to the start tag of the root element. Throws `badManifest`, naming the kind of text, if it is
  /// not XML.
  package mutating func root() throws(ReelError) {
    while position < bytes.count, bytes[position].isSpace { position += 1 }
    guard position < bytes.count else { throw ReelError(.badManifest, "the MPD is empty") }
    guard bytes[position] == UInt8(ascii: "<") else {
      throw error("not XML: \(description(of: bytes[position]))", at: position)
    }
    while let start = bytes.firstIndex(of: UInt8(ascii: "<"), in: position..<bytes.count) {
      position = start
      if bytes.has("<!DOCTYPE", at: start) || bytes.has("<!doctype", at: start) {
        try skipDoctype()
      } else if try !skipMarkup() {
        return try readStartTag()
      }
    }
    throw error("not XML: there is no element", at: bytes.count)
  }

  /// Returns the name of the next child of the element that the reader is in, or nil if its end tag has been
  /// read instead.
  package mutating func nextChild() throws(ReelError) -> String? {
    if isSelfClosed {
      isSelfClosed = false
      open.removeLast()
      return nil
    }
    while let start = bytes.firstIndex(of: UInt8(ascii: "<"), in: position..<bytes.count) {
      position = start
      if try skipMarkup() { continue }
      if bytes.has("</", at: start) {
        try readEndTag()
        return nil
      }
      try readStartTag()
      return name
    }
    throw endOfText()
  }

  /// Consumes the rest of the element that the reader is in.
  package mutating func skip() throws(ReelError) {
    let depth = open.count
    while open.count >= depth { _ = try nextChild() }
  }

  /// Returns the text of the element that the reader is in, without the white space at its ends; consumes it.
  /// The text of elements inside it is left out.
  package mutating func text() throws(ReelError) -> String {
    if isSelfClosed {
      isSelfClosed = false
      open.removeLast()
      return ""
    }
    var text = ""
    while let start = bytes.firstIndex(of: UInt8(ascii: "<"), in: position..<bytes.count) {
      text += decoded(position..<start)
      position = start
      if bytes.has("<![CDATA[", at: start) {
        let content = start + 9
        try skip(to: "]]>", from: content, what: "CDATA section")
        text += bytes.text(in: content..<position - 3)
      } else if try skipMarkup() {
        continue
      } else if bytes.has("</", at: start) {
        try readEndTag()
        return text.trimmed
      } else {
        try readStartTag()
        try skip()
      }
    }
    throw endOfText()
  }

  // MARK: - Attributes of the start tag that was read last

  /// The part before the colon of the start tag's name; empty if there is none.
  package var prefix: String {
    guard let fullName = open.last, let colon = bytes.firstIndex(of: UInt8(ascii: ":"), in: fullName) else {
      return ""
    }
    return bytes.text(in: fullName.lowerBound..<colon)
  }

  /// The namespace that the start tag binds its own prefix to, or the default one; nil if it binds none.
  package var namespace: String? {
    let name = prefix.isEmpty ? "xmlns" : "xmlns:\(prefix)"
    let attribute = attributes.first {
      bytes.has("xmlns", at: $0.name.lowerBound) && bytes.text(in: $0.name) == name
    }
    return attribute.map { decoded(bytes.trimmed($0.value)) }
  }

  /// Returns the value of an attribute that has no prefix, without the white space at its ends; nil if there
  /// is none.
  package func string(_ name: StaticString) -> String? { value(name).map { decoded(bytes.trimmed($0)) } }

  /// Returns the value of an attribute by its local name, whatever its prefix.
  package func string(anyPrefix name: StaticString) -> String? {
    let attribute = attributes.first { bytes.isText(name, in: localName($0.name)) }
    return attribute.map { decoded(bytes.trimmed($0.value)) }
  }

  /// Reads a whole number. A decimal with an integral value, such as `2000000.0`, is accepted with a warning.
  /// Throws `badManifest` for any other text, or a number beyond 64 bits.
  package mutating func integer(_ name: StaticString) throws(ReelError) -> Int64? {
    guard let range = value(name).map({ bytes.trimmed($0) }) else { return nil }
    if let number = bytes.integer(in: range) { return number }
    let text = bytes.text(in: range)
    if let number = text.wholeNumber {
      warn("@\(name) '\(text.excerpt)' is not a whole number: treated as \(number)")
      return number
    }
    throw malformed("@\(name) '\(text.excerpt)' is not a whole number of 64 bits", at: range.lowerBound)
  }

  /// Adds a warning with the place of the start tag that was read last.
  mutating func warn(_ reason: String) {
    guard warnings.warnings.count < warnings.limit else { return }
    warnings.add(reason, place: tagPlace())
  }

  /// Returns the place of the start tag that was read last.
  package mutating func tagPlace() -> ReelError.Place { placeInTag(of: tagStart) }

  /// Returns an error about a value in the last start tag. The rest of the text can still be read.
  mutating func malformed(_ reason: String) -> ReelError { malformed(reason, at: tagStart) }

  /// Returns an error with the place of the last start tag.
  package func error(_ reason: String) -> ReelError { error(reason, at: tagStart) }

  // MARK: - Private

  private mutating func malformed(_ reason: String, at index: Int) -> ReelError {
    ReelError(.badManifest, reason, place: placeInTag(of: index))
  }

  /// Returns the place of `index`, which lies in the last start tag. Lines are counted from the previous
  /// place, so many warnings together read the text only once.
  private mutating func placeInTag(of index: Int) -> ReelError.Place {
    while let lineEnd = bytes.firstIndex(of: 0x0A, in: warned..<tagStart) {
      warnedLines += 1
      warned = lineEnd + 1
      warnedLineStart = warned
    }
    warned = tagStart
    var (lines, lineStart) = (warnedLines, warnedLineStart)
    while let lineEnd = bytes.firstIndex(of: 0x0A, in: max(lineStart, tagStart)..<index) {
      lines += 1
      lineStart = lineEnd + 1
    }
    return .line(lines + 1, column: index - lineStart + 1)
  }

  private func value(_ name: StaticString) -> Range<Int>? {
    attributes.first { bytes.isText(name, in: $0.name) }?.value
  }

  private func localName(_ name: Range<Int>) -> Range<Int> {
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":"), in: name) else { return name }
    return colon + 1..<name.upperBound
  }

  /// Skips a comment, a processing instruction, a CDATA section or another declaration; false at a tag.
  private mutating func skipMarkup() throws(ReelError) -> Bool {
    if bytes.has("<?", at: position) {
      try skip(to: "?>", from: position + 2, what: "processing instruction")
    } else if bytes.has("<!--", at: position) {
      try skip(to: "-->", from: position + 4, what: "comment")
    } else if bytes.has("<![CDATA[", at: position) {
      try skip(to: "]]>", from: position + 9, what: "CDATA section")
    } else if bytes.has("<!", at: position) {
      throw error("a declaration inside the document", at: position)
    } else {
      return false
    }
    return true
  }

  private mutating func skip(to end: StaticString, from start: Int, what: String) throws(ReelError) {
    var index = start
    while let found = bytes.firstIndex(of: end.utf8Start[0], in: index..<max(index, bytes.count)) {
      if bytes.has(end, at: found) {
        position = found + end.utf8CodeUnitCount
        return
      }
      index = found + 1
    }
    throw error("the \(what) is not closed", at: position)
  }

  private mutating func skipDoctype() throws(ReelError) {
    let end = bytes.firstIndex(of: UInt8(ascii: ">"), in: position..<bytes.count)
    guard let end else { throw error("the DOCTYPE is not closed", at: position) }
    if bytes.firstIndex(of: UInt8(ascii: "["), in: position..<end) != nil {
      throw error("the DOCTYPE declares entities or elements, which is refused", at: position)
    }
    if bytes.text(in: position..<end).lowercased().contains("html") {
      throw error("not an MPD: it is an HTML page", at: position)
    }
    position = end + 1
  }

  private mutating func readStartTag() throws(ReelError) {
    tagStart = position
    position += 1
    let fullName = readName()
    guard !fullName.isEmpty, Self.isNameStart(bytes[fullName.lowerBound]) else {
      throw error("'<' that begins no tag", at: tagStart)
    }
    name = bytes.text(in: localName(fullName))
    guard open.count < limits.xmlDepth else {
      throw error("elements nested more than \(limits.xmlDepth) deep", at: tagStart)
    }
    open.append(fullName)
    if name != "S", name != "SegmentURL" {
      elementCount += 1
      guard elementCount <= limits.xmlElements else {
        throw error("more than \(limits.xmlElements) elements", at: tagStart)
      }
    }
    attributes.removeAll(keepingCapacity: true)
    while true {
      while position < bytes.count, bytes[position].isSpace { position += 1 }
      guard position < bytes.count else {
        throw error("the tag <\(name.excerpt)> is not closed", at: tagStart)
      }
      if bytes[position] == UInt8(ascii: ">") {
        position += 1
        return
      }
      if bytes[position] == UInt8(ascii: "/") {
        position += 1
        guard position < bytes.count, bytes[position] == UInt8(ascii: ">") else {
          throw error("the tag <\(name.excerpt)> is not closed after '/'", at: position - 1)
        }
        position += 1
        isSelfClosed = true
        return
      }
      try readAttribute()
    }
  }

  private mutating func readAttribute() throws(ReelError) {
    let name = readName()
    while position < bytes.count, bytes[position].isSpace { position += 1 }
    guard !name.isEmpty, position < bytes.count, bytes[position] == UInt8(ascii: "=") else {
      throw error("an attribute of <\(self.name.excerpt)> without a value", at: name.lowerBound)
    }
    position += 1
    while position < bytes.count, bytes[position].isSpace { position += 1 }
    guard position < bytes.count,
      bytes[position] == UInt8(ascii: "\"") || bytes[position] == UInt8(ascii: "'")
    else {
      throw error("an attribute value of <\(self.name.excerpt)> without quotes", at: name.lowerBound)
    }
    let start = position + 1
    guard let end = bytes.firstIndex(of: bytes[position], in: start..<bytes.count),
      bytes.firstIndex(of: UInt8(ascii: "<"), in: start..<end) == nil
    else {
      throw error("an attribute value of <\(self.name.excerpt)> that is not closed", at: position)
    }
    guard attributes.count < Self.attributeLimit else {
      throw error("more than \(Self.attributeLimit) attributes in one tag", at: tagStart)
    }
    attributes.append(Attribute(name: name, value: start..<end))
    position = end + 1
  }

  private mutating func readEndTag() throws(ReelError) {
    let start = position
    position += 2
    let name = readName()
    while position < bytes.count, bytes[position].isSpace { position += 1 }
    guard position < bytes.count, bytes[position] == UInt8(ascii: ">") else {
      throw error("the end tag </\(bytes.text(in: name).excerpt)> is not closed", at: start)
    }
    position += 1
    guard let expected = open.popLast(), bytes[expected] == bytes[name] else {
      let expected = open.last.map { bytes.text(in: $0).excerpt } ?? ""
      throw error("</\(bytes.text(in: name).excerpt)> does not close what is open (\(expected))", at: start)
    }
  }

  private mutating func readName() -> Range<Int> {
    let start = position
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "="), UInt8(ascii: ">"), UInt8(ascii: "/"), UInt8(ascii: "<"), UInt8(ascii: "\""),
        UInt8(ascii: "'"), 0x20, 0x09, 0x0A, 0x0D:
        return start..<position
      default: position += 1
      }
    }
    return start..<position
  }

  private static func isNameStart(_ byte: UInt8) -> Bool {
    byte.isLetter || byte >= 0x80 || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ":")
  }

  /// Returns the text in `range` with its references replaced: the five entities of XML, and numbers. Text
  /// that only looks like a reference stays, such as an unescaped `&` in a URL.
  private func decoded(_ range: Range<Int>) -> String {
    guard bytes.firstIndex(of: UInt8(ascii: "&"), in: range) != nil else { return bytes.text(in: range) }
    var text = ""
    var index = range.lowerBound
    while let start = bytes.firstIndex(of: UInt8(ascii: "&"), in: index..<range.upperBound) {
      text += bytes.text(in: index..<start)
      // The longest reference is a number of seven digits: "&#1114111;".
      let window = start + 1..<min(start + 12, range.upperBound)
      if let end = bytes.firstIndex(of: UInt8(ascii: ";"), in: window),
        let character = Self.character(bytes.text(in: start + 1..<end))
      {
        text.unicodeScalars.append(character)
        index = end + 1
      } else {
        text += "&"
        index = start + 1
      }
    }
    return text + bytes.text(in: index..<range.upperBound)
  }

  private static func character(_ reference: String) -> Unicode.Scalar? {
    switch reference {
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    case "quot": return "\""
    case "apos": return "'"
    default:
      if reference.hasPrefix("#x") {
        return UInt32(reference.dropFirst(2), radix: 16).flatMap(Unicode.Scalar.init)
      }
      if reference.hasPrefix("#") { return UInt32(reference.dropFirst()).flatMap(Unicode.Scalar.init) }
      return nil
    }
  }

  /// UTF-16 as UTF-8, by its byte order mark or its first character; anything else as it is.
  package static func utf8(_ bytes: [UInt8]) -> [UInt8] {
    let isBigEndian = bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0x00, 0x3C])
    let isLittleEndian = bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0x3C, 0x00])
    guard isBigEndian || isLittleEndian else { return bytes }
    let units = stride(from: 0, to: bytes.count - 1, by: 2).map { index in
      let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      return isBigEndian ? first << 8 | second : second << 8 | first
    }
    return Array(String(decoding: units, as: UTF16.self).utf8)
  }

  private func description(of byte: UInt8) -> String {
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "["): "it is JSON"
    case UInt8(ascii: "#"): "it starts like a playlist"
    default: "it does not start with '<'"
    }
  }

  private func endOfText() -> ReelError {
    let name = open.last.map { bytes.text(in: $0).excerpt } ?? ""
    return error("the text ends inside <\(name)>", at: bytes.count)
  }

  private func error(_ reason: String, at index: Int) -> ReelError {
    ReelError(.badManifest, reason, place: place(of: index))
  }

  private func place(of index: Int) -> ReelError.Place {
    let before = bytes[..<min(index, bytes.count)]
    let line = before.count { $0 == 0x0A } + 1
    let column = before.count - (before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0) + 1
    return .line(line, column: column)
  }
}

/// The counts of limited elements. An error has the place of the last start tag.
extension XMLReader {
  /// Counts a Period, AdaptationSet or Representation. Throws `badManifest` above the limit.
  mutating func countTrack() throws(ReelError) {
    trackCount += 1
    guard trackCount <= limits.tracks else {
      throw error("more than \(limits.tracks) periods, adaptation sets and representations")
    }
  }

  /// Counts an `S` or SegmentURL. Throws `badManifest` above the limit.
  mutating func countTimelineEntry() throws(ReelError) {
    timelineEntryCount += 1
    guard timelineEntryCount <= limits.timelineEntries else {
      throw error("more than \(limits.timelineEntries) timeline entries")
    }
  }
}

/// Attribute values of the last start tag.
extension XMLReader {
  /// Reads a non-negative whole number. Throws `badManifest` for any other text, or a number beyond 63 bits.
  mutating func natural(_ name: StaticString) throws(ReelError) -> Int64? {
    guard let number = try integer(name) else { return nil }
    guard number >= 0 else { throw malformed("@\(name) is \(number), below 0") }
    return number
  }

  /// Reads a positive whole number. Throws `badManifest` for any other text, or a number beyond 63 bits.
  mutating func counting(_ name: StaticString) throws(ReelError) -> Int64? {
    let number = try natural(name)
    if number == 0 { throw malformed("@\(name) is 0") }
    return number
  }

  /// Reads a positive whole number; nil if the attribute is missing, and nil with a warning for any other
  /// text.
  mutating func positive(_ name: StaticString) -> Int64? {
    value(name, "a positive whole number") { text in text.wholeNumber.flatMap { $0 > 0 ? $0 : nil } }
  }

  /// Returns the result of `read` for an attribute; nil if the attribute is missing, and nil with a warning
  /// if `read` returns nil.
  ///
  /// - Parameter what: The expected kind of value, for the warning.
  mutating func value<Value>(
    _ name: StaticString, _ what: String, _ read: (String) -> Value?
  ) -> Value? {
    string(name).flatMap { value($0, of: name, what, read) }
  }

  /// Adds a warning for an attribute that is not used and is not a whole number.
  mutating func checkWhole(_ name: StaticString) { _ = value(name, "a whole number") { $0.wholeNumber } }

  /// Like `value(_:_:_:)`, for an attribute with this local name and any prefix.
  mutating func value<Value>(
    anyPrefix name: StaticString, _ what: String, _ read: (String) -> Value?
  ) -> Value? {
    string(anyPrefix: name).flatMap { value($0, of: name, what, read) }
  }

  /// Reads a duration. For any other text: `fallback`, with a warning.
  mutating func duration(_ name: StaticString, fallback: MediaTime? = nil) -> MediaTime? {
    guard let text = string(name) else { return nil }
    guard let duration = XMLDuration(text) else {
      let count = warnings.warnings.count
      let outcome = fallback.map { "treated as \($0.seconds) s" } ?? "ignored"
      warn("@\(name) '\(text.excerpt)' is not a duration: \(outcome)")
      malformedLengths += warnings.warnings[count...].map { (name.description, $0) }
      return fallback
    }
    if !duration.isWellFormed { warn("@\(name) '\(text.excerpt)' is not an xs:duration: treated as seconds") }
    return duration.time
  }

  // MARK: - Private

  private mutating func value<Value>(
    _ text: String, of name: StaticString, _ what: String, _ read: (String) -> Value?
  ) -> Value? {
    if let value = read(text) { return value }
    warn("@\(name) '\(text.excerpt)' is not \(what): ignored")
    return nil
  }
}

/// An `xs:duration` (W3C XML Schema Part 2 §3.2.6), such as `PT0H11M58.998S` or `P1DT2H`, exact to its digits.
///
/// A year is taken as 365 days and a month as 30. A plain number is read as seconds, which some writers put there.
package struct XMLDuration: Sendable {
  package let time: MediaTime
  /// False for a plain number.
  package let isWellFormed: Bool

  /// Nil for text that is not a duration, is negative, or is beyond 292 years.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard bytes.first == UInt8(ascii: "P") else {
      guard let value = ExactSeconds(text) else { return nil }
      time = value.time
      isWellFormed = false
      return
    }
    var (index, inTime, sum, fields) = (1, false, ExactSeconds.zero, 0)
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "T"), !inTime {
        inTime = true
        index += 1
        continue
      }
      guard let (value, end) = ExactSeconds.parse(bytes, in: index..<bytes.count), end < bytes.count,
        let unit = Self.seconds(bytes[end], inTime: inTime), let length = value.multiplied(by: unit),
        sum.add(length)
      else { return nil }
      fields += 1
      index = end + 1
    }
    guard fields > 0 else { return nil }
    time = sum.time
    isWellFormed = true
  }

  // MARK: - Private

  private static func seconds(_ unit: UInt8, inTime: Bool) -> Int64? {
    switch (unit, inTime) {
    case (UInt8(ascii: "Y"), false): 365 * 86_400
    case (UInt8(ascii: "M"), false): 30 * 86_400
    case (UInt8(ascii: "W"), false): 7 * 86_400
    case (UInt8(ascii: "D"), false): 86_400
    case (UInt8(ascii: "H"), true): 3_600
    case (UInt8(ascii: "M"), true): 60
    case (UInt8(ascii: "S"), true): 1
    default: nil
    }
  }
}
