package import Foundation
package import ReelCore

extension MediaPlaylist {
  /// Reads the media playlist at `url`. `variables` are those of the multivariant playlist, for EXT-X-DEFINE to
  /// import. Throws `badManifest` with the line.
  package init(
    _ bytes: [UInt8], url: URL, limits: ManifestLimits = ManifestLimits(), variables: [String: String] = [:]
  ) throws(ReelError) {
    try limits.check(bytes)
    var parser = MediaPlaylistParser(bytes, url: url, limits: limits, imported: variables)
    self = try parser.parse()
  }
}

/// Reads a media playlist (RFC 8216 §4.3.2, §4.3.3) in one pass over its bytes.
///
/// It is lenient, like `MultivariantPlaylistParser`: it continues wherever a player can, and warns about what
/// it skips. It does not check all rules of the standard.
struct MediaPlaylistParser {
  let url: URL
  let limits: ManifestLimits
  let imported: [String: String]
  let resolver: URLResolver
  let bytes: [UInt8]
  var lines: PlaylistLines
  var playlist: MediaPlaylist
  var variables: PlaylistVariables
  var warnings: WarningLog

  // State that applies to the next segment only.
  var duration: ExactSeconds?
  var byteRange: ByteRangeText?
  var isGap = false
  var programDateTime: Range<Int>?

  // State that applies until it is changed.
  var map: Int?
  var keys: [MediaPlaylist.Key] = []
  var keySet: Int?
  var keyCount = 0
  var discontinuitySequence = 0
  var discontinuity = 0
  var isRunOpen = false
  var tiles: Int?

  // Collected for the end.
  /// The substitute for a duration that is missing, or is not a number.
  var targetDuration = ExactSeconds.zero
  var statedSequence: Int64 = 0
  var skippedCount: Int64 = 0

  // Counts of items that are checked but not used.
  var partCount = 0
  var dateRangeCount = 0
  var preloadHintCount = 0
  var renditionReportCount = 0
  /// The previous part. A byte range without an offset continues after it.
  var lastPart: (reference: String, end: Int64?)?

  init(_ bytes: [UInt8], url: URL, limits: ManifestLimits, imported: [String: String]) {
    self.url = url
    self.limits = limits
    self.imported = imported
    self.bytes = bytes
    resolver = URLResolver(base: url, limit: limits.urlByteCount)
    lines = PlaylistLines(bytes)
    playlist = MediaPlaylist(bytes: bytes)
    variables = PlaylistVariables(limits: limits)
    warnings = WarningLog(limit: limits.warnings)
  }

  /// Returns the playlist. Throws `badManifest` with the line.
  mutating func parse() throws(ReelError) -> MediaPlaylist {
    while let line = lines.next() {
      if bytes[line.lowerBound] != UInt8(ascii: "#") {
        try addSegment(line)
      } else if bytes.has("#EXT", at: line.lowerBound) {
        try read(line)
      }
    }
    try finish()
    return playlist
  }

  // MARK: - Private

  private mutating func read(_ line: Range<Int>) throws(ReelError) {
    if bytes.has("#EXTINF:", at: line.lowerBound) {
      return try readDuration(line.lowerBound + 8..<line.upperBound)
    }
    let colon = bytes.firstIndex(of: UInt8(ascii: ":"), in: line) ?? line.upperBound
    let tag = bytes.trimmed(line.lowerBound..<colon)
    let value = bytes.trimmed(min(colon + 1, line.upperBound)..<line.upperBound)
    if bytes.isText("#EXT-X-BYTERANGE", in: tag) {
      if value.isEmpty {
        warnings.add("EXT-X-BYTERANGE without a range", place: lines.place)
      } else {
        byteRange = try ByteRangeText(bytes, in: value, place: lines.place)
      }
    } else if bytes.isText("#EXT-X-PROGRAM-DATE-TIME", in: tag) {
      readDate(value)
    } else if bytes.isText("#EXT-X-BITRATE", in: tag) {
      checkBitRate(value)
    } else if bytes.isText("#EXT-X-PART", in: tag) {
      try checkPart(try attributes(value))
    } else if bytes.isText("#EXT-X-KEY", in: tag) {
      try readKey(value)
    } else if bytes.isText("#EXT-X-MAP", in: tag) {
      try readMap(value)
    } else if bytes.isText("#EXT-X-DISCONTINUITY", in: tag) {
      discontinuity += 1
      isRunOpen = false
    } else if bytes.isText("#EXT-X-GAP", in: tag) {
      isGap = true
    } else {
      try readPlaylistTag(tag, value)
    }
  }

