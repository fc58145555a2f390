internal import ReelCore

/// What each finding means: the texts of `reel check --explain`.
package enum Catalogue {
  /// The description of a finding.
  package struct Entry: Sendable {
    package let id: FindingID
    /// A clause without a full stop.
    package let title: String
    /// The kinds; empty for an id that has none.
    package let kinds: [Kind]
    /// The usual level of an id without kinds; the highest one of its kinds otherwise.
    package let level: FindingLevel
    /// When the level differs from the usual one; empty if it never does.
    package let otherLevels: String
    /// The fault, in one or two sentences.
    package let meaning: String
    /// Why it matters to a viewer.
    package let effect: String
    /// The method of measurement, and its limits.
    package let measurement: String
    /// The limits that `--set` changes.
    package let thresholds: [Threshold]
    /// Where the rule comes from.
    package let sources: [Source]
    /// An imperative without a full stop.
    package let fix: String
  }

  package struct Kind: Sendable, Hashable {
    package let name: String
    /// The usual level.
    package let level: FindingLevel
    /// A clause without a full stop.
    package let meaning: String
  }

  /// A clause of a standard, or a tool that has the same rule.
  package struct Source: Sendable, Hashable {
    package let name: String
    package let url: String
  }

  /// All entries, in the order of `FindingID`.
  package static let all: [Entry] = FindingID.allCases.map(entry)

  // MARK: - Private

  /// Makes an entry; its level is that of an id without kinds.
  private static func make(
    _ id: FindingID, _ title: String, _ level: FindingLevel? = nil, kinds: [Kind] = [],
    otherLevels: String = "", meaning: String, effect: String, measurement: String,
    thresholds: [Threshold] = [], sources: [Source], fix: String
  ) -> Entry {
    Entry(
      id: id, title: title, kinds: kinds, level: level ?? kinds.map(\.level).max() ?? .warning,
      otherLevels: otherLevels, meaning: meaning, effect: effect, measurement: measurement,
      thresholds: thresholds, sources: sources, fix: fix)
  }

  private static func kind(_ name: String, _ level: FindingLevel, _ meaning: String) -> Kind {
    Kind(name: name, level: level, meaning: meaning)
  }
}

// MARK: - Explanation

extension Catalogue.Entry {
  /// Returns the text that `reel check --explain` prints, without line breaks inside paragraphs.
  ///
  /// - Parameter kind: Nil for all of the entry.
  package func explanation(of kind: Catalogue.Kind?) -> String {
    var lines = [
      kind.map { "\(id.rawValue)/\($0.name) (\($0.level.rawValue)): \($0.meaning)" }
        ?? "\(id.rawValue)\(kinds.isEmpty ? " (\(level.rawValue))" : ""): \(title)",
      "", meaning, "", "For a viewer: \(effect)", "", "Measured: \(measurement)", "", "Fix: \(fix).", "",
    ]
    if kind == nil, !kinds.isEmpty {
      lines.append("Kinds:")
      let width = kinds.map(\.name.count).max() ?? 0
      lines += kinds.map { kind in
        let name = kind.name + String(repeating: " ", count: width - kind.name.count)
        let level = kind.level.rawValue + String(repeating: " ", count: 7 - kind.level.rawValue.count)
        return "  \(name)  \(level)  \(kind.meaning)"
      }
      lines.append("")
    }
    if !otherLevels.isEmpty { lines += ["Level: \(otherLevels)", ""] }
    if !thresholds.isEmpty {
      lines.append("Thresholds (--set):")
      lines += thresholds.map { "  \($0.rawValue)=\($0.compactText)" }
      lines.append("")
    }
    lines.append("Sources:")
    lines += sources.map { "  \($0.name): \($0.url)" }
    return lines.joined(separator: "\n") + "\n"
  }
}

extension Threshold {
  /// The usual value with its unit: `100 ms`.
  package var text: String { "\(usual.value.formatted(places: 2)) \(usual.unit.rawValue)" }

