/// What is known of a finding: `reel check --explain` prints it, and reports take their rules from it.
package struct CatalogueEntry: Sendable {
  /// A kind of a finding.
  package struct Kind: Sendable, Hashable {
    package var name: String
    /// A clause without a full stop.
    package var meaning: String
  }

  package let id: FindingID
  /// The usual level.
  package let level: FindingLevel
  /// A clause without a full stop.
  package let title: String
  /// What it is.
  package let meaning: String
  /// Why it matters to a viewer.
  package let impact: String
  /// How it is measured, with the names of thresholds.
  package let measurement: String
  /// The clauses of standards or the tools that the rule comes from.
  package let source: String
  /// The usual repair, an imperative without a full stop.
  package let fix: String
  /// The kinds; empty for a finding without.
  package let kinds: [Kind]

  fileprivate init(
    _ id: FindingID, level: FindingLevel, title: String, meaning: String, impact: String, measurement: String,
    source: String, fix: String, kinds: [Kind] = []
  ) {
    self.id = id
    self.level = level
    self.title = title
    self.meaning = meaning
    self.impact = impact
    self.measurement = measurement
    self.source = source
    self.fix = fix
    self.kinds = kinds
  }

  /// The thresholds that it depends on.
  package var thresholds: [Threshold] {
    Threshold.allCases.filter { $0.rawValue.hasPrefix(id.rawValue + ".") }
  }
}

