import ReelCore

/// The tags that are not those of one segment: what applies to the playlist, date ranges, and what low latency adds.
extension MediaPlaylistParser {
  /// Reads a tag that is none of a segment's.
  mutating func readPlaylistTag(_ tag: Range<Int>, _ value: Range<Int>) throws(ReelError) {
    switch bytes.text(in: tag) {
    case "#EXT-X-VERSION": playlist.version = warnings.version(bytes, in: value, place: lines.place)
    case "#EXT-X-TARGETDURATION": readTargetDuration(value)
    case "#EXT-X-MEDIA-SEQUENCE":
      statedSequence = try sequenceNumber(value, "EXT-X-MEDIA-SEQUENCE") ?? statedSequence
    case "#EXT-X-DISCONTINUITY-SEQUENCE": try readDiscontinuitySequence(value)
    case "#EXT-X-PLAYLIST-TYPE": readType(value)
    case "#EXT-X-ENDLIST": playlist.hasEndList = true
    case "#EXT-X-I-FRAMES-ONLY": playlist.isIFramesOnly = true
    case "#EXT-X-INDEPENDENT-SEGMENTS": playlist.hasIndependentSegments = true
    case "#EXT-X-START":
      playlist.start = warnings.startPoint(try attributes(value), place: lines.place) ?? playlist.start
    case "#EXT-X-DEFINE":
      try variables.define(try attributes(value), imported: imported, url: url, place: lines.place)
    case "#EXT-X-DATERANGE": try readDateRange(try attributes(value))
    case "#EXT-X-PART-INF": readPartInformation(try attributes(value))
    case "#EXT-X-SERVER-CONTROL": readServerControl(try attributes(value))
    case "#EXT-X-PRELOAD-HINT": try readPreloadHint(try attributes(value))
    case "#EXT-X-RENDITION-REPORT": try readRenditionReport(try attributes(value))
    case "#EXT-X-SKIP": try readSkip(try attributes(value))
    case "#EXT-X-STREAM-INF":
      throw ReelError(
        .badManifest, "a variant in a playlist that has segments before it", place: lines.place)
    default: break
    }
  }

  /// EXT-X-PROGRAM-DATE-TIME: what is no date is kept as text, and told.
  mutating func readDate(_ value: Range<Int>) {
    programDateTime = value
    if bytes.isPlainDate(in: value) || WallTime(iso8601: bytes.text(in: value)) != nil { return }
    warnings.add(
      "EXT-X-PROGRAM-DATE-TIME '\(bytes.text(in: value).excerpt)' is not a date", place: lines.place)
  }

  /// EXT-X-BITRATE, which applies up to the next one.
  mutating func readBitRate(_ value: Range<Int>) {
    let rate = bytes.integer(in: value).flatMap { $0 > 0 ? Int(exactly: $0) : nil }
    if rate == nil {
      warnings.add("EXT-X-BITRATE '\(bytes.text(in: value).excerpt)' is not a rate", place: lines.place)
    }
    let last = playlist.bitRates.last
    if last?.kilobitsPerSecond == rate { return }
    let mark = MediaPlaylist.BitRateMark(
      segment: UInt32(playlist.records.count), kilobitsPerSecond: rate)
    if last?.segment == mark.segment { playlist.bitRates.removeLast() }
    playlist.bitRates.append(mark)
  }

  mutating func readPart(_ attributes: AttributeList) throws(ReelError) {
    try count(playlist.parts.count, upTo: limits.segments, "parts")
    var reader = AttributeReader(attributes)
    let part = MediaPlaylist.Part(&reader, segment: playlist.records.count, after: playlist.parts.last)
    if let part {
      playlist.parts.append(part)
      reader.warn("EXT-X-PART", in: &warnings, place: lines.place)
    } else {
      warnings.add("EXT-X-PART without a URI or a DURATION that can be read", place: lines.place)
    }
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
    let passed = discontinuity - playlist.discontinuitySequence
    playlist.discontinuitySequence = Int(min(max(number, Int64(Int32.min)), Int64(Int32.max)))
    discontinuity = playlist.discontinuitySequence + passed
    isRunOpen = false
  }