  /// The same as `--set` takes it: `100ms`.
  fileprivate var compactText: String { usual.value.formatted(places: 2) + usual.unit.rawValue }
}

// MARK: - Sources

extension Catalogue.Source {
  fileprivate static func hls(_ section: String) -> Self {
    Self(
      name: "RFC 8216 §\(section)", url: "https://www.rfc-editor.org/rfc/rfc8216#section-\(section)")
  }

  fileprivate static func http(_ section: String, rfc: Int = 9110) -> Self {
    Self(
      name: "RFC \(rfc) §\(section)", url: "https://www.rfc-editor.org/rfc/rfc\(rfc)#section-\(section)")
  }

  fileprivate static func apple(_ clause: String) -> Self {
    Self(
      name: "Apple HLS authoring specification \(clause)",
      url:
        "https://developer.apple.com/documentation/http-live-streaming/hls-authoring-specification-for-apple-devices"
    )
  }

  fileprivate static func dash(_ clause: String) -> Self {
    Self(name: "ISO/IEC 23009-1 \(clause)", url: "https://www.iso.org/standard/83314.html")
  }

  fileprivate static func mp4(_ clause: String) -> Self {
    Self(name: "ISO/IEC 14496-12 \(clause)", url: "https://www.iso.org/standard/83102.html")
  }

  fileprivate static func filter(_ name: String) -> Self {
    Self(name: "FFmpeg \(name)", url: "https://ffmpeg.org/ffmpeg-filters.html#\(name)")
  }

  fileprivate static let faststart = Self(
    name: "FFmpeg -movflags +faststart", url: "https://ffmpeg.org/ffmpeg-formats.html#mov_002c-mp4_002c-ismv")
  fileprivate static let h264 = Self(
    name: "ITU-T H.264 §7.4.1.2", url: "https://www.itu.int/rec/T-REC-H.264")
  fileprivate static let lipSync = Self(
    name: "ITU-R BT.1359", url: "https://www.itu.int/rec/R-REC-BT.1359")
  fileprivate static let lighthouse = Self(
    name: "Lighthouse, initial server response time",
    url: "https://developer.chrome.com/docs/lighthouse/performance/time-to-first-byte")
  fileprivate static let hlsjs = Self(
    name: "hls.js maxBufferHole (0.1 s)", url: "https://github.com/video-dev/hls.js/blob/master/docs/API.md")
  fileprivate static let codecs = Self(
    name: "RFC 6381 §3", url: "https://www.rfc-editor.org/rfc/rfc6381#section-3")
}

// MARK: - Texts

extension Catalogue {
  /// Returns the description of a finding.
  package static func entry(for id: FindingID) -> Entry {
    switch id {
    case .unreachable, .segmentMissing, .rungDead, .decodeError, .segmentTruncated: opening(id)
    case .black, .silent, .frozen, .rungContentDiffers, .trackMissing, .avOffset: content(id)
    case .segmentNotIndependent, .timestampBreak, .segmentDurationMismatch, .rungsNotAligned: timing(id)
    case .moovLast, .startBytes, .firstRungHeavy, .rungTooHeavy: start(id)
    case .notChecked: notChecked(id)
    case .ttfbSlow, .redirects, .noKeepAlive, .noRanges, .responseHeaders, .liveStale: transport(id)
    case .bandwidthMismatch, .codecsMismatch, .resolutionMismatch, .frameRateMismatch, .aspectDiffers,
      .manifestInvalid:
      manifest(id)
    }
  }

