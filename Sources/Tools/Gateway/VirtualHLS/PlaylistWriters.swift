import Foundation
import ReelCore
import ReelManifest

/// Writes the multivariant playlist (RFC 8216 §4.3.4).
struct MultivariantPlaylistWriter {
  let hls: VirtualHLS
  let reference: (VirtualHLS.Track) -> String

  /// The playlist, with a line feed at its end.
  var text: String {
    var text = "#EXTM3U\n#EXT-X-VERSION:7\n"
    if hls.tracks.allSatisfy({ $0.kind == .text || $0.hasIndependentSegments }) {
      text += "#EXT-X-INDEPENDENT-SEGMENTS\n"
    }
    for (number, group) in hls.audioGroups.enumerated() {
      text += audio(group, id: "audio-\(number)")
    }
    let subtitles = hls.tracks.filter { $0.kind == .text }
    let names = Self.names(subtitles)
    for (track, name) in zip(subtitles, names) {
      var attributes = AttributeListWriter(tag: "#EXT-X-MEDIA:")
      attributes.add("TYPE", "SUBTITLES")
      attributes.add("GROUP-ID", quoted: "text")
      if let language = track.language { attributes.add("LANGUAGE", quoted: language) }
      attributes.add("NAME", quoted: name)
      attributes.add("DEFAULT", "NO")
      attributes.add("AUTOSELECT", "YES")
      if track.roles.contains(where: Self.isForced) { attributes.add("FORCED", "YES") }
      add(Self.characteristics(track), to: &attributes)
      attributes.add("URI", quoted: reference(track))
      text += attributes.text + "\n"
    }
    for variant in hls.variants { text += stream(variant, hasSubtitles: !subtitles.isEmpty) }
    return text
  }

  // MARK: - Private

  private func audio(_ group: VirtualHLS.AudioGroup, id: String) -> String {
    var text = ""
    let tracks = group.tracks.map { hls.tracks[$0] }
    // A player may choose between languages by itself, but not between a film and its commentary.
    var selectable: Set<[String]> = []
    for (track, name) in zip(tracks, Self.names(tracks)) {
      let characteristics = Self.characteristics(track)
      let isDefault = track.index == group.defaultTrack
      let isNew = selectable.insert([track.language ?? ""] + characteristics).inserted
      let isSelectable = isDefault || (isNew && !track.roles.contains("commentary"))
      var attributes = AttributeListWriter(tag: "#EXT-X-MEDIA:")
      attributes.add("TYPE", "AUDIO")
      attributes.add("GROUP-ID", quoted: id)
      if let language = track.language { attributes.add("LANGUAGE", quoted: language) }
      attributes.add("NAME", quoted: name)
      attributes.add("DEFAULT", isDefault ? "YES" : "NO")
      attributes.add("AUTOSELECT", isSelectable ? "YES" : "NO")
      add(characteristics, to: &attributes)
      if let channels = track.channels { attributes.add("CHANNELS", quoted: channels) }
      attributes.add("URI", quoted: reference(track))
      text += attributes.text + "\n"
    }
    return text
  }

  private func stream(_ variant: VirtualHLS.Variant, hasSubtitles: Bool) -> String {
    let track = hls.tracks[variant.track]
    var attributes = AttributeListWriter(tag: "#EXT-X-STREAM-INF:")
    attributes.add("BANDWIDTH", String(variant.bandwidth))
    if let average = variant.averageBandwidth { attributes.add("AVERAGE-BANDWIDTH", String(average)) }
    if !variant.codecs.isEmpty {
      attributes.add("CODECS", quoted: variant.codecs.joined(separator: ","))
    }
    if track.kind == .video {
      if let size = track.size { attributes.add("RESOLUTION", "\(size.width)x\(size.height)") }
      if let rate = track.frameRate, rate.isPositive {
        attributes.add("FRAME-RATE", Self.thousandths(rate))
      }
      if let range = track.videoRange, ["SDR", "HLG", "PQ"].contains(range) {
        attributes.add("VIDEO-RANGE", range)
      }
    }
    if let group = variant.audioGroup { attributes.add("AUDIO", quoted: "audio-\(group)") }
    if hasSubtitles { attributes.add("SUBTITLES", quoted: "text") }
    return "\(attributes.text)\n\(reference(track))\n"
  }