  private mutating func readDuration(_ range: Range<Int>) throws(ReelError) {
    let comma = bytes.firstIndex(of: UInt8(ascii: ","), in: range) ?? range.upperBound
    let field = bytes.trimmed(range.lowerBound..<comma)
    if let (value, end) = ExactSeconds.parse(bytes, in: field) {
      // Some writers add their own attributes between the duration and the comma.
      if end == field.upperBound || bytes[end].isSpace {
        duration = value
        let point = bytes[field.lowerBound..<end].firstIndex(of: UInt8(ascii: "."))
        playlist.decimalCount = max(playlist.decimalCount, point.map { end - $0 - 1 } ?? 0)
        return
      }
    }
    // Some playlists deliberately state no duration, such as radio stations with -1. The segment is played
    // anyway.
    let text = bytes.text(in: field)
    guard let seconds = Double(text), seconds.isFinite, seconds >= 0, seconds < 9e9 else {
      warnings.add(
        "the EXTINF duration '\(text.excerpt)' is not a duration: treated as the target duration",
        place: lines.place)
      duration = targetDuration
      return
    }
    let nanoseconds = MediaTime(seconds: seconds, timescale: 1_000_000_000).value
    duration = ExactSeconds(nanoseconds: nanoseconds, remainder: 0, digits: 9)
  }

  private mutating func readKey(_ value: Range<Int>) throws(ReelError) {
    let key = try MediaPlaylist.Key(try attributes(value), place: lines.place)
    // A tag ends only those of its own key format (RFC 8216 §4.3.2.4).
    if key.method == "NONE" {
      keys = []
    } else {
      keys.removeAll { $0.keyFormat == key.keyFormat }
      keys.append(key)
      try countKeys()
    }
    keySet = nil
    isRunOpen = false
  }

  /// Each change of a key makes a new set of all current keys, so the total is limited.
  private mutating func countKeys() throws(ReelError) {
    keyCount += keys.count
    guard keyCount <= limits.segments else {
      throw ReelError(.badManifest, "more than \(limits.segments) keys", place: lines.place)
    }
  }

  private mutating func readMap(_ value: Range<Int>) throws(ReelError) {
    guard !value.isEmpty else {
      warnings.add("EXT-X-MAP without attributes", place: lines.place)
      return
    }
    let new = try MediaPlaylist.Map(try attributes(value), keys: keys, place: lines.place)
    if !URLResolver.isPlain(Array(new.reference.utf8)[...]) {
      _ = try resolver.resolve(new.reference, place: lines.place)
    }
    if map.map({ playlist.maps[$0] }) != new {
      guard playlist.maps.count < limits.segments else {
        throw ReelError(.badManifest, "more than \(limits.segments) maps", place: lines.place)
      }
      playlist.maps.append(new)
      map = playlist.maps.count - 1
      isRunOpen = false
    }
  }

  private mutating func addSegment(_ line: Range<Int>) throws(ReelError) {
    guard let duration = duration ?? missingDuration(of: line) else { return endSegment() }
    let index = playlist.records.count
    guard index < limits.segments else {
      throw ReelError(.badManifest, "more than \(limits.segments) segments", place: lines.place)
    }
    try checkReference(line, at: index)
    try addByteRange(line, at: index)
    openRun()
    playlist.records.append(
      MediaPlaylist.Record(
        reference: UInt32(line.lowerBound), referenceCount: UInt32(line.count),
        run: UInt32(playlist.runs.count - 1), start: playlist.length.nanoseconds))
    guard playlist.length.add(duration) else {
      throw ReelError(.badManifest, "the durations add up to more than 292 years", place: lines.place)
    }
    if let programDateTime {
      playlist.programDateTimes.append(
        MediaPlaylist.DateMark(
          segment: UInt32(index), position: UInt32(programDateTime.lowerBound),
          count: UInt32(programDateTime.count)))
    }
    if isGap { isRunOpen = false }
    endSegment()
  }