  private static func notChecked(_ id: FindingID) -> Entry {
    make(
      id, "Nothing could be judged",
      kinds: [
        kind(Unjudged.Kind.encrypted.rawValue, .error, "it is encrypted, and there is no key for it"),
        kind(
          Unjudged.Kind.unsupported.rawValue, .error, "Reel does not decode its codec, or read its container"),
        kind(Unjudged.Kind.external.rawValue, .error, "it is in another document, which Reel does not read"),
        kind(Unjudged.Kind.empty.rawValue, .error, "it has no segments, or neither video nor audio"),
        kind(Unjudged.Kind.time.rawValue, .error, "the time limit was reached before any of it was decoded"),
        kind(Unjudged.Kind.sample.rawValue, .error, "what was read of it is too little to decode"),
        kind(Unjudged.Kind.leftOut.rawValue, .error, "everything was left out, or is not for playback"),
        kind(Unjudged.Kind.faulty.rawValue, .error, "it can't be read, and no other finding says why"),
      ],
      meaning:
        "No media of the source was decoded, so nothing is known of how it plays. With --fail-on unchecked, each rung of which nothing was decoded is a finding too.",
      effect: "Not known: what was not judged may play or not.",
      measurement:
        "A source counts as judged once a frame or sound of one rung was decoded. Rungs that --rungs leaves out, and those for fast forward and rewind, need not be judged beside others.",
      sources: [.hls("4.3.2.4"), .dash("§5.5")],
      fix: "Give the keys or the time that it needs, or check it with another tool and waive the finding")
  }

  private static func opening(_ id: FindingID) -> Entry {
    switch id {
    case .unreachable:
      make(
        id, "The source can't be opened",
        kinds: [
          kind("status", .error, "the server answers with an error status, also on the retries"),
          kind("network", .error, "no connection, or no answer"),
          kind("tls", .error, "the certificate is not valid for this host, or TLS fails"),
          kind("not-media", .error, "the answer is no playlist, MPD or media file, such as an HTML page"),
        ],
        meaning: "The source can't be read, or is neither a manifest nor media.",
        effect: "Nothing is shown.",
        measurement:
          "The source is requested as a player does, with retries. The format is detected from the content. 401, 403 and 451 are named as refusals.",
        sources: [.http("15.5"), .hls("4")],
        fix: "Correct the URL, the credentials (--header) or the certificate")
    case .segmentMissing:
      make(
        id, "A listed segment is missing",
        kinds: [
          kind("status", .error, "the server answers 404 or another error, also on the retry"),
          kind("empty", .error, "the segment has no bytes"),
          kind("not-media", .error, "the answer is not media, such as an HTML page with status 200"),
        ],
        meaning: "The manifest lists a segment that can't be fetched.",
        effect:
          "Playback stalls or skips the length of the segment; if it is the first one, it may not start.",
        measurement:
          "The segments of the sample are read, and the sizes of all others are asked for with HEAD, or a range of one byte where HEAD is refused. Left out: EXT-X-GAP, segments that left a live window, and a last DASH segment of less than 100 ms.",
        sources: [.hls("6.2.1"), .dash("§5.3.9")],
        fix: "Upload the segment again, mark it with EXT-X-GAP, or shorten the list")
    case .rungDead:
      make(
        id, "A rung does not play",
        kinds: [
          kind("playlist", .error, "its media playlist can't be read"),
          kind("init", .error, "its initialization segment can't be read"),
          kind("key", .error, "its key can't be fetched"),
          kind("index", .error, "its segment index (sidx) can't be read"),
          kind("no-frame", .error, "its segments arrive, and no frame or sound can be decoded"),
          kind("no-answer", .error, "its segments do not arrive within the time that the check has"),
        ],
        meaning: "Each rung is read alone. Nothing of this one can be shown or heard.",
        effect: "A player that chooses the rung gives up on it, after a delay, or stops.",
        measurement:
          "The rung is opened without any other rung to fall back on. A key that was not given to the check and an unknown codec count as not checked.",
        sources: [.hls("4.3.4.2"), .dash("§5.3.5")],
        fix: "Publish the named file, or remove the rung from the manifest")
    case .decodeError:
      make(
        id, "Frames are damaged", .error,
        otherLevels: "A warning if less than \(Threshold.decodeErrorShort.text) are damaged.",
        meaning:
          "The decoder conceals errors, misses references or rejects packets, or bytes are no part of the container, although the segment arrived whole.",
        effect: "Blocks, smears or gaps until the next key frame.",
        measurement:
          "Frames are decoded from the key frame before them and counted if the decoder reports concealment or a missing reference. Left out: leading frames of an open GOP, the first audio packet of a run, and frames after a missing segment.",
        thresholds: [.decodeErrorShort], sources: [.apple("7"), .h264],
        fix: "Encode the segment again, or upload it again")
    default:
      make(
        id, "A segment is cut off", .error,
        otherLevels: "A warning if the rest came with another request, as not all players ask for it.",
        meaning: "Fewer bytes arrive than the Content-Length, an index, a byte range or a box says.",
        effect: "The missing part is not shown; some players stop.",
        measurement:
          "The received bytes are compared with all sizes that are stated. An MPEG-TS packet that is cut counts too. The newest segment of a live presentation and trailing bytes are left out. Answers that broke off are continued with a range request.",
        sources: [.http("8.6"), .mp4("§4.2")],
        fix: "Upload the segment again, and check whether the origin closes connections early")
    }
  }

