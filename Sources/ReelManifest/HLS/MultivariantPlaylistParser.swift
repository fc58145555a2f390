public import Foundation
public import ReelCore

extension MultivariantPlaylist {
  /// Reads a multivariant playlist that stands at `url`. Throws `badManifest` with the line.
  public init(_ bytes: [UInt8], url: URL, limits: ManifestLimits = ManifestLimits()) throws(ReelError) {
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
  /// A variant whose URI line is still to come.
  private var pending: (attributes: AttributeList, line: Int)?

  init(_ bytes: [UInt8], url: URL, limits: ManifestLimits) {
    self.url = url
    self.limits = limits
    self.bytes = bytes
    lines = PlaylistLines(bytes)
    variables = PlaylistVariables(limits: limits)
    warnings = WarningLog(limit: limits.warnings)
  }

  /// The playlist. Throws `badManifest` with the line.
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
    case "#EXT-X-I-FRAME-STREAM-INF": try addIFrameVariant(try attributes(value))
    case "#EXT-X-VERSION":
      playlist.version = warnings.version(bytes, in: value, place: lines.place)
    case "#EXT-X-INDEPENDENT-SEGMENTS": playlist.hasIndependentSegments = true
    case "#EXT-X-START":
      playlist.start = warnings.startPoint(try attributes(value), place: lines.place) ?? playlist.start
    case "#EXT-X-DEFINE":
      try variables.define(try attributes(value), imported: [:], url: url, place: lines.place)
    case "#EXT-X-SESSION-DATA": try addSessionData(try attributes(value))
    case "#EXT-X-SESSION-KEY":
      try addSessionKey(try attributes(value))
    case "#EXT-X-CONTENT-STEERING":
      playlist.contentSteering = MultivariantPlaylist.ContentSteering(try attributes(value))
      if playlist.contentSteering == nil {
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
    try countTrack()
    let reference = try variables.substituting(in: bytes.text(in: line), place: lines.place)
    var reader = AttributeReader(attributes)
    let variant = MultivariantPlaylist.Variant(&reader, reference: reference, line: number)
    reader.warn("EXT-X-STREAM-INF", in: &warnings, place: .line(number))
    if attributes["BANDWIDTH"] == nil { warnings.add("a variant without BANDWIDTH", place: .line(number)) }
    playlist.variants.append(variant)
  }

  private mutating func addIFrameVariant(_ attributes: AttributeList) throws(ReelError) {
    guard let reference = attributes["URI"] else {
      warnings.add("EXT-X-I-FRAME-STREAM-INF without URI", place: lines.place)
      return
    }
    try countTrack()
    var reader = AttributeReader(attributes)
    playlist.iFrameVariants.append(
      MultivariantPlaylist.Variant(&reader, reference: reference, line: lines.number))
    reader.warn("EXT-X-I-FRAME-STREAM-INF", in: &warnings, place: lines.place)
  }

  private mutating func addSessionData(_ attributes: AttributeList) throws(ReelError) {
    guard let data = MultivariantPlaylist.SessionData(attributes, line: lines.number) else {
      warnings.add("EXT-X-SESSION-DATA without DATA-ID", place: lines.place)
      return
    }
    try countTrack()
    playlist.sessionData.append(data)
  }

  private mutating func addSessionKey(_ attributes: AttributeList) throws(ReelError) {
    try countTrack()
    do {
      playlist.sessionKeys.append(try MediaPlaylist.Key(attributes, place: lines.place))
    } catch {
      warnings.add(error)
    }
  }

  private mutating func addRendition(_ attributes: AttributeList) throws(ReelError) {
    try countTrack()
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

  private func countTrack() throws(ReelError) {
    let count =
      playlist.variants.count + playlist.iFrameVariants.count + playlist.renditions.count
      + playlist.sessionData.count + playlist.sessionKeys.count
    guard count < limits.tracks else {
      throw ReelError(
        .badManifest, "more than \(limits.tracks) variants and renditions", place: lines.place)
    }
  }

  private mutating func attributes(_ value: Range<Int>) throws(ReelError) -> AttributeList {
    try AttributeList(bytes, in: value, variables: &variables, place: lines.place)
  }
}