  /// Returns a substitute for a missing EXTINF, though each segment must have one (RFC 8216 §4.3.2.1).
  ///
  /// A line with the file extension of the previous segment is assumed to be a segment whose EXTINF was lost,
  /// with the target duration. Returns nil for any other line, which is not a segment.
  private mutating func missingDuration(of line: Range<Int>) -> ExactSeconds? {
    let isSegment =
      targetDuration.nanoseconds > 0
      && playlist.records.last.map {
        let reference = Int($0.reference)..<Int($0.reference) + Int($0.referenceCount)
        let suffix = fileSuffix(of: line)
        return !suffix.isEmpty && suffix == fileSuffix(of: reference)
      } ?? false
    warnings.add(
      isSegment ? "a segment without EXTINF, assumed to last the target duration" : "a URL without EXTINF",
      place: lines.place)
    return isSegment ? targetDuration : nil
  }

  /// Returns the file extension of a URL's path.
  private func fileSuffix(of line: Range<Int>) -> ArraySlice<UInt8> {
    let path = bytes[line].prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
    guard let point = path.lastIndex(of: UInt8(ascii: ".")) else { return [] }
    let suffix = path[(point + 1)...]
    return suffix.contains(UInt8(ascii: "/")) ? [] : suffix
  }

  /// Resets the state that applies to one segment only.
  private mutating func endSegment() {
    duration = nil
    byteRange = nil
    programDateTime = nil
    isGap = false
  }

  private mutating func checkReference(_ line: Range<Int>, at index: Int) throws(ReelError) {
    guard line.count <= limits.urlByteCount else {
      throw ReelError(.badManifest, "the URL is longer than \(limits.urlByteCount) bytes", place: lines.place)
    }
    if URLResolver.isPlain(bytes[line]) { return }
    let text = bytes.text(in: line)
    let replaced = try variables.substituting(in: text, place: lines.place)
    if replaced != text { playlist.substituted[index] = replaced }
    _ = try resolver.resolve(replaced, place: lines.place)
  }

  private mutating func addByteRange(_ line: Range<Int>, at index: Int) throws(ReelError) {
    guard let byteRange else {
      if !playlist.byteRanges.isEmpty { playlist.byteRanges.append(nil) }
      return
    }
    if playlist.byteRanges.isEmpty {
      playlist.byteRanges = Array(repeating: nil, count: index)
      playlist.byteRanges.reserveCapacity(index + 1)
    }
    var implicitOffset: Int64 = 0
    if byteRange.offset == nil {
      // It is undefined for another file (RFC 8216 §4.3.2.2), but players continue from the previous range.
      implicitOffset = playlist.byteRanges.last??.end ?? 0
      let isSameFile = playlist.records.last.map { record in
        bytes[Int(record.reference)..<Int(record.reference) + Int(record.referenceCount)] == bytes[line]
      }
      if index > 0, isSameFile != true || playlist.byteRanges.last == .some(nil) {
        warnings.add(
          "a byte range without an offset, and no range of the same file before it: taken from byte"
            + " \(implicitOffset)",
          place: lines.place)
      }
    }
    playlist.byteRanges.append(try byteRange.byteRange(implicitOffset: implicitOffset, place: lines.place))
  }

  private mutating func openRun() {
    if isRunOpen && !isGap { return }
    if keySet == nil, !keys.isEmpty {
      if playlist.keySets.last != keys { playlist.keySets.append(keys) }
      keySet = playlist.keySets.count - 1
    }
    playlist.runs.append(
      MediaPlaylist.Run(map: map, keySet: keySet, discontinuity: discontinuity, isGap: isGap, tiles: tiles))
    isRunOpen = true
  }

