package import Foundation
public import ReelCore
public import ReelManifest

/// A complete presentation as HLS: a multivariant playlist and media playlists (RFC 8216).
///
/// With it, a player that supports HLS only can play a DASH presentation. `Gateway` serves the playlists.
///
/// - **Variants.** From DASH, each video rung is combined with each audio group, up to 64 variants; beyond that, rungs
///   and groups are paired by rank. Separate audio forms one group for each codec, number of channels and quality, and
///   each group offers every language. From HLS, the groups stay as they are. WebVTT becomes subtitles.
/// - **Periods.** A track continues in each period with the rung of the same id, or else with the nearest one.
///   EXT-X-DISCONTINUITY separates the periods. If a period lacks video, audio or text, EXT-X-GAP segments replace it,
///   so all playlists have the same discontinuities.
/// - **Durations.** A segment lasts until the start of the next one. Boundaries are rounded to nanoseconds, so the sum
///   of the durations does not drift. Segments are cut where periods meet, but not at the start and end of the
///   presentation.
///
/// Trick-mode tracks, images, WebM, text other than WebVTT files, and unplayable tracks are left out; see `warnings`.
///
/// FFmpeg's HLS demuxer keeps the first EXT-X-MAP, so it decodes later periods wrongly if their initialization segments
/// differ.
public struct VirtualHLS: Sendable {
  /// Video first, then audio, then text, each in manifest order.
  package let tracks: [Track]
  /// The groups and rungs that were left out, each with the reason; at most 100.
  public let warnings: [ReelError]
  let variants: [Variant]
  let audioGroups: [AudioGroup]
  /// The longest video or audio segment in whole seconds: the same for all playlists, as RFC 8216 §6.2.4 demands.
  let targetDuration: Int64

  /// The maximum number of segments in all tracks together. Each is read once.
  static let segmentLimit = 2_000_000

  /// Plans the playlists of a presentation. Rungs whose segments are not known yet are left out.
  ///
  /// - Throws: `ReelError` of kind `unsupported` for a live presentation, for more than 2,000,000 segments in all
  ///   tracks, or if no track is left, with the reasons.
  public init(_ presentation: Presentation) throws(ReelError) {
    guard !presentation.isLive else {
      throw ReelError(.unsupported, "a live presentation can't be converted to HLS")
    }
    var planner = VirtualHLSPlanner(presentation)
    let plan = try planner.plan()
    tracks = plan.tracks
    variants = plan.variants
    audioGroups = plan.audioGroups
    warnings = planner.warnings
    let count = tracks.reduce(0) { $0 + $1.segmentCount }
    guard count <= Self.segmentLimit else {
      throw ReelError(.unsupported, "\(count) segments in all tracks, more than \(Self.segmentLimit)")
    }
    targetDuration = tracks.lazy.filter { $0.kind != .text }.map(\.targetDuration).max() ?? 1
  }

  /// Returns the track with a name such as `video-0`.
  package func track(named name: some StringProtocol) -> Track? {
    tracks.first { $0.name == name }
  }

  /// Returns the multivariant playlist (RFC 8216 §4.3.4). `reference` returns the URI of a track's media playlist.
  package func multivariantPlaylist(
    reference: @escaping (Track) -> String = { "\($0.name).m3u8" }
  ) -> String {
    MultivariantPlaylistWriter(hls: self, reference: reference).text
  }

  /// Returns the media playlist of a track (RFC 8216 §4.3.2, §4.3.3). `reference` returns the URI of a resource, by
  /// default its own URL.
  package func mediaPlaylist(
    of track: Track,
    reference: @escaping (Resource) -> String = { $0.url.absoluteString.withoutUserInformation }
  ) -> String {
    let target = track.kind == .text ? track.targetDuration : targetDuration
    return MediaPlaylistWriter(track: track, targetDuration: target, reference: reference).text
  }
}

extension VirtualHLS {
  /// An EXT-X-STREAM-INF and the playlist that follows it.
  struct Variant: Sendable {
    /// Index in `tracks`.
    var track: Int
    /// Index in `audioGroups`; nil without audio, or with muxed audio.
    var audioGroup: Int?
    var bandwidth: Int64
    var averageBandwidth: Int64?
    /// RFC 6381 strings; empty unless known for each part.
    var codecs: [String]
  }