  private static func content(_ id: FindingID) -> Entry {
    switch id {
    case .black:
      make(
        id, "The picture is black",
        kinds: [
          kind("whole", .error, "every frame that was read is black"),
          kind("start", .warning, "the stream begins with black"),
          kind("run", .warning, "black lasts within the stream"),
        ],
        meaning: "The picture is black, although the stream plays.",
        effect: "The viewer sees nothing: at the start, for longer than the start-up takes.",
        measurement:
          "A frame is black if \(Threshold.blackShare.text) of its samples are below 10 % of the luma range and it has no structure. Reported from \(Threshold.blackStart.text) at the start, \(Threshold.blackRun.text) elsewhere. Dark scenes and fades are left out.",
        thresholds: [.blackShare, .blackStart, .blackRun], sources: [.filter("blackdetect")],
        fix: "Trim the black, or check whether the encoder lost its input")
    case .silent:
      make(
        id, "The sound is silent", .warning,
        meaning: "The audio decodes and never rises above \(Threshold.silentPeak.text)FS.",
        effect: "The viewer hears nothing.",
        measurement:
          "The peak of all decoded audio, at least \(Threshold.silentDuration.text) from two places of the timeline, or from the whole of it. A quiet passage or a silent intro is not reported.",
        thresholds: [.silentPeak, .silentDuration], sources: [.filter("silencedetect")],
        fix: "Map the right audio input of the encoder")
    case .frozen:
      make(
        id, "The picture is frozen", .warning,
        meaning: "Frames follow each other and show the same.",
        effect: "The viewer sees a still and takes it for a stall.",
        measurement:
          "No luma sample changes by more than \(Threshold.frozenChange.text) for \(Threshold.frozenDuration.text), or six times that if the average change is below a quarter of it: coding a still picture again changes as much. Black frames are left out.",
        thresholds: [.frozenChange, .frozenDuration], sources: [.filter("freezedetect")],
        fix: "Check whether the encoder lost its input")
    case .rungContentDiffers:
      make(
        id, "Rungs show different content",
        kinds: [
          kind("other", .error, "other pictures than the rest of the ladder"),
          kind("shifted", .error, "the same pictures, earlier or later"),
        ],
        meaning: "Rungs are encodings of one programme at one time, and this one is not.",
        effect: "The picture jumps, repeats or changes to another programme at each change of rung.",
        measurement:
          "Luma planes of the rungs are compared at 6 to 48 equal times. Reported below a mean correlation of \(Threshold.contentCorrelation.text), or if they match better at a shift of \(Threshold.contentShift.text) or more. Flat and damaged frames are left out.",
        thresholds: [.contentCorrelation, .contentShift], sources: [.hls("6.2.4"), .dash("§5.3.3")],
        fix: "Map the right input to the rung, and start all encoders from the same frame")
    case .trackMissing:
      make(
        id, "A track is missing",
        kinds: [
          kind("absent", .error, "no segment has the track"),
          kind("short", .warning, "the track or the list ends before the others"),
        ],
        meaning: "The manifest or the other rungs have a track that this one lacks, or has less of.",
        effect: "No sound or no picture, from the start or from the end of the shorter track.",
        measurement:
          "CODECS and groups are compared with the tracks of the segments; lists and tracks may be \(Threshold.trackShort.text) shorter within their period. Audio-only variants are left out.",
        thresholds: [.trackShort], sources: [.hls("4.3.4.1.1"), .apple("8.3")],
        fix: "Map audio and video to all rungs, in full length")
    default:
      make(
        id, "Sound and picture begin at different times", .warning,
        otherLevels: "An error above \(Threshold.avOffsetError.text).",
        meaning: "One track begins later than the other, after edit lists and priming.",
        effect: "The stream begins without sound or with a still picture.",
        measurement:
          "The first samples of both tracks are compared: \(Threshold.avOffset.text), the limit at which most people notice late sound. It does not test lip synchronization.",
        thresholds: [.avOffset, .avOffsetError], sources: [.lipSync, .mp4("§8.6.6")],
        fix: "Shift a track with -itsoffset, or write an edit list")
    }
  }