  private mutating func finish() throws(ReelError) {
    let (first, tooFar) = statedSequence.addingReportingOverflow(skippedCount)
    let (_, overflow) = first.addingReportingOverflow(Int64(playlist.records.count))
    playlist.mediaSequence = first
    guard !tooFar, !overflow else {
      throw ReelError(.badManifest, "the media sequence numbers exceed 63 bits")
    }
    if playlist.records.isEmpty, !playlist.isLive {
      throw ReelError(.badManifest, "the playlist has ended and has no segments")
    }
    if duration != nil { warnings.add("an EXTINF without a segment after it", place: lines.place) }
    if playlist.targetDuration == nil { warnings.add("no EXT-X-TARGETDURATION") }
    playlist.warnings = warnings.warnings
  }

  mutating func attributes(_ value: Range<Int>) throws(ReelError) -> AttributeList {
    try AttributeList(bytes, in: value, variables: &variables, place: lines.place)
  }
}

/// The tags that do not belong to one segment: properties of the playlist, date ranges, and the tags of
/// low-latency HLS.
extension MediaPlaylistParser {
  /// Reads a tag that does not belong to a segment.
  mutating func readPlaylistTag(_ tag: Range<Int>, _ value: Range<Int>) throws(ReelError) {
    switch bytes.text(in: tag) {
    case "#EXT-X-VERSION": warnings.checkVersion(bytes, in: value, place: lines.place)
    case "#EXT-X-TARGETDURATION": readTargetDuration(value)
    case "#EXT-X-MEDIA-SEQUENCE":
      statedSequence = try sequenceNumber(value, "EXT-X-MEDIA-SEQUENCE") ?? statedSequence
    case "#EXT-X-DISCONTINUITY-SEQUENCE": try readDiscontinuitySequence(value)
    case "#EXT-X-PLAYLIST-TYPE": readType(value)
    case "#EXT-X-ENDLIST": playlist.hasEndList = true
    case "#EXT-X-I-FRAMES-ONLY": playlist.holdsIFramesOnly = true
    case "#EXT-X-IMAGES-ONLY": playlist.holdsImagesOnly = true
    case "#EXT-X-TILES": try readTiles(try attributes(value))
    case "#EXT-X-INDEPENDENT-SEGMENTS": playlist.hasIndependentSegments = true
    case "#EXT-X-START":
      let offset = warnings.startOffset(try attributes(value), place: lines.place)
      playlist.startOffset = offset ?? playlist.startOffset
    case "#EXT-X-DEFINE":
      try variables.define(try attributes(value), imported: imported, url: url, place: lines.place)
    case "#EXT-X-DATERANGE": try checkDateRange(try attributes(value))
    case "#EXT-X-PART-INF": checkPartInformation(try attributes(value))
    case "#EXT-X-SERVER-CONTROL": readServerControl(try attributes(value))
    case "#EXT-X-PRELOAD-HINT": try checkPreloadHint(try attributes(value))
    case "#EXT-X-RENDITION-REPORT": try checkRenditionReport(try attributes(value))
    case "#EXT-X-SKIP": try readSkip(try attributes(value))
    case "#EXT-X-STREAM-INF":
      throw ReelError(
        .badManifest, "a variant in a playlist that has segments before it", place: lines.place)
    default: break
    }
  }

  /// EXT-X-PROGRAM-DATE-TIME. An invalid date is kept as text, with a warning.
  mutating func readDate(_ value: Range<Int>) {
    programDateTime = value
    if bytes.isPlainDate(in: value) || WallTime(iso8601: bytes.text(in: value)) != nil { return }
    warnings.add(
      "EXT-X-PROGRAM-DATE-TIME '\(bytes.text(in: value).excerpt)' is not a date", place: lines.place)
  }

  /// EXT-X-BITRATE (draft-pantos-hls-rfc8216bis §4.4.4.8).
  mutating func checkBitRate(_ value: Range<Int>) {
    if let rate = bytes.integer(in: value), rate > 0 { return }
    warnings.add("EXT-X-BITRATE '\(bytes.text(in: value).excerpt)' is not a rate", place: lines.place)
  }