  /// The EXT-X-MEDIA tags of one GROUP-ID.
  struct AudioGroup: Sendable {
    /// Indices in `tracks`.
    var tracks: [Int]
    /// One of `tracks`.
    var defaultTrack: Int
  }
}

extension VirtualHLS {
  /// A media playlist: one rung through all periods.
  package struct Track: Sendable {
    package enum Kind: String, Sendable {
      /// Video, with or without muxed audio.
      case video
      case audio
      /// WebVTT.
      case text
    }

    /// The index in `VirtualHLS.tracks`.
    package let index: Int
    package let kind: Kind
    /// The kind and a number, counted from 0, such as `video-0`. It can be part of a path.
    package let name: String
    /// The properties of the rungs, the best of all periods.
    package let size: PixelSize?
    package let bitsPerSecond: Int?
    package let averageBitsPerSecond: Int?
    package let codecs: [String]
    package let frameRate: Rational?
    package let language: String?
    package let label: String?
    package let roles: [String]
    let videoRange: String?
    let channels: String?
    let container: SegmentContainer
    let hasIndependentSegments: Bool
    let parts: [Part]

    /// The number of segments, including placeholders.
    package var segmentCount: Int { parts.last.map { $0.firstIndex + $0.list.count } ?? 0 }

    /// The longest segment in whole seconds, as EXTINF values are rounded for EXT-X-TARGETDURATION (RFC 8216
    /// §4.3.3.1); at least 1.
    var targetDuration: Int64 {
      var longest: Int64 = 0
      for part in parts { part.forEach { longest = max(longest, $2) } }
      let (sum, overflow) = longest.addingReportingOverflow(500_000_000)
      return max(1, (overflow ? longest : sum) / 1_000_000_000)
    }

    /// Returns the segment at `index`, from 0 up to `segmentCount`; nil if none is, or nothing but a gap.
    func segment(at index: Int) -> SegmentReference? {
      let next = parts.indices.bisect { parts[$0].firstIndex > index }
      guard index >= 0, next > 0 else { return nil }
      let part = parts[next - 1]
      guard !part.isFiller, index - part.firstIndex < part.list.count else { return nil }
      return part.list[index - part.firstIndex]
    }
  }

  /// The part of a track in one period.
  struct Part: Sendable {
    var list: SegmentList
    /// True if the segments are those of another track, as placeholders for missing ones.
    var isFiller: Bool
    /// The index in the track of the first segment.
    var firstIndex: Int
    /// The period's start, if another period precedes it.
    var start: MediaTime?
    /// The next period's start, if there is one.
    var end: MediaTime?

    /// Calls `body` with the index in the track, the segment and its length in nanoseconds, in order.
    ///
    /// Media beyond the end of the period does not count, because the other tracks do not have it.
    func forEach(_ body: (_ index: Int, _ segment: SegmentReference, _ nanoseconds: Int64) -> Void) {
      guard var segment = list.first else { return }
      let limit = end?.nanoseconds ?? .max
      var position = min((start ?? segment.start).nanoseconds, limit)
      for index in list.indices {
        let next = index + 1 < list.endIndex ? list[index + 1] : nil
        var boundary = (next?.start ?? end ?? (segment.start + segment.duration)).nanoseconds
        boundary = min(max(boundary, position), limit)
        let (length, overflow) = boundary.subtractingReportingOverflow(position)
        body(firstIndex + index, segment, overflow ? .max : length)
        position = boundary
        if let next { segment = next }
      }
    }
  }
}

extension MediaTime {
  /// Rounded to the nearest nanosecond, halves up; clamped to 64 bits.
  fileprivate var nanoseconds: Int64 {
    let doubled = Int128(value) * 2_000_000_000 + Int128(timescale)
    let divisor = Int128(timescale) * 2
    let (quotient, remainder) = doubled.quotientAndRemainder(dividingBy: divisor)
    return Int64(clamping: remainder < 0 ? quotient - 1 : quotient)
  }
}