  private static func timing(_ id: FindingID) -> Entry {
    switch id {
    case .segmentNotIndependent:
      make(
        id, "A segment can't be decoded by itself",
        kinds: [
          kind("no-key-frame", .warning, "it does not begin with a key frame"),
          kind("parameter-sets", .warning, "its key frame comes without SPS and PPS"),
          kind(
            "open-gop", .warning,
            "its first frames need the segment before, though it is declared independent"),
        ],
        otherLevels: "An error for the first segment, where playback starts.",
        meaning: "Decoding can't start at the beginning of the segment.",
        effect:
          "After a start, seek or change of rung at this segment, frames are missing or broken up to the next key frame.",
        measurement:
          "The first access unit of each segment that was read must be an IDR or IRAP picture with its parameter sets. Open GOPs are reported only under EXT-X-INDEPENDENT-SEGMENTS or startWithSAP=1.",
        sources: [.hls("3"), .hls("4.3.5.1"), .apple("7.4"), .dash("§5.3.3")],
        fix: "Cut segments at IDR frames: fixed GOPs with -g and -sc_threshold 0, or -force_key_frames")
    case .timestampBreak:
      make(
        id, "The timestamps break",
        kinds: [
          kind("gap", .warning, "time without audio or video between or within segments"),
          kind("overlap", .warning, "a segment begins before the end of the one before"),
          kind("jump", .error, "the timestamps leap, and no discontinuity is declared"),
          kind(
            "start", .warning,
            "the media does not begin with its period (DASH), or packed audio does not state its time"),
        ],
        otherLevels:
          "An error above \(Threshold.timestampGapError.text), otherwise a warning. A gap that EXT-X-GAP, a SegmentTimeline or the starts of periods declare is a note.",
        meaning: "A segment does not begin where the one before it ends, and the manifest does not say so.",
        effect: "A stall, a jump, repeated media or drifting sound.",
        measurement:
          "The end of a track in one segment is compared with its beginning in the next: more than \(Threshold.timestampGap.text); from \(Threshold.timestampJump.text) on it is a jump. Left out: wraps of 33 bits, declared discontinuities and periods, edit lists.",
        thresholds: [.timestampGap, .timestampGapError, .timestampJump],
        sources: [.hls("3.4"), .hls("4.3.2.3"), .dash("§5.3.9.6"), .hlsjs],
        fix: "Correct the packager's clock, or declare the break (EXT-X-DISCONTINUITY, a period)")
    case .segmentDurationMismatch:
      make(
        id, "The stated duration of a segment is wrong", .warning,
        otherLevels: "An error above \(Threshold.durationMismatchError.text).",
        meaning: "EXTINF or S@d differs from the duration of the media.",
        effect: "Seeks land beside their target, and the timeline drifts.",
        measurement:
          "The stated duration is compared with that of the samples, and with the distance from the first key frame to that of the next segment: \(Threshold.durationMismatch.text). For a constant @duration, only the sum is. The last segment is left out.",
        thresholds: [.durationMismatch, .durationMismatchError],
        sources: [.hls("4.3.2.1"), .apple("8.1"), .dash("§5.3.9.6")], fix: "Write the real durations")
    default:
      make(
        id, "Segments of rungs begin at different times", .warning,
        otherLevels: "An error if the manifest claims alignment (segmentAlignment).",
        meaning: "Segments with the same place in their lists begin apart in media time.",
        effect: "At a change of rung media is fetched twice, repeated or skipped.",
        measurement:
          "The first video timestamps are compared within a group: more than a frame, at least \(Threshold.alignment.text). Audio is not compared.",
        thresholds: [.alignment], sources: [.hls("6.2.4"), .apple("8.22"), .dash("§5.3.3.2")],
        fix: "Encode all rungs with the same GOPs, and cut them at the same frames")
    }
  }

