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

  /// Media characteristics (RFC 8216 §4.3.4.1) for the roles of DASH (ISO/IEC 23009-1 §5.8.5.5); those of HLS stand
  /// for themselves.
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