  /// EXT-X-TILES (Image Media Playlist 0.4), which packagers write for each segment, or once for all that follow.
  private mutating func readTiles(_ attributes: AttributeList) throws(ReelError) {
    playlist.holdsImagesOnly = true
    var reader = AttributeReader(attributes)
    var new = ImageTiles(layout: reader["LAYOUT"])
    if let fault = new.fault { warnings.add("EXT-X-TILES: \(fault)", place: lines.place) }
    new.size = reader.value("RESOLUTION") { PixelSize(resolution: $0) }
    new.duration = reader.length("DURATION").flatMap { $0 > .zero ? $0 : nil }
    reader.warn("EXT-X-TILES", in: &warnings, place: lines.place)
    try setTiles(new)
  }

  private mutating func setTiles(_ new: ImageTiles) throws(ReelError) {
    if let tiles, playlist.tiles[tiles] == new { return }
    try check(playlist.tiles.count, upTo: limits.segments, "layouts of tiles")
    playlist.tiles.append(new)
    tiles = playlist.tiles.count - 1
    isRunOpen = false
  }

  /// EXT-X-PART (draft-pantos-hls-rfc8216bis §4.4.4.9).
  mutating func checkPart(_ attributes: AttributeList) throws(ReelError) {
    try check(partCount, upTo: limits.segments, "parts")
    var reader = AttributeReader(attributes)
    guard let reference = reader["URI"], reader.length("DURATION") != nil else {
      warnings.add("EXT-X-PART without a URI or a DURATION that can be read", place: lines.place)
      return
    }
    partCount += 1
    let implicitOffset = lastPart?.reference == reference ? lastPart?.end ?? 0 : 0
    let range = reader.value("BYTERANGE") { text in
      ByteRangeText(text)?.byteRange(implicitOffset: implicitOffset)
    }
    lastPart = (reference, range?.end)
    reader.warn("EXT-X-PART", in: &warnings, place: lines.place)
  }

  // MARK: - Private

  private mutating func readTargetDuration(_ range: Range<Int>) {
    if let (value, _) = ExactSeconds.parse(bytes, in: range) {
      targetDuration = value
      playlist.targetDuration = value.time
    } else {
      warnings.add(
        "EXT-X-TARGETDURATION '\(bytes.text(in: range).excerpt)' is not a number", place: lines.place)
    }
  }

  private mutating func readDiscontinuitySequence(_ value: Range<Int>) throws(ReelError) {
    guard let number = try sequenceNumber(value, "EXT-X-DISCONTINUITY-SEQUENCE") else { return }
    let passed = discontinuity - discontinuitySequence
    discontinuitySequence = Int(min(max(number, Int64(Int32.min)), Int64(Int32.max)))
    discontinuity = discontinuitySequence + passed
    isRunOpen = false
  }

  private mutating func readType(_ value: Range<Int>) {
    let text = bytes.text(in: value)
    let type = text.uppercased()
    playlist.isVOD = type == "VOD"
    if type != "VOD", type != "EVENT" {
      warnings.add("EXT-X-PLAYLIST-TYPE '\(text.excerpt)' is neither VOD nor EVENT", place: lines.place)
    }
  }

  /// EXT-X-DATERANGE (RFC 8216 §4.3.2.7).
  private mutating func checkDateRange(_ attributes: AttributeList) throws(ReelError) {
    try check(dateRangeCount, upTo: limits.tracks, "date ranges")
    guard attributes["ID"] != nil else {
      warnings.add("EXT-X-DATERANGE without ID", place: lines.place)
      return
    }
    dateRangeCount += 1
    var reader = AttributeReader(attributes)
    for name in ["START-DATE", "END-DATE"] { reader.check(name) { WallTime(iso8601: $0) } }
    for name in ["DURATION", "PLANNED-DURATION"] { reader.checkLength(name) }
    reader.warn("EXT-X-DATERANGE", in: &warnings, place: lines.place)
  }

  /// EXT-X-PART-INF (draft-pantos-hls-rfc8216bis §4.4.3.7).
  private mutating func checkPartInformation(_ attributes: AttributeList) {
    var reader = AttributeReader(attributes)
    if reader.length("PART-TARGET") == nil {
      warnings.add("EXT-X-PART-INF without a PART-TARGET that can be read", place: lines.place)
    }
  }