  private static func start(_ id: FindingID) -> Entry {
    switch id {
    case .moovLast:
      make(
        id, "The index comes after the media", .warning,
        otherLevels: "A note below \(Threshold.moovSmallFile.text).",
        meaning: "The moov box comes after mdat, so a player must find it before it can decode.",
        effect:
          "The first frame waits for one or two more requests, or for the whole file without byte ranges.",
        measurement:
          "The order of the boxes. The cost is the recorded start, replayed with the index in front. Fragmented files are left out.",
        thresholds: [.moovSmallFile], sources: [.mp4("§6.2.3"), .faststart],
        fix: "Move the index to the front: ffmpeg -i IN -c copy -movflags +faststart OUT")
    case .startBytes:
      make(
        id, "The first frame comes after bytes that it does not need",
        kinds: [
          kind("key-frame", .warning, "the first key frame is larger than a second of its track"),
          kind("padding", .warning, "null packets, free boxes or other padding"),
          kind("interleaving", .warning, "samples of other tracks, more than 0.5 s ahead"),
          kind("edit", .warning, "frames that an edit list hides are fetched and decoded"),
          kind("moov", .warning, "the index holds metadata that the first frame does not need"),
          kind("playlist", .warning, "comments or white space in the manifest"),
        ],
        meaning: "Bytes that stand before the end of the first frame, and that it does not need.",
        effect: "The first frame comes later by the time these bytes take.",
        measurement:
          "The start is recorded and replayed on each link with these bytes removed: \(Threshold.startBytes.text) or more on a link. Audio of 0.5 s beside the first frame is usual.",
        thresholds: [.startBytes], sources: [.mp4("§6.2.3"), .faststart],
        fix: "Per kind: limit key frames with -maxrate, package without padding, cut at a key frame")
    case .rungTooHeavy:
      make(
        id, "A rung is too heavy for the links",
        kinds: [
          kind("rung", .warning, "none of the links carries this rung; one carries another rung"),
          kind("all", .error, "no rung plays on a link"),
        ],
        otherLevels: "all is a warning if another of the links carries a rung.",
        meaning: "The media needs more than the link brings, on average or in a part of it.",
        effect: "Playback stalls again and again; a player that can change rungs has a lower one, or none.",
        measurement:
          "Only for links that --link names. Each rung is played with its audio, by the sizes and durations of its segments, at most 10 minutes: by a player like Reel's, which stays with the rung. It stalls \(Threshold.rungTooHeavyStall.text) or more in all. Not judged if sizes are not known.",
        thresholds: [.rungTooHeavyStall], sources: [.apple("1.26 to 1.29"), .hls("6.3.1")],
        fix: "Add a lower rung, or encode for the links that viewers have")
    default:
      make(
        id, "The rung listed first starts slowly", .warning, otherLevels: "A note for DASH.",
        meaning: "Players without a measurement begin with the first variant, and this one is heavy.",
        effect: "The first frame comes later than with a middle rung.",
        measurement:
          "By arithmetic, for a player that loads whole segments: the time until the manifests, the initialization and the whole first segments of a rung and of its audio have crossed the link, for the first and for a middle rung. They are \(Threshold.firstRungHeavy.text) apart, and one takes half as long again as the other.",
        thresholds: [.firstRungHeavy], sources: [.apple("1.32"), .hls("6.3.1")],
        fix: "List a middle rung first")
    }
  }