/// The texts of all findings.
package enum Catalogue {
  /// All entries, in the order of the ids.
  package static let all = FindingID.allCases.map(entry)

  /// The names that `--ignore` and `--explain` take: ids, and ids with a kind.
  package static var names: [String] {
    all.flatMap { entry in [entry.id.rawValue] + entry.kinds.map { "\(entry.id.rawValue)/\($0.name)" } }
  }

  package static func entry(for id: FindingID) -> CatalogueEntry {
    switch id {
    case .unreachable:
      CatalogueEntry(
        id, level: .error, title: "The source can't be opened",
        meaning: """
          A server refuses the source or does not answer, or the source is no media of a known format.
          """,
        impact: "Nobody sees anything.",
        measurement: """
          An answer of 400 and above after retries, no answer, a failed TLS handshake, or bytes of no \
          known format. If no host answers at all, nothing is known of the stream: the exit code is \
          69.
          """,
        source: "RFC 9110 §15",
        fix: "correct the URL, the login or the certificate",
        kinds: [
          .init(name: "status", meaning: "the answer is an error"),
          .init(name: "network", meaning: "there is no answer"),
          .init(name: "tls", meaning: "the certificate or the handshake is refused"),
          .init(name: "not-media", meaning: "the answer is something else, such as a login page"),
        ])
    case .segmentMissing:
      CatalogueEntry(
        id, level: .error, title: "A listed segment is missing",
        meaning: "A segment that the manifest lists can't be fetched.",
        impact: "Its media is lost, or the player stalls and gives up.",
        measurement: """
          Each sampled segment is fetched, others are asked for by HEAD. Segments marked with EXT-X- \
          GAP and those that left the live window don't count.
          """,
        source: "RFC 8216 §6.2.1",
        fix: "upload the segment, or take it out of the list",
        kinds: [
          .init(name: "status", meaning: "the answer is an error"),
          .init(name: "empty", meaning: "the answer has no bytes"),
          .init(name: "not-media", meaning: "the answer is something else, such as an HTML page"),
        ])
    case .rungDead:
      CatalogueEntry(
        id, level: .error, title: "A rung does not play",
        meaning: "Nothing of a rung can be decoded.",
        impact: """
          Viewers whose bandwidth selects this rung see nothing, or wait until the player gives it up.
          """,
        measurement: "Each rung is read alone: no other takes its place.",
        source: "RFC 8216 §6.3.1",
        fix: "repair the file that is named",
        kinds: [
          .init(name: "playlist", meaning: "its playlist can't be read"),
          .init(name: "init", meaning: "its initialization segment can't be read"),
          .init(name: "key", meaning: "its key can't be fetched"),
          .init(name: "index", meaning: "its segment index can't be read"),
          .init(name: "no-frame", meaning: "its segments hold no frame that can be decoded"),
        ])
    case .decodeError:
      CatalogueEntry(
        id, level: .error, title: "Frames are damaged",
        meaning: "The decoder conceals errors, or references are missing.",
        impact: "Viewers see blocks, smears or a still picture.",
        measurement: """
          Decoding from a key frame on; one damaged frame is a finding, less than decode-error.short a \
          warning. Leading pictures of an open GOP and frames after a missing segment don't count.
          """,
        source: "FFmpeg AV_FRAME_FLAG_CORRUPT, decode_error_flags",
        fix: "encode the segment again")
    case .segmentTruncated:
      CatalogueEntry(
        id, level: .error, title: "A segment is cut off",
        meaning: "A segment has fewer bytes than promised.",
        impact: "The end of the segment is lost.",
        measurement: """
          The bytes against Content-Length, the segment index, the boxes of MP4, and whole packets of \
          MPEG-TS.
          """,
        source: "RFC 9112 §8; ISO/IEC 14496-12 §4.2",
        fix: "upload the segment again")
    case .black:
      CatalogueEntry(
        id, level: .warning, title: "The picture is black",
        meaning: "Frames are black.",
        impact: "Viewers see nothing although the stream plays.",
        measurement: """
          A frame is black if black.share of its luma samples are under 10 %; at least black.start at \
          the beginning, black.run elsewhere. PQ and HLG are mapped first.
          """,
        source: "FFmpeg blackdetect",
        fix: "check the source of the encoder, or cut the black part off",
        kinds: [
          .init(name: "whole", meaning: "all of the sample is black (error)"),
          .init(name: "start", meaning: "the beginning is black"),
          .init(name: "run", meaning: "a part is black"),
        ])
    case .silent:
      CatalogueEntry(
        id, level: .warning, title: "The sound is silent",
        meaning: "The audio never rises above silent.peak.",
        impact: "Viewers hear nothing.",
        measurement: """
          Peaks below silent.peak in all samples, for at least silent.duration and at two places.
          """,
        source: "FFmpeg silencedetect",
        fix: "map the right audio input")
    case .frozen:
      CatalogueEntry(
        id, level: .warning, title: "The picture stands still",
        meaning: "The frames do not change.",
        impact: "Viewers see a still picture.",
        measurement: "No luma sample changes by more than frozen.change for frozen.duration.",
        source: "FFmpeg freezedetect",
        fix: "check the input of the encoder")
    case .segmentNotIndependent:
      CatalogueEntry(
        id, level: .warning, title: "A segment can't be decoded by itself",
        meaning: "A segment does not begin with a frame that decoding can start at.",
        impact: """
          A start, seek or change of rung there takes longer or shows damage. An error for the first \
          segment.
          """,
        measurement: """
          The first access unit: an IDR or IRAP picture with its parameter sets, without leading \
          pictures that need earlier ones.
          """,
        source: "RFC 8216 §3; Apple HLS authoring 7.4; ISO/IEC 23009-1 §4.5",
        fix: "force a key frame at each segment boundary: with ffmpeg -g and -sc_threshold 0",
        kinds: [
          .init(name: "no-key-frame", meaning: "it begins with a picture that needs others"),
          .init(name: "parameter-sets", meaning: "parameter sets are missing"),
          .init(name: "open-gop", meaning: "leading pictures need the segment before"),
        ])
    case .timestampBreak:
      CatalogueEntry(
        id, level: .warning, title: "The timestamps break",
        meaning: "The media of a segment does not continue where the one before ends.",
        impact: "A gap or a jump stalls players or is skipped.",
        measurement: """
          From the end of a segment to the begin of the next: more than timestamp-break.gap is a \
          finding, more than timestamp-break.error an error, timestamp-break.jump a jump. Declared \
          discontinuities don't count.
          """,
        source: "RFC 8216 §4.3.2.3; ISO/IEC 23009-1 §5.3.9.6; hls.js and Shaka skip gaps of 0.1 s",
        fix: "repair the clock of the packager, or declare the discontinuity",
        kinds: [
          .init(name: "gap", meaning: "media is missing"),
          .init(name: "overlap", meaning: "media is there twice"),
          .init(name: "jump", meaning: "the clock jumps"),
          .init(name: "start", meaning: "the first sample is late in its period"),
        ])
    case .trackMissing:
      CatalogueEntry(
        id, level: .error, title: "A track is missing",
        meaning: "A declared track has no media, or ends early.",
        impact: "Viewers lose the picture or the sound.",
        measurement: """
          CODECS and groups against the tracks of segments; the ends of lists differ by more than \
          track-missing.short.
          """,
        source: "RFC 8216 §4.3.4; Apple HLS authoring 8.3",
        fix: "map the track to all rungs",
        kinds: [
          .init(name: "absent", meaning: "there is no media"),
          .init(name: "short", meaning: "its list ends early (warning)"),
        ])
    case .rungContentDiffers:
      CatalogueEntry(
        id, level: .error, title: "Rungs show different content",
        meaning: "Two rungs show different pictures at the same time.",
        impact: "The picture jumps when a player changes the rung.",
        measurement: """
          The correlation of luma at the same times, at least six; below rung-content- \
          differs.correlation, or best when shifted by rung-content-differs.shift.
          """,
        source: "RFC 8216 §4.3.4.2: variants present the same content",
        fix: "encode the rung from the same input",
        kinds: [
          .init(name: "other", meaning: "another picture"),
          .init(name: "shifted", meaning: "the same pictures at other times"),
        ])
    case .segmentDurationMismatch:
      CatalogueEntry(
        id, level: .warning, title: "The stated duration of a segment is wrong",
        meaning: "The manifest states another duration than the media has.",
        impact: "Seeks land at the wrong place, and live players run dry.",
        measurement: """
          EXTINF or S@d against the media: more than segment-duration-mismatch.difference, an error \
          beyond segment-duration-mismatch.error. The last segment doesn't count.
          """,
        source: "RFC 8216 §4.3.2.1; Apple HLS authoring 7.7, 8.1",
        fix: "write the real durations")
    case .bandwidthMismatch:
      CatalogueEntry(
        id, level: .warning, title: "The stated bandwidth is wrong",
        meaning: "The peak bit rate of a rung is not the stated one.",
        impact: """
          Understated: players choose a rung that stalls. Overstated: viewers get a worse rung than \
          they could.
          """,
        measurement: """
          The peak of the segments against BANDWIDTH (RFC 8216 §4.1): above bandwidth- \
          mismatch.understated, below bandwidth-mismatch.overstated.
          """,
        source: "RFC 8216 §4.1, §4.3.4.2; Apple HLS authoring 1.26 to 1.29; ISO/IEC 23009-1 §5.3.5.2",
        fix: "write the measured number",
        kinds: [
          .init(name: "understated", meaning: "the peak is higher"),
          .init(name: "overstated", meaning: "the peak is lower"),
          .init(name: "average", meaning: "the average differs (note)"),
        ])
    case .moovLast:
      CatalogueEntry(
        id, level: .warning, title: "The index stands behind the media",
        meaning: "The moov box of an MP4 file comes after its mdat.",
        impact: "A player must fetch the end of the file before the first frame.",
        measurement: "The order of the boxes; a note for files under moov-last.small.",
        source: "ISO/IEC 14496-12 §8.2",
        fix: "move the index: ffmpeg -i IN -c copy -movflags +faststart OUT")
    case .startBytes:
      CatalogueEntry(
        id, level: .warning, title: "The first frame comes after bytes that it does not need",
        meaning: "Bytes before the end of the first frame could be left out.",
        impact: "The first frame waits for them.",
        measurement: """
          The recorded start is replayed without these bytes; at least start-bytes.cost on a link.
          """,
        source: "replay of the recorded start",
        fix: "put the first frame's bytes first",
        kinds: [
          .init(name: "key-frame", meaning: "the first key frame is large"),
          .init(name: "padding", meaning: "boxes that nobody reads"),
          .init(name: "interleaving", meaning: "other tracks, far ahead"),
          .init(name: "edit", meaning: "samples that an edit list hides"),
          .init(name: "moov", meaning: "an index that is larger than needed"),
          .init(name: "playlist", meaning: "a long playlist"),
        ])
    case .firstRungHeavy:
      CatalogueEntry(
        id, level: .warning, title: "The rung listed first starts slowly",
        meaning: "Another rung would start sooner than the one that is listed first.",
        impact: "Players that begin with the first variant start late.",
        measurement: "The starts of the rungs, replayed; at least first-rung-heavy.cost apart.",
        source: "Apple HLS authoring 1.32",
        fix: "list a middle rung first")
    case .ttfbSlow:
      CatalogueEntry(
        id, level: .warning, title: "The server answers slowly",
        meaning: "The first bytes of answers come late.",
        impact: "Each request of the start waits.",
        measurement: """
          The median from request to first byte, without connecting: above ttfb-slow.median, at least \
          3 answers. It depends on the network of the check.
          """,
        source: "Lighthouse server-response-time",
        fix: "cache at the edge, or speed the origin up",
        kinds: [
          .init(name: "manifest", meaning: "manifests are slow"),
          .init(name: "segment", meaning: "segments are slow"),
          .init(name: "cold", meaning: "only the first answer is slow (note)"),
        ])
    case .redirects:
      CatalogueEntry(
        id, level: .warning, title: "Requests are redirected",
        meaning: "Media, keys or playlists are behind redirects.",
        impact: "Each redirect costs a round trip, often a connection.",
        measurement: "One redirect of media, keys and playlists, two of the source.",
        source: "Apple HLS authoring 8.18",
        fix: "write the final URLs")
    case .noKeepAlive:
      CatalogueEntry(
        id, level: .warning, title: "The server closes connections",
        meaning: "Connections are closed after each answer.",
        impact: "Each request pays for a new connection.",
        measurement: "At least 3 answers after which the server closed.",
        source: "RFC 9112 §9.3",
        fix: "keep connections open on the server")
    case .noRanges:
      CatalogueEntry(
        id, level: .warning, title: "The server ignores byte ranges",
        meaning: "A request for a range gets the whole file.",
        impact: "Starts and seeks in the file fetch too much. An error if the manifest has byte ranges.",
        measurement: "The status of a request for a range: 200 instead of 206.",
        source: "RFC 9110 §14; RFC 8216 §4.3.2.2",
        fix: "enable byte ranges on the server and the CDN")
    case .responseHeaders:
      CatalogueEntry(
        id, level: .warning, title: "Header fields of answers are wrong",
        meaning: "An answer has a wrong type, encoding or length.",
        impact: "Some players reject such answers.",
        measurement: "Content-Type, Content-Encoding and Content-Length of each answer.",
        source: "RFC 8216 §4; Apple HLS authoring 10.4; RFC 9110 §8",
        fix: "configure the server",
        kinds: [
          .init(name: "type", meaning: "text or HTML for media or lists"),
          .init(name: "encoding", meaning: "media is compressed again"),
          .init(name: "length", meaning: "the length is wrong"),
        ])
    case .codecsMismatch:
      CatalogueEntry(
        id, level: .warning, title: "The stated codecs are wrong",
        meaning: "CODECS differs from the media.",
        impact: "Players leave a rung out that they could play, or choose one that they can't.",
        measurement: "CODECS against the parameter sets and the decoded audio.",
        source: "RFC 6381; RFC 8216 §4.3.4.2; Apple HLS authoring 9.1",
        fix: "write the codecs that the media has",
        kinds: [
          .init(name: "family", meaning: "another codec (error)"),
          .init(name: "profile", meaning: "another profile"),
          .init(name: "level", meaning: "a lower level than the media has"),
          .init(name: "missing", meaning: "a codec is not stated"),
        ])
    case .resolutionMismatch:
      CatalogueEntry(
        id, level: .warning, title: "The stated resolution is wrong",
        meaning: "RESOLUTION is neither the coded nor the shown size.",
        impact: "Players limit rungs by size, and choose a wrong one.",
        measurement: "The stated size against the coded, cropped and shown one.",
        source: "RFC 8216 §4.3.4.2; ISO/IEC 23009-1 §5.3.7",
        fix: "write the numbers of the media")
    case .frameRateMismatch:
      CatalogueEntry(
        id, level: .warning, title: "The stated frame rate is wrong",
        meaning: "FRAME-RATE differs from the media.",
        impact: "Devices with a limit choose a wrong rung.",
        measurement: """
          The highest rate of a second: above frame-rate-mismatch.high or below frame-rate- \
          mismatch.low of the stated one.
          """,
        source: "RFC 8216 §4.3.4.2; Apple HLS authoring 9.15",
        fix: "write the number of the media")
    case .aspectDiffers:
      CatalogueEntry(
        id, level: .warning, title: "Rungs have different shapes",
        meaning: "The aspect ratios of rungs differ.",
        impact: "The picture changes its shape with the rung.",
        measurement: "Shown aspect ratios differ by more than aspect-differs.difference in a period.",
        source: "Apple HLS authoring 1.33",
        fix: "scale all rungs to one shape, or state the sample aspect ratio")
    case .rungsNotAligned:
      CatalogueEntry(
        id, level: .warning, title: "Segments of rungs begin at different times",
        meaning: "Segments of two rungs begin at different times.",
        impact: """
          A change of rung fetches media twice, or shows a gap. An error if the manifest claims \
          alignment.
          """,
        measurement: """
          The starts of video segments in media time: more than rungs-not-aligned.difference apart.
          """,
        source: "Apple HLS authoring 8.22; ISO/IEC 23009-1 @segmentAlignment",
        fix: "encode all rungs with the same key frames")
    case .avOffset:
      CatalogueEntry(
        id, level: .warning, title: "Sound and picture begin at different times",
        meaning: "The audio begins before or after the video.",
        impact: "The beginning has no sound or no picture. This is no test of lip synchronization.",
        measurement: """
          The begins of tracks after edit lists and priming: more than av-offset.difference, an error \
          beyond av-offset.error.
          """,
        source: "ITU-R BT.1359",
        fix: "shift one input: ffmpeg -itsoffset, or correct the edit list")
    case .manifestInvalid:
      CatalogueEntry(
        id, level: .warning, title: "The manifest violates its standard",
        meaning: "A playlist or MPD breaks a rule.",
        impact: "Strict players refuse it. An error if a rung is lost.",
        measurement: "The rules of reel manifest --strict, each with line and clause.",
        source: "RFC 8216; ISO/IEC 23009-1",
        fix: "correct the line")
    case .liveStale:
      CatalogueEntry(
        id, level: .error, title: "The live stream stands still",
        meaning: "A live playlist or MPD does not change.",
        impact: "Viewers stall when the window is played.",
        measurement: "Unchanged for live-stale.targets target durations, with --watch.",
        source: "RFC 8216 §6.2.1; ISO/IEC 23009-1 @minimumUpdatePeriod",
        fix: "check the packager and the cache of playlists")
    }
  }
}