  private func add(_ characteristics: [String], to attributes: inout AttributeListWriter) {
    guard !characteristics.isEmpty else { return }
    attributes.add("CHARACTERISTICS", quoted: characteristics.joined(separator: ","))
  }

  /// `29.970` (RFC 8216 §4.3.4.2: rounded to three places).
  private static func thousandths(_ rate: Rational) -> String {
    let numerator = Int64(rate.numerator) * 2000 + Int64(rate.denominator)
    let (whole, rest) = (numerator / (Int64(rate.denominator) * 2)).quotientAndRemainder(dividingBy: 1000)
    let digits = String(rest)
    return "\(whole)." + String(repeating: "0", count: 3 - digits.utf8.count) + digits
  }

  /// Distinct names for menus (RFC 8216 §4.3.4.1.1): the label, or else the language, or else the kind, with
  /// further properties of all but the main one.
  private static func names(_ tracks: [VirtualHLS.Track]) -> [String] {
    var taken: Set<String> = []
    return tracks.map { track in
      var base = track.label ?? ""
      if base.isEmpty {
        base = track.language ?? (track.kind == .audio ? "Audio" : "Subtitles")
        let role = track.roles.first { $0 != "main" && !$0.contains(".") }
        if let role { base += " (\(role))" }
      }
      base = AttributeListWriter.plain(String(base.prefix(200)))
      var name = base
      var number = 2
      while !taken.insert(name).inserted {
        name = "\(base) \(number)"
        number += 1
      }
      return name
    }
  }

  /// Returns the media characteristics (RFC 8216 §4.3.4.1) for the roles of DASH (ISO/IEC 23009-1 §5.8.5.5);
  /// those of HLS stay as they are.
  private static func characteristics(_ track: VirtualHLS.Track) -> [String] {
    var result: [String] = []
    for role in track.roles {
      switch role {
      case "description": result.append("public.accessibility.describes-video")
      case "enhanced-audio-intelligibility":
        result.append("public.accessibility.enhances-speech-intelligibility")
      case "easyreader": result.append("public.easy-to-read")
      case "caption":
        result.append("public.accessibility.transcribes-spoken-dialog")
        result.append("public.accessibility.describes-music-and-sound")
      default:
        if role.contains("."), !role.contains(","), !role.contains(" ") { result.append(role) }
      }
    }
    return Array(result.prefix(16))
  }

  private static func isForced(_ role: String) -> Bool { role == "forced" || role == "forced-subtitle" }
}

/// Writes a media playlist of a track (RFC 8216 §4.3.2, §4.3.3).
struct MediaPlaylistWriter {
  let hls: VirtualHLS
  let track: VirtualHLS.Track
  let reference: (VirtualHLS.Resource) -> String

  /// The playlist, with a line feed at its end.
  var text: String {
    var state = Lines(track: track, start: hls.live?.start, reference: reference)
    for part in track.parts { state.write(part) }
    let target = track.kind == .text && hls.live == nil ? track.targetDuration : hls.targetDuration
    var text = "#EXTM3U\n#EXT-X-VERSION:\(state.version)\n#EXT-X-TARGETDURATION:\(target)\n"
    if hls.live == nil {
      text += "#EXT-X-PLAYLIST-TYPE:VOD\n"
    } else {
      text += "#EXT-X-MEDIA-SEQUENCE:\(track.startIndex)\n"
      text += "#EXT-X-DISCONTINUITY-SEQUENCE:\(max(0, track.parts.first?.list.first?.discontinuity ?? 0))\n"
      // RFC 8216bis §4.4.3.8: at least three target durations, which is what players keep without it.
      if let delay = hls.live?.timing?.delay, delay.seconds > Double(3 * hls.targetDuration) {
        text += "#EXT-X-SERVER-CONTROL:HOLD-BACK=\(delay.seconds.formatted(places: 3))\n"
      }
    }
    if track.hasIndependentSegments { text += "#EXT-X-INDEPENDENT-SEGMENTS\n" }
    text += state.text
    if track.hasEnded { text += "#EXT-X-ENDLIST\n" }
    return text
  }

  // MARK: - Private