  private static func transport(_ id: FindingID) -> Entry {
    switch id {
    case .ttfbSlow:
      make(
        id, "The server answers slowly",
        kinds: [
          kind("manifest", .warning, "manifests and playlists"), kind("segment", .warning, "media"),
          kind("cold", .note, "only the first answer, as from a cache that has to fill"),
        ],
        meaning: "The time from a request to the first byte of the answer, less the round trip.",
        effect: "Each request of the start adds this wait to the first frame.",
        measurement:
          "The median of at least 3 answers is above \(Threshold.ttfbSlow.text). The time to connect stands for the round trip and is subtracted.",
        thresholds: [.ttfbSlow], sources: [.lighthouse], fix: "Cache manifests and media near viewers")
    case .redirects:
      make(
        id, "Requests are redirected", .warning, otherLevels: "A note for one hop of the source alone.",
        meaning: "Media, keys or playlists answer with a redirect, or the source with two or more.",
        effect: "Each hop costs a round trip, and a connection if the host differs.",
        measurement: "Redirected requests are counted. Reported for any but one hop of the source.",
        sources: [.apple("8.18"), .http("15.4")], fix: "Write the final URLs into the manifest")
    case .noKeepAlive:
      make(
        id, "The server closes connections", .warning,
        meaning: "The server ends connections that could carry the next request.",
        effect: "Each request pays for a new connection and TLS handshake.",
        measurement:
          "At least 3 answers, and half of a host's, announce the end (Connection: close), or are followed by it at once. Errors, after which servers may end a connection, and connections that were idle for a second are left out.",
        sources: [.http("9.3", rfc: 9112)], fix: "Turn on persistent connections in the server")
    case .noRanges:
      make(
        id, "The server ignores byte ranges", .warning,
        otherLevels: "An error if the manifest lists byte ranges.",
        meaning: "The server sends the whole resource (200) for a range request.",
        effect: "Players can't seek, read the index alone, or fetch one segment of a file.",
        measurement: "The status of range requests. 206 without Accept-Ranges is fine.",
        sources: [.http("14"), .hls("4.3.2.2")],
        fix: "Serve ranges (Accept-Ranges: bytes, 206), also at the CDN")
    case .responseHeaders:
      make(
        id, "Header fields of answers are wrong",
        kinds: [
          kind("type", .warning, "text as the type of media, or HTML as that of a playlist"),
          kind("encoding", .warning, "media is compressed (Content-Encoding)"),
          kind("length", .warning, "HEAD and GET state different lengths, or none is stated"),
        ],
        otherLevels: "A note for types that no player rejects, and for an absent Content-Length.",
        meaning: "Content-Type, Content-Encoding or Content-Length do not fit the body.",
        effect: "Some players refuse the resource, can't request ranges, or can't tell a cut-off answer.",
        measurement:
          "The header fields of all answers. Accepted: application/x-mpegurl, octet-stream, compressed playlists.",
        sources: [.apple("10.4"), .http("8.3")], fix: "Correct the configuration of the server")
    default:
      make(
        id, "The live stream is not updated", .error,
        meaning: "The playlist or MPD lists nothing new, or can't be read, for longer than it may.",
        effect: "Playback stalls once the window is played.",
        measurement:
          "The presentation is watched (--watch) for at least 3 target durations: no new segment for more than \(Threshold.liveStale.usual.value.formatted(places: 2)) target durations. Age and max-age are named if a cache is the cause.",
        thresholds: [.liveStale], sources: [.hls("6.2.1"), .dash("§5.4")],
        fix: "Look at the encoder, the packager and the lifetime in caches")
    }
  }