  private mutating func readServerControl(_ attributes: AttributeList) {
    var reader = AttributeReader(attributes)
    reader.checkLength("CAN-SKIP-UNTIL")
    playlist.holdBack = reader.length("HOLD-BACK")
    reader.checkLength("PART-HOLD-BACK")
    reader.warn("EXT-X-SERVER-CONTROL", in: &warnings, place: lines.place)
  }

  /// EXT-X-PRELOAD-HINT (draft-pantos-hls-rfc8216bis §4.4.5.3).
  private mutating func checkPreloadHint(_ attributes: AttributeList) throws(ReelError) {
    try check(preloadHintCount, upTo: limits.tracks, "preload hints")
    guard let type = attributes["TYPE"]?.uppercased(), type == "PART" || type == "MAP",
      attributes["URI"] != nil
    else {
      warnings.add("EXT-X-PRELOAD-HINT without a URI or a known TYPE", place: lines.place)
      return
    }
    preloadHintCount += 1
    var reader = AttributeReader(attributes)
    for name in ["BYTERANGE-START", "BYTERANGE-LENGTH"] { reader.checkInteger(name, in: 0...Int64.max) }
    reader.warn("EXT-X-PRELOAD-HINT", in: &warnings, place: lines.place)
  }

  /// EXT-X-RENDITION-REPORT (draft-pantos-hls-rfc8216bis §4.4.5.4).
  private mutating func checkRenditionReport(_ attributes: AttributeList) throws(ReelError) {
    try check(renditionReportCount, upTo: limits.tracks, "rendition reports")
    guard attributes["URI"] != nil else {
      warnings.add("EXT-X-RENDITION-REPORT without URI", place: lines.place)
      return
    }
    renditionReportCount += 1
    var reader = AttributeReader(attributes)
    for name in ["LAST-MSN", "LAST-PART"] { reader.checkInteger(name, in: 0...Int64.max) }
    reader.warn("EXT-X-RENDITION-REPORT", in: &warnings, place: lines.place)
  }

  private mutating func readSkip(_ attributes: AttributeList) throws(ReelError) {
    guard let skipped = attributes["SKIPPED-SEGMENTS"]?.integer, skipped >= 0 else {
      warnings.add("EXT-X-SKIP without a number of SKIPPED-SEGMENTS", place: lines.place)
      return
    }
    let (sum, overflow) = skippedCount.addingReportingOverflow(skipped)
    guard !overflow else {
      throw ReelError(.badManifest, "EXT-X-SKIP exceeds 63 bits", place: lines.place)
    }
    skippedCount = sum
    warnings.add(
      skipped.counted(
        "segment is skipped, and its duration not known",
        "segments are skipped, and their durations not known"),
      place: lines.place)
  }

  /// Throws `badManifest` if `count` has reached the limit.
  private func check(_ count: Int, upTo limit: Int, _ what: String) throws(ReelError) {
    guard count < limit else {
      throw ReelError(.badManifest, "more than \(limit) \(what)", place: lines.place)
    }
  }

  /// Reads a sequence number. A negative number is accepted, as in other players, and `7.0` is read as 7,
  /// both with a warning. Nil, with a warning, for text that is not a number. Throws `badManifest` for any
  /// other number, because the playlist can't be followed with it.
  private mutating func sequenceNumber(_ value: Range<Int>, _ tag: String) throws(ReelError) -> Int64? {
    if let number = bytes.integer(in: value), number >= 0 { return number }
    let text = bytes.text(in: value)
    if let number = text.wholeNumber {
      let what = number < 0 ? "below 0" : "not a whole number"
      warnings.add("\(tag) '\(text.excerpt)' is \(what): treated as \(number)", place: lines.place)
      return number
    }
    guard value.isEmpty || Double(text) == nil else {
      throw ReelError(
        .badManifest, "\(tag) '\(text.excerpt)' is not a whole number of 64 bits", place: lines.place)
    }
    warnings.add("\(tag) '\(text.excerpt)' is not a number", place: lines.place)
    return nil
  }
}