  /// The lines so far, and the state at their end.
  private struct Lines {
    let track: VirtualHLS.Track
    /// The wall-clock time of the timeline's zero, for segments without a date.
    let start: WallTime?
    let reference: (VirtualHLS.Resource) -> String
    var text = ""
    /// RFC 8216 §7: 3 for fractions of seconds. Players expect 7 with fragmented MP4.
    var version = 3
    private var discontinuity: Int?
    private var initialization: InitializationReference?
    private var encryption: SegmentEncryption?
    private var isDated = false
    /// The KEYFORMATs in force.
    private var keyFormats: Set<String> = []

    init(
      track: VirtualHLS.Track, start: WallTime?, reference: @escaping (VirtualHLS.Resource) -> String
    ) {
      self.track = track
      self.start = start
      self.reference = reference
    }

    mutating func write(_ part: VirtualHLS.Part) {
      var isBeginning = discontinuity != nil
      part.forEach { index, segment, nanoseconds in
        if isBeginning || (discontinuity != nil && discontinuity != segment.discontinuity) {
          text += "#EXT-X-DISCONTINUITY\n"
          initialization = nil
          isDated = false
        }
        isBeginning = false
        discontinuity = segment.discontinuity
        write(segment, at: index, nanoseconds: nanoseconds)
      }
    }

    // MARK: - Private

    private mutating func write(_ segment: SegmentReference, at index: Int, nanoseconds: Int64) {
      if let map = segment.initialization, map != initialization {
        write(key: map.encryption)
        write(map)
      }
      if segment.encryption != nil || !segment.isFiller { write(key: segment.encryption) }
      if let time = segment.programDateTime ?? start.flatMap({ isDated ? nil : $0 + segment.start }) {
        text += "#EXT-X-PROGRAM-DATE-TIME:\(time)\n"
        isDated = true
      }
      // A range without an end can't be written, except for a gap, which is not requested.
      if segment.isGap || (segment.byteRange != nil && segment.byteRange?.length == nil) {
        require(version: 8)
        text += "#EXT-X-GAP\n"
      }
      writeLength(nanoseconds)
      let media = track.media(of: segment, at: index)
      if media.encryptedPart == nil, let range = segment.byteRange, let length = range.length {
        require(version: 4)
        text += "#EXT-X-BYTERANGE:\(length)@\(range.offset)\n"
      }
      text += reference(media) + "\n"
    }

    private mutating func write(_ map: InitializationReference) {
      require(version: 7)
      var attributes = AttributeListWriter(tag: "#EXT-X-MAP:")
      let resource = track.initialization(map)
      attributes.add("URI", quoted: reference(resource))
      if resource.encryptedPart == nil, let range = map.byteRange, let length = range.length {
        attributes.add("BYTERANGE", "\"\(length)@\(range.offset)\"")
      }
      text += attributes.text + "\n"
      initialization = map
    }

    /// Writes an EXT-X-KEY for each way to get a key, or one that ends the encryption.
    private mutating func write(key: SegmentEncryption?) {
      guard key != encryption else { return }
      encryption = key
      let keys = key.map { track.keys($0, reference: reference) } ?? []
      let formats = Set(keys.map(\.keyFormat))
      // A key stays in force until the next one of its format (RFC 8216 §4.3.2.4).
      if !keyFormats.isSubset(of: formats) { text += "#EXT-X-KEY:METHOD=NONE\n" }
      keyFormats = formats
      for key in keys {
        if key.keyFormat != "identity" { require(version: 5) }
        text += key.text + "\n"
      }
    }

    private mutating func writeLength(_ nanoseconds: Int64) {
      text += "#EXTINF:\(Self.seconds(nanoseconds)),\n"
    }

    private mutating func require(version: Int) { self.version = max(self.version, version) }

    /// Formats seconds with as many digits as necessary, at most 9.
    private static func seconds(_ nanoseconds: Int64) -> String {
      let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
      guard rest != 0 else { return "\(whole)" }
      var digits = String(rest)
      digits = String(repeating: "0", count: 9 - digits.utf8.count) + digits
      while digits.utf8.last == UInt8(ascii: "0") { digits.removeLast() }
      return "\(whole).\(digits)"
    }
  }
}

/// Writes an attribute list (RFC 8216 §4.2). Text from a manifest can't break out of its value.
struct AttributeListWriter {
  private(set) var text: String

  /// - Parameter tag: The tag with its colon, such as `#EXT-X-MEDIA:`.
  init(tag: StaticString) {
    text = "\(tag)"
  }

