package import Foundation
package import ReelCore

extension MultivariantPlaylist {
  /// Reads the multivariant playlist at `url`. Throws `badManifest` with the line.
  package init(_ bytes: [UInt8], url: URL, limits: ManifestLimits = ManifestLimits()) throws(ReelError) {
    try limits.check(bytes)
    var parser = MultivariantPlaylistParser(bytes, url: url, limits: limits)
    self = try parser.parse()
  }
}

/// Reads a multivariant playlist (RFC 8216 §4.3.4).
struct MultivariantPlaylistParser {
  private let url: URL
  private let limits: ManifestLimits
  private let bytes: [UInt8]
  private var lines: PlaylistLines
  private var playlist = MultivariantPlaylist()
  private var variables: PlaylistVariables
  private var warnings: WarningLog
  /// The number of variants of I-frames and of images, session data and session keys.
  private var checkedCount = 0
  /// A variant whose URI line has not been read yet.
  private var pending: (attributes: AttributeList, line: Int)?

  init(_ bytes: [UInt8], url: URL, limits: ManifestLimits) {
    self.url = url
    self.limits = limits
    self.bytes = bytes
    lines = PlaylistLines(bytes)
    variables = PlaylistVariables(limits: limits)
    warnings = WarningLog(limit: limits.warnings)
  }

  /// Returns the playlist. Throws `badManifest` with the line.
  mutating func parse() throws(ReelError) -> MultivariantPlaylist {
    while let line = lines.next() {
      if bytes[line.lowerBound] != UInt8(ascii: "#") {
        try addVariant(line)
      } else if bytes.has("#EXT", at: line.lowerBound) {
        try read(line)
      }
    }
    dropPending()
    playlist.variables = variables.values
    playlist.warnings = warnings.warnings
    return playlist
  }

  // MARK: - Private

  private mutating func read(_ line: Range<Int>) throws(ReelError) {
    let colon = bytes.firstIndex(of: UInt8(ascii: ":"), in: line) ?? line.upperBound
    let value = bytes.trimmed(min(colon + 1, line.upperBound)..<line.upperBound)
    switch bytes.text(in: bytes.trimmed(line.lowerBound..<colon)) {
    case "#EXT-X-STREAM-INF":
      dropPending()
      pending = (try attributes(value), lines.number)
    case "#EXT-X-MEDIA": try addRendition(try attributes(value))
    case "#EXT-X-I-FRAME-STREAM-INF":
      let found = try variant(try attributes(value), "EXT-X-I-FRAME-STREAM-INF")
      if let found { playlist.iFrameVariants.append(found) }
    case "#EXT-X-IMAGE-STREAM-INF":
      let found = try variant(try attributes(value), "EXT-X-IMAGE-STREAM-INF")
      if let found { playlist.imageVariants.append(found) }
    case "#EXT-X-VERSION":
      warnings.checkVersion(bytes, in: value, place: lines.place)
    case "#EXT-X-INDEPENDENT-SEGMENTS": playlist.hasIndependentSegments = true
    case "#EXT-X-START":
      let offset = warnings.startOffset(try attributes(value), place: lines.place)
      playlist.startOffset = offset ?? playlist.startOffset
    case "#EXT-X-DEFINE":
      try variables.define(try attributes(value), imported: [:], url: url, place: lines.place)
    case "#EXT-X-SESSION-DATA": try checkSessionData(try attributes(value))
    case "#EXT-X-SESSION-KEY": try checkSessionKey(try attributes(value))
    case "#EXT-X-CONTENT-STEERING":
      if try attributes(value)["SERVER-URI"] == nil {
        warnings.add("EXT-X-CONTENT-STEERING without SERVER-URI", place: lines.place)
      }
    case "#EXTINF":
      throw ReelError(.badManifest, "a segment in a playlist that has variants before it", place: lines.place)
    default: break
    }
  }

  private mutating func addVariant(_ line: Range<Int>) throws(ReelError) {
    guard let (attributes, number) = pending else {
      warnings.add("a URL without EXT-X-STREAM-INF", place: lines.place)
      return
    }
    pending = nil
    try checkTrackCount()
    let reference = try variables.substituting(in: bytes.text(in: line), place: lines.place)
    var reader = AttributeReader(attributes)
    let variant = MultivariantPlaylist.Variant(&reader, reference: reference, line: number)
    reader.warn("EXT-X-STREAM-INF", in: &warnings, place: .line(number))
    if attributes["BANDWIDTH"] == nil { warnings.add("a variant without BANDWIDTH", place: .line(number)) }
    playlist.variants.append(variant)
  }

  /// Returns a variant whose URI is an attribute; nil if it has none.
  private mutating func variant(
    _ attributes: AttributeList, _ tag: String
  ) throws(ReelError) -> MultivariantPlaylist.Variant? {
    guard let reference = attributes["URI"] else {
      warnings.add("\(tag) without URI", place: lines.place)
      return nil
    }
    try checkTrackCount()
    var reader = AttributeReader(attributes)
    let variant = MultivariantPlaylist.Variant(&reader, reference: reference, line: lines.number)
    checkedCount += 1
    reader.warn(tag, in: &warnings, place: lines.place)
    return variant
  }

  private mutating func checkSessionData(_ attributes: AttributeList) throws(ReelError) {
    guard attributes["DATA-ID"] != nil else {
      warnings.add("EXT-X-SESSION-DATA without DATA-ID", place: lines.place)
      return
    }
    try checkTrackCount()
    checkedCount += 1
  }

  private mutating func checkSessionKey(_ attributes: AttributeList) throws(ReelError) {
    try checkTrackCount()
    do {
      _ = try MediaPlaylist.Key(attributes, place: lines.place)
      checkedCount += 1
    } catch {
      warnings.add(error)
    }
  }

  private mutating func addRendition(_ attributes: AttributeList) throws(ReelError) {
    try checkTrackCount()
    var reader = AttributeReader(attributes)
    do {
      playlist.renditions.append(try MultivariantPlaylist.Rendition(&reader, line: lines.number))
      reader.warn("EXT-X-MEDIA", in: &warnings, place: lines.place)
    } catch {
      warnings.add(error)
    }
  }

  private mutating func dropPending() {
    guard let pending else { return }
    warnings.add("EXT-X-STREAM-INF without a URL after it", place: .line(pending.line))
    self.pending = nil
  }

  private func checkTrackCount() throws(ReelError) {
    guard playlist.variants.count + playlist.renditions.count + checkedCount < limits.tracks else {
      throw ReelError(
        .badManifest, "more than \(limits.tracks) variants and renditions", place: lines.place)
    }
  }

  private mutating func attributes(_ value: Range<Int>) throws(ReelError) -> AttributeList {
    try AttributeList(bytes, in: value, variables: &variables, place: lines.place)
  }
}
