import ReelCore

/// The tags that do not belong to one segment: properties of the playlist, date ranges, and those of low
/// latency.
extension MediaPlaylistParser {
  /// Reads a tag that is none of a segment's.
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

  /// Throws `badManifest` if there are as many of something already as there may be.
  private func check(_ count: Int, upTo limit: Int, _ what: String) throws(ReelError) {
    guard count < limit else {
      throw ReelError(.badManifest, "more than \(limit) \(what)", place: lines.place)
    }
  }

  /// A sequence number. A negative number is accepted, as in other players, and `7.0` is read as 7, both with a
  /// warning. Nil, with a warning, for text that is not a number. Throws `badManifest` for any other number, because
  /// the playlist can't be followed with it.
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
