import Foundation
import ReelCore
import ReelManifest
import ReelRules

/// A parser that is fed with what the fuzzer makes up.
///
/// A case fails where it traps, takes too long or too much memory; a `ReelError` is what bad input shall get. What comes
/// out is walked through, as lists are made when they are read.
enum FuzzTarget: String, CaseIterable, Sendable {
  case hlsMultivariant = "hls-multivariant"
  case hlsMedia = "hls-media"
  case mpd
  /// An MPD that is made dynamic, and asked again at other times.
  case mpdLive = "mpd-live"
  /// Media playlists that follow each other as readings of one live playlist, `#NEXT` between them.
  case window
  /// What is wrong with a playlist or MPD by the letter.
  case violations
  /// A `sidx`; the first byte of the input chooses where it stands in its file.
  case sidx
  /// The URL template of segments, in an MPD around it.
  case template
  /// Dates, times and durations.
  case dates

  /// The kind of text that a mutator has to do with.
  enum Shape: Sendable {
    case playlist, xml, binary, text
  }

  var shape: Shape {
    switch self {
    case .hlsMultivariant, .hlsMedia, .window, .violations: .playlist
    case .mpd, .mpdLive: .xml
    case .sidx: .binary
    case .template, .dates: .text
    }
  }

  /// Runs one case.
  func run(_ input: [UInt8]) {
    do {
      switch self {
      case .hlsMultivariant: try readPlaylist(input)
      case .hlsMedia: try readMediaPlaylist(input)
      case .mpd: try readMPD(input)
      case .mpdLive: try readMPD(input.replacingFirst(#""static""#, by: #""dynamic""#))
      case .window: try readWindow(input)
      case .violations: findViolations(input)
      case .sidx: try readIndex(input)
      case .template: try readMPD(Self.mpd(template: input))
      case .dates: try readDates(input)
      }
    } catch let error as ReelError {
      check(error)
    } catch {
      fatalError("an error that is no ReelError: \(error)")
    }
  }

  // MARK: - Private

  /// What time it is: a minute after the seeds' MPDs began.
  static let now = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)

  private static let url = URL(string: "https://origin.example/a/b/manifest?token=1") ?? URL(filePath: "/")

  private func readPlaylist(_ input: [UInt8]) throws {
    let presentation = try ManifestReader().presentation(from: input, format: .hls, url: Self.url)
    Walker.walk(presentation)
    let rest = "#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"a\"\n#EXTINF:1,\n{$a}.ts\n"
    Walker.walk(
      try ManifestReader().mediaPlaylist(
        from: Array(rest.utf8), url: Self.url, variables: presentation.variables))
  }

  private func readMediaPlaylist(_ input: [UInt8]) throws {
    Walker.walk(
      try ManifestReader().mediaPlaylist(from: input, url: Self.url, variables: ["a": "b", "token": "c"]))
    Walker.walk(try ManifestReader().presentation(from: input, format: .hls, url: Self.url))
  }

  private func readMPD(_ input: [UInt8]) throws {
    Walker.walk(try ManifestReader().presentation(from: input, format: .dash, url: Self.url, now: Self.now))
  }

  private func readWindow(_ input: [UInt8]) throws {
    var window: SegmentWindow?
    var rest = input[...]
    var count = 0
    while !rest.isEmpty, count < 8 {
      count += 1
      let end = rest.firstRange(of: Array("#NEXT\n".utf8)) ?? rest.endIndex..<rest.endIndex
      let text = Array(rest[..<end.lowerBound])
      rest = rest[end.upperBound...]
      guard let playlist = try? ManifestReader().mediaPlaylist(from: text, url: Self.url) else { continue }
      if var known = window {
        _ = known.update(playlist.segments, hasEnded: !playlist.isLive)
        window = known
      } else {
        window = SegmentWindow(playlist.segments, identity: .number, hasEnded: !playlist.isLive)
      }
      if let window { Walker.walk(window) }
    }
  }

  private func readIndex(_ input: [UInt8]) throws {
    let choice = input.first ?? 0
    let places: [Int64] = [0, 1_000, 1 << 40, .max - 4_096]
    let times: [MediaTime?] = [
      nil, .zero, MediaTime(value: .max, timescale: 90_000), MediaTime(value: -7, timescale: 1),
    ]
    let place = places[Int(choice & 3)]
    let reference = SegmentIndexReference(
      url: Self.url, indexRange: nil, initialization: nil, start: times[Int(choice >> 2 & 3)] ?? .zero,
      duration: times[Int(choice >> 4 & 3)], timestampOffset: times[Int(choice >> 6)])
    let file = Array(input.dropFirst())
    readIndexByRanges(file, reference)
    Walker.walk(try ManifestReader().segments(fromIndex: file, at: place, of: reference))
  }

  /// As a player does that fetches what is missing, in small ranges.
  private func readIndexByRanges(_ file: [UInt8], _ reference: SegmentIndexReference) {
    var reader = SegmentIndexReader(reference: reference)
    do {
      for _ in 0..<64 {
        guard let missing = reader.missing else { return Walker.walk(try reader.segments()) }
        let start = Int(clamping: min(max(missing.offset, 0), Int64(file.count)))
        let length = Int(clamping: min(missing.length ?? .max, Int64(file.count - start)))
        try reader.add(Array(file[start..<start + length]), at: missing.offset)
      }
    } catch {
      check(error)
    }
  }

  private func findViolations(_ input: [UInt8]) {
    let isXML = input.first { $0 > 0x20 } == UInt8(ascii: "<")
    let format: ManifestFormat = isXML ? .dash : .hls
    let violations = RuleChecker().violations(in: input, format: format, url: Self.url)
    guard violations.count <= 100 else { fatalError("\(violations.count) violations") }
    for violation in violations { check(violation) }
    do {
      _ = try ManifestReader().presentation(from: input, format: format, url: Self.url, now: Self.now)
    } catch {
      // What a media playlist imports is not looked at, and what is not supported is no violation.
      guard
        error.kind == .unsupported || input.firstRange(of: Array("IMPORT".utf8)) != nil || !violations.isEmpty
      else { fatalError("no violation in what can't be read: \(error)") }
    }
  }

  private func readDates(_ input: [UInt8]) throws {
    let text = String(decoding: input, as: UTF8.self)
    if let time = WallTime(iso8601: text) {
      guard WallTime(iso8601: time.description) == time else {
        fatalError("\(time) is not read as it is written")
      }
    }
    _ = WallTime(httpDate: text)
    let line = input.filter { $0 != 10 && $0 != 13 }
    let playlist =
      Array("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-PROGRAM-DATE-TIME:".utf8) + line
      + Array("\n#EXTINF:".utf8) + line + Array("\na.ts\n#EXTINF:1,\nb.ts\n".utf8)
    Walker.walk(try ManifestReader().mediaPlaylist(from: playlist, url: Self.url))
    try readMPD(Self.mpd(dates: input))
  }

  /// An MPD with `input` for its template.
  private static func mpd(template input: [UInt8]) -> [UInt8] {
    let value = escaped(input)
    return Array(
      #"<MPD type="static" mediaPresentationDuration="PT9S"><Period><AdaptationSet mimeType="video/mp4">"#
        .utf8)
      + Array(#"<SegmentTemplate duration="2" startNumber="9223372036854775800" media=""#.utf8) + value
      + Array(#"" initialization=""#.utf8) + value
      + Array(
        #""/><Representation id="v" bandwidth="1"/></AdaptationSet><AdaptationSet mimeType="video/mp4">"#.utf8
      )
      + Array(#"<SegmentTemplate media=""#.utf8) + value
      + Array(#""><SegmentTimeline><S t="5" d="3" r="2" k="3"/></SegmentTimeline></SegmentTemplate>"#.utf8)
      + Array(
        #"<Representation id="é" bandwidth="9223372036854775807"/></AdaptationSet></Period></MPD>"#.utf8)
  }

  /// An MPD with `input` for its dates and durations.
  private static func mpd(dates input: [UInt8]) -> [UInt8] {
    let value = escaped(input)
    var bytes = Array(#"<MPD type="dynamic""#.utf8)
    for name in [
      "availabilityStartTime", "availabilityEndTime", "publishTime", "mediaPresentationDuration",
      "minimumUpdatePeriod", "timeShiftBufferDepth", "suggestedPresentationDelay",
    ] {
      bytes += Array(" \(name)=\"".utf8) + value + Array("\"".utf8)
    }
    bytes += Array("><Period start=\"".utf8) + value + Array("\" duration=\"".utf8) + value
    bytes += Array(
      #""><AdaptationSet mimeType="video/mp4"><SegmentTemplate duration="2" media="$Number$.m4s"/>"#.utf8)
    return bytes
      + Array(
        #"<Representation id="v" bandwidth="1"/></AdaptationSet></Period><UTCTiming schemeIdUri="urn:mpeg:dash:utc:direct:2014" value=""#
          .utf8) + value + Array(#""/></MPD>"#.utf8)
  }

  /// As it may stand in an attribute.
  private static func escaped(_ input: [UInt8]) -> [UInt8] {
    input.flatMap { byte -> [UInt8] in
      switch byte {
      case UInt8(ascii: "\""): Array("&quot;".utf8)
      case UInt8(ascii: "<"): Array("&lt;".utf8)
      case UInt8(ascii: "&"): Array("&amp;".utf8)
      default: [byte]
      }
    }
  }

  /// An error is shown to a person: its text is made, and has an end.
  private func check(_ error: ReelError) {
    let count = error.description.utf8.count
    guard count < 100_000 else { fatalError("an error of \(count) bytes") }
  }
}

extension [UInt8] {
  fileprivate func replacingFirst(_ text: String, by other: String) -> [UInt8] {
    guard let range = firstRange(of: Array(text.utf8)) else { return self }
    return Array(self[..<range.lowerBound]) + Array(other.utf8) + Array(self[range.upperBound...])
  }
}