extension VirtualHLS {
  /// The target of a URI in a media playlist: always a whole resource. If only some of its bytes are meant,
  /// the playlist says so (EXT-X-BYTERANGE, the BYTERANGE of EXT-X-MAP).
  package struct Resource: Sendable, Hashable {
    package enum Kind: String, Sendable {
      /// Named by EXT-X-MAP.
      case initialization = "init"
      /// A segment that is a resource of its own.
      case segment = ""
      /// A file that contains segments.
      case file
      /// The key of segments (EXT-X-KEY).
      case key
      /// The key of an initialization.
      case initializationKey = "initkey"
      /// A placeholder while a period lacks the track (EXT-X-GAP): a `data:` URL, for players that request it
      /// anyway.
      case gap
    }

    package let kind: Kind
    package let url: URL
    /// Other URLs of the same bytes, in order of preference.
    package let alternateURLs: [URL]
    /// A name that is unique in the track, valid in a path and with the extension that players expect:
    /// `12.m4s`, `init-0.mp4`, `file-0.mp4`.
    package let name: String
    /// The media type (RFC 9110 §8.3.1).
    package let mediaType: String
  }
}

extension VirtualHLS.Track {
  /// Returns the resource with this name, as the media playlist writes it; nil if there is none.
  package func resource(named name: some StringProtocol) -> VirtualHLS.Resource? {
    if let filler, filler.name == String(name) { return filler }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    let words = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    let kind = words.count == 1 ? .segment : VirtualHLS.Resource.Kind(rawValue: String(words[0]))
    guard words.count <= 2, let kind, let number = words.last, number.utf8.allSatisfy(\.isDigit),
      let index = Int(number), let segment = segment(at: index)
    else { return nil }
    let resource: VirtualHLS.Resource?
    switch kind {
    case .initialization: resource = segment.initialization.map { initialization($0, at: index) }
    case .segment: resource = segment.byteRange == nil ? media(of: segment, at: index) : nil
    case .file: resource = segment.byteRange == nil ? nil : media(of: segment, at: index)
    case .key: resource = segment.encryption.flatMap { key($0, .key, at: index) }
    case .initializationKey:
      resource = segment.initialization?.encryption.flatMap { key($0, .initializationKey, at: index) }
    case .gap: resource = nil
    }
    // Each resource has exactly one name: not `012.m4s`.
    return resource?.name == String(name) ? resource : nil
  }

  // MARK: - For the playlist

  /// Returns the resource that contains a segment.
  func media(of segment: SegmentReference, at index: Int) -> VirtualHLS.Resource {
    let isPart = segment.byteRange != nil
    return VirtualHLS.Resource(
      kind: isPart ? .file : .segment, url: segment.url, alternateURLs: segment.alternateURLs,
      name: isPart
        ? "file-\(index).\(container.fileExtension)" : "\(index).\(container.segmentExtension)",
      mediaType: container.mediaType(for: kind))
  }

  func initialization(_ reference: InitializationReference, at index: Int) -> VirtualHLS.Resource {
    VirtualHLS.Resource(
      kind: .initialization, url: reference.url, alternateURLs: reference.alternateURLs,
      name: "init-\(index).\(container.fileExtension)", mediaType: container.mediaType(for: kind))
  }

  /// Returns nil if the key's URL is not a resource, such as `skd:`.
  func key(
    _ encryption: SegmentEncryption, _ kind: VirtualHLS.Resource.Kind, at index: Int
  ) -> VirtualHLS.Resource? {
    guard let url = encryption.keyURL, let scheme = url.scheme?.lowercased(),
      ["http", "https", "file", "data"].contains(scheme)
    else { return nil }
    return VirtualHLS.Resource(
      kind: kind, url: url, alternateURLs: [], name: "\(kind.rawValue)-\(index).key",
      mediaType: "application/octet-stream")
  }

  /// The name of placeholder segments; nil if the track has none.
  ///
  /// Not every player respects EXT-X-GAP: FFmpeg 5.1 requests all of these segments, Chromium the first. Such a
  /// player gets an empty segment (in MP4 an empty `free` box, ISO/IEC 14496-12 §8.1.2), which does less harm
  /// than an error.
  var filler: VirtualHLS.Resource? {
    guard parts.contains(where: \.isFiller),
      let url = URL(string: container == .mp4 ? "data:video/mp4;base64,AAAACGZyZWU=" : "data:,")
    else { return nil }
    return VirtualHLS.Resource(
      kind: .gap, url: url, alternateURLs: [],
      name: "gap.\(container.segmentExtension)", mediaType: container.mediaType(for: kind))
  }
}