  private static func manifest(_ id: FindingID) -> Entry {
    switch id {
    case .bandwidthMismatch:
      make(
        id, "The stated bandwidth is wrong",
        kinds: [
          kind("understated", .warning, "the peak is higher"),
          kind("overstated", .warning, "the peak is much lower"),
          kind("average", .note, "AVERAGE-BANDWIDTH differs by more than 10 %"),
        ],
        meaning: "BANDWIDTH or @bandwidth differs from the peak of the segments.",
        effect:
          "Understated: viewers get a rung that their link can't carry, and stall. Overstated: they get a worse picture than they could.",
        measurement:
          "The peak of neighbouring segments, with that of the audio: above \(Threshold.bandwidthUnderstated.text) (live \(Threshold.bandwidthUnderstatedLive.text)), or below \(Threshold.bandwidthOverstated.text), which needs the sizes of all segments. For DASH, the rate at which a buffer does not run out.",
        thresholds: [.bandwidthUnderstated, .bandwidthUnderstatedLive, .bandwidthOverstated],
        sources: [.hls("4.3.4.2"), .apple("1.26 to 1.29"), .dash("§5.3.5.2")],
        fix: "Write the measured number")
    case .codecsMismatch:
      make(
        id, "The stated codecs are wrong",
        kinds: [
          kind("family", .error, "another codec than stated"),
          kind("profile", .warning, "another profile or AAC object type"),
          kind("level", .warning, "a higher level than stated"),
          kind("missing", .warning, "a codec is not stated"),
        ],
        otherLevels: "A note if no rung states any codec.",
        meaning: "CODECS or @codecs differs from the media.",
        effect:
          "Players choose a decoder by it: they reject a rung that would play, or fail on one they accept.",
        measurement:
          "The string is compared with SPS, hvcC and the decoded audio. avc1 and avc3, hvc1 and hev1 count as equal, and a level may be stated too high.",
        sources: [.apple("9.1"), .hls("4.3.4.2"), .codecs], fix: "Write the codecs as they are")
    case .resolutionMismatch:
      make(
        id, "The stated resolution is wrong", .warning,
        meaning: "RESOLUTION, or @width and @height, is none of the coded, cropped and shown sizes.",
        effect: "Players choose a rung by it that is too small or too large for the window.",
        measurement:
          "The stated size is compared with decoded frames, with rotation, sample aspect and cropping in mind; 2 pixels are tolerated.",
        sources: [.hls("4.3.4.2"), .dash("§5.3.7.2")], fix: "Write the size as it is")
    case .frameRateMismatch:
      make(
        id, "The stated frame rate is wrong", .warning,
        meaning: "FRAME-RATE or @frameRate differs from the media.",
        effect: "Players choose by it: devices get a rate that they drop frames of, or are denied one.",
        measurement:
          "The highest rate of any second is above \(Threshold.frameRateHigh.text) or below \(Threshold.frameRateLow.text) of the stated one. Variable rates may be lower; fields and 1000/1001 are known.",
        thresholds: [.frameRateHigh, .frameRateLow], sources: [.hls("4.3.4.2"), .dash("§5.3.7.2")],
        fix: "Write the frame rate as it is")
    case .aspectDiffers:
      make(
        id, "Rungs have different shapes", .warning,
        meaning: "The shown width to height of a rung differs from that of the others.",
        effect: "The picture changes its shape at a change of rung.",
        measurement:
          "The shown sizes of decoded frames, with their sample aspect ratio, within a period: \(Threshold.aspect.text) apart.",
        thresholds: [.aspect], sources: [.apple("1.33"), .dash("§5.3.3.2")],
        fix: "Scale all rungs alike, or write the sample aspect ratio")
    default:
      make(
        id, "The manifest violates its standard", .warning,
        otherLevels: "An error if a rung is lost by it; a note if no player stumbles over it.",
        meaning: "A rule of RFC 8216 or ISO/IEC 23009-1 is violated, with the line and the clause.",
        effect: "Some players refuse the manifest, or read it otherwise than it is meant.",
        measurement:
          "Each line or element is held against the rules. Violations of one clause in one document are one finding.",
        sources: [.hls("4"), .dash("§5")], fix: "Write the line as the clause says")
    }
  }
}