  private mutating func readType(_ value: Range<Int>) {
    let text = bytes.text(in: value)
    playlist.type = MediaPlaylist.PlaylistType(rawValue: text.uppercased())
    if playlist.type == nil {
      warnings.add("EXT-X-PLAYLIST-TYPE '\(text.excerpt)' is neither VOD nor EVENT", place: lines.place)
    }
  }

  private mutating func readDateRange(_ attributes: AttributeList) throws(ReelError) {
    try count(playlist.dateRanges.count, upTo: limits.tracks, "date ranges")
    var reader = AttributeReader(attributes)
    guard let range = MediaPlaylist.DateRange(&reader, line: lines.number) else {
      warnings.add("EXT-X-DATERANGE without ID", place: lines.place)
      return
    }
    playlist.dateRanges.append(range)
    reader.warn("EXT-X-DATERANGE", in: &warnings, place: lines.place)
  }

  private mutating func readPartInformation(_ attributes: AttributeList) {
    var reader = AttributeReader(attributes)
    playlist.partTarget = reader.length("PART-TARGET")
    if playlist.partTarget == nil {
      warnings.add("EXT-X-PART-INF without a PART-TARGET that can be read", place: lines.place)
    }
  }

  private mutating func readServerControl(_ attributes: AttributeList) {
    var reader = AttributeReader(attributes)
    playlist.serverControl = MediaPlaylist.ServerControl(&reader)
    reader.warn("EXT-X-SERVER-CONTROL", in: &warnings, place: lines.place)
  }

  private mutating func readPreloadHint(_ attributes: AttributeList) throws(ReelError) {
    try count(playlist.preloadHints.count, upTo: limits.tracks, "preload hints")
    var reader = AttributeReader(attributes)
    guard let hint = MediaPlaylist.PreloadHint(&reader) else {
      warnings.add("EXT-X-PRELOAD-HINT without a URI or a known TYPE", place: lines.place)
      return
    }
    playlist.preloadHints.append(hint)
    reader.warn("EXT-X-PRELOAD-HINT", in: &warnings, place: lines.place)
  }

  private mutating func readRenditionReport(_ attributes: AttributeList) throws(ReelError) {
    try count(playlist.renditionReports.count, upTo: limits.tracks, "rendition reports")
    var reader = AttributeReader(attributes)
    guard let report = MediaPlaylist.RenditionReport(&reader) else {
      warnings.add("EXT-X-RENDITION-REPORT without URI", place: lines.place)
      return
    }
    playlist.renditionReports.append(report)
    reader.warn("EXT-X-RENDITION-REPORT", in: &warnings, place: lines.place)
  }

  private mutating func readSkip(_ attributes: AttributeList) throws(ReelError) {
    guard let skipped = attributes["SKIPPED-SEGMENTS"]?.integer, skipped >= 0 else {
      warnings.add("EXT-X-SKIP without a number of SKIPPED-SEGMENTS", place: lines.place)
      return
    }
    var skip = playlist.skip ?? MediaPlaylist.Skip(segmentCount: 0, removedDateRanges: [])
    let (sum, overflow) = skip.segmentCount.addingReportingOverflow(skipped)
    guard !overflow else {
      throw ReelError(.badManifest, "EXT-X-SKIP leads beyond 63 bits", place: lines.place)
    }
    skip.segmentCount = sum
    let removed = attributes["RECENTLY-REMOVED-DATERANGES"] ?? ""
    skip.removedDateRanges = removed.split(separator: "\t").prefix(limits.tracks).map(String.init)
    playlist.skip = skip
    warnings.add("\(skipped) segments are skipped, and their durations not known", place: lines.place)
  }

  private func count(_ count: Int, upTo limit: Int, _ what: String) throws(ReelError) {
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
      warnings.add("\(tag) '\(text.excerpt)' is \(what): taken as \(number)", place: lines.place)
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