  /// Adds a number, a resolution or an enumerated string defined by Reel.
  mutating func add(_ name: StaticString, _ value: String) {
    if text.utf8.last != UInt8(ascii: ":") { text += "," }
    text += "\(name)=\(value)"
  }

  /// Adds a quoted string, which can't contain quotes or line breaks.
  mutating func add(_ name: StaticString, quoted value: String) {
    add(name, "\"\(Self.plain(value))\"")
  }

  /// Returns `value` with its quotes replaced by apostrophes, and its control characters and line breaks
  /// escaped.
  static func plain(_ value: String) -> String {
    var result = ""
    for scalar in value.printable.unicodeScalars {
      result.unicodeScalars.append(scalar == "\"" ? "'" : scalar)
    }
    return result
  }
}

/// The container of a track's segments, as far as a manifest shows: file extensions and media types.
enum SegmentContainer: Sendable, Hashable {
  case mp4
  case mpegTS
  /// Audio without a container, by its extension.
  case packedAudio(String)
  case webVTT
  case webM
  /// Text of another kind, such as TTML.
  case otherText

  /// Determines the container from the media type, the presence of an initialization segment, the extension of the
  /// first segment's URL, or the most common container of the format.
  init(mimeType: String?, first segment: SegmentReference, format: ManifestFormat) {
    let pathExtension = segment.url.pathExtension.lowercased()
    let mimeType = mimeType?.split(separator: ";").first.map { String($0).trimmed.lowercased() }
    if let container = mimeType.flatMap({ Self.byMimeType[$0] }) {
      self = container
    } else if let container = Self.byExtension[pathExtension] {
      self = container
    } else {
      self = segment.initialization != nil || format == .dash ? .mp4 : .mpegTS
    }
  }

  /// The extension of a segment that is a resource of its own.
  var segmentExtension: String { self == .mp4 ? "m4s" : fileExtension }

  /// The extension of an initialization segment, or of a file with all segments.
  var fileExtension: String {
    switch self {
    case .mp4: "mp4"
    case .mpegTS: "ts"
    case .packedAudio(let name): name
    case .webVTT: "vtt"
    case .webM: "webm"
    case .otherText: "txt"
    }
  }

  func mediaType(for kind: VirtualHLS.Track.Kind) -> String {
    switch self {
    case .mp4: kind == .audio ? "audio/mp4" : "video/mp4"
    case .mpegTS: "video/mp2t"
    case .packedAudio("mp3"): "audio/mpeg"
    case .packedAudio("ec3"): "audio/eac3"
    case .packedAudio(let name): "audio/\(name)"
    case .webVTT: "text/vtt; charset=utf-8"
    case .webM: kind == .audio ? "audio/webm" : "video/webm"
    case .otherText: "text/plain; charset=utf-8"
    }
  }

  // MARK: - Private

  private static let byMimeType: [String: SegmentContainer] = [
    "video/mp4": .mp4, "audio/mp4": .mp4, "application/mp4": .mp4, "video/iso.segment": .mp4,
    "video/mp2t": .mpegTS, "audio/aac": .packedAudio("aac"), "audio/mpeg": .packedAudio("mp3"),
    "audio/ac3": .packedAudio("ac3"), "audio/eac3": .packedAudio("ec3"), "text/vtt": .webVTT,
    "video/webm": .webM, "audio/webm": .webM, "video/x-matroska": .webM, "audio/x-matroska": .webM,
    "application/ttml+xml": .otherText, "application/x-subrip": .otherText,
  ]

  private static let byExtension: [String: SegmentContainer] = [
    "mp4": .mp4, "m4s": .mp4, "m4v": .mp4, "m4a": .mp4, "m4f": .mp4, "cmfv": .mp4, "cmfa": .mp4, "cmft": .mp4,
    "ts": .mpegTS, "m2ts": .mpegTS, "aac": .packedAudio("aac"), "mp3": .packedAudio("mp3"),
    "ac3": .packedAudio("ac3"), "ec3": .packedAudio("ec3"), "vtt": .webVTT, "webvtt": .webVTT, "webm": .webM,
    "mkv": .webM, "weba": .webM, "ttml": .otherText, "dfxp": .otherText, "xml": .otherText, "srt": .otherText,
  ]
}
