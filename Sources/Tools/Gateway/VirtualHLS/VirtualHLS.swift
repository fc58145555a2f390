package import Foundation
public import ReelCore
package import ReelManifest
import ReelSources

/// A presentation as HLS: a multivariant playlist and media playlists (RFC 8216), on demand or as they are at one
/// moment of a live presentation.
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
///   presentation. In a live presentation, a segment has the duration that the manifest states, and EXT-X-GAP segments
///   fill the holes of its timeline.
/// - **Live presentations.** A segment has the same number in every playlist that lists it, however often the manifest
///   was read and whatever has left it. EXT-X-DISCONTINUITY-SEQUENCE counts periods.
///
/// Trick-mode tracks, images, WebM, text other than WebVTT files, and unplayable tracks are left out; see `warnings`.
///
/// FFmpeg's HLS demuxer keeps the first EXT-X-MAP, so it decodes later periods wrongly if their initialization segments
/// differ.
public struct VirtualHLS: Sendable {
  /// Video first, then audio, then text, each in manifest order. Empty for a live presentation that has not begun.
  package internal(set) var tracks: [Track]
  /// The groups and rungs that were left out, with the reasons, and the licenses that a player needs for media that stays
  /// encrypted; at most 100.
  public let warnings: [ReelError]
  let variants: [Variant]
  let audioGroups: [AudioGroup]
  /// The longest video or audio segment in whole seconds: the same for all playlists, as RFC 8216 §6.2.4 demands, and for
  /// as long as a live presentation lasts (§6.2.1).
  let targetDuration: Int64
  /// The state of a live presentation; nil for one on demand.
  var live: Live?
  /// The reasons why the segments of some rungs are not known.
  package var failures: [ReelError] = []
  /// Reads the presentation again; nil if that is not possible.
  var source: ManifestSource?
  /// Decrypts the media of some tracks; nil if none is decrypted.
  let decryption: (any MediaDecrypting)?

  /// The maximum number of segments in all tracks together. Each is read once.
  static let segmentLimit = 2_000_000

  /// Plans the playlists of a presentation. Rungs whose segments are not known yet are left out.
  ///
  /// - Parameters:
  ///   - previous: The playlists of the same live presentation as it was before, whose tracks, numbers, target duration and
  ///     decryption stay.
  ///   - decryption: Decrypts the media whose keys it has; nil for none.
  /// - Throws: `ReelError` of kind `unsupported` for more than 2,000,000 segments in all tracks, or if no track is left,
  ///   with the reasons.
  package init(
    _ presentation: Presentation, following previous: VirtualHLS? = nil,
    decryption: (any MediaDecrypting)? = nil
  ) throws(ReelError) {
    self.decryption = previous?.decryption ?? decryption
    var planner = VirtualHLSPlanner(presentation, following: previous, decryption: self.decryption)
    let plan = try planner.plan()
    tracks = plan.tracks
    variants = plan.variants
    audioGroups = plan.audioGroups
    warnings = planner.warnings
    live = plan.live
    for index in tracks.indices { tracks[index].hasEnded = presentation.live == nil }
    let count = tracks.reduce(0) { $0 + $1.segmentCount }
    guard count <= Self.segmentLimit else {
      throw ReelError(.unsupported, "\(count) segments in all tracks, more than \(Self.segmentLimit)")
    }
    let longest = tracks.lazy.filter { $0.kind != .text }.map(\.targetDuration).max() ?? 1
    targetDuration =
      previous?.targetDuration ?? presentation.live?.targetDuration(atLeast: longest) ?? longest
  }

  /// Fetches the resources that the manifest names, within the limits of the source; nil if the presentation was not read
  /// by this type.
  var fetcher: (any Fetching)? { source?.loader.fetcher }

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
    MediaPlaylistWriter(hls: self, track: track, reference: reference).text
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
    /// True if its media is decrypted on the way to a client, except for segments that state an encryption.
    package let isDecrypted: Bool
    /// The rung that later periods of a live presentation are compared with.
    let anchor: VirtualHLSCandidate
    /// The parts in each period, in order. Their numbers follow each other.
    var parts: [Part]
    /// True if no more segments will come.
    var hasEnded = true

    /// The number of segments, including placeholders.
    package var segmentCount: Int { endIndex - startIndex }
    /// The number of the first segment (EXT-X-MEDIA-SEQUENCE): 0 on demand.
    package var startIndex: Int { parts.first?.firstIndex ?? 0 }
    /// The number after that of the last segment.
    package var endIndex: Int { parts.last?.endIndex ?? 0 }

    /// The longest segment in whole seconds, as EXTINF values are rounded for EXT-X-TARGETDURATION (RFC 8216
    /// §4.3.3.1); at least 1.
    var targetDuration: Int64 {
      var longest: Int64 = 0
      for part in parts { part.forEach { longest = max(longest, $2) } }
      let (sum, overflow) = longest.addingReportingOverflow(500_000_000)
      return max(1, (overflow ? longest : sum) / 1_000_000_000)
    }

    /// Returns the segment with this number; nil if it is not listed.
    func segment(at index: Int) -> SegmentReference? {
      let next = parts.indices.bisect { parts[$0].firstIndex > index }
      guard next > 0, index < parts[next - 1].endIndex else { return nil }
      return parts[next - 1].list[index - parts[next - 1].firstIndex]
    }
  }

  /// The part of a track in one period.
  struct Part: Sendable {
    /// The segments. Those that stand for missing ones are gaps without media.
    private(set) var list: SegmentList
    /// The segments of the reading that `list` is a part of.
    private var whole: SegmentList
    /// The number of the first segment.
    private(set) var firstIndex: Int
    /// The period: the number of those before it since the beginning, or since it was first read.
    let period: Int
    /// The period's start, if another period precedes it.
    var start: MediaTime?
    /// The next period's start, if there is one.
    var end: MediaTime?
    /// True if each segment has the duration that the manifest states for it, because the next one may not be known yet.
    var statesDurations = false
    /// The number of readings in a row that ended before the last listed segment.
    var stepsBack = 0

    init(
      _ list: SegmentList, firstIndex: Int, period: Int, start: MediaTime? = nil, end: MediaTime? = nil,
      statesDurations: Bool = false
    ) {
      (self.list, whole) = (list, list)
      self.firstIndex = firstIndex
      self.period = period
      (self.start, self.end) = (start, end)
      self.statesDurations = statesDurations
    }

    var endIndex: Int { firstIndex + list.count }

    /// Takes away the first segments.
    mutating func drop(_ count: Int) {
      guard count > 0 else { return }
      firstIndex += count
      // Not a part of a part: it would become one of another with each reading.
      list = whole.part(whole.count - list.count + count..<whole.count)
    }

    /// Calls `body` with the number, the segment and its length in nanoseconds, in order.
    ///
    /// Media beyond the end of the period does not count, because the other tracks do not have it.
    func forEach(_ body: (_ index: Int, _ segment: SegmentReference, _ nanoseconds: Int64) -> Void) {
      guard var segment = list.first else { return }
      let limit = end?.nanoseconds ?? .max
      var position = min((start ?? segment.start).nanoseconds, limit)
      for index in list.indices {
        let next = index + 1 < list.endIndex ? list[index + 1] : nil
        if statesDurations {
          body(firstIndex + index, segment, max(0, segment.duration.nanoseconds))
          if let next { segment = next }
          continue
        }
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
      /// An initialization segment that is a resource of its own (EXT-X-MAP).
      case initialization = "init"
      /// A segment that is a resource of its own.
      case segment
      /// A file that contains segments or their initialization segment.
      case file
      /// A key (EXT-X-KEY).
      case key
    }

    package let kind: Kind
    package let url: URL
    /// Other URLs of the same bytes, in order of preference.
    package let alternateURLs: [URL]
    /// A name that is unique in the track, valid in a path and with the extension that players expect: `12.m4s` with the
    /// number of the segment, or `init-0f3a9c20d1.mp4` with digits that follow from the URL.
    package let name: String
    /// The media type (RFC 9110 §8.3.1).
    package let mediaType: String
    /// The part of the file at `url` that is decrypted and served; nil if the file is served as it is.
    var encryptedPart: EncryptedPart?

    /// True if a client can reach it by itself.
    var isReachable: Bool {
      encryptedPart == nil && ["http", "https"].contains(url.scheme?.lowercased())
    }
  }

  /// A media segment or an initialization segment in a file.
  struct EncryptedPart: Sendable, Hashable {
    /// Nil for the whole file.
    var range: ByteRange?
    /// The initialization segment of a media segment; nil if that contains its own.
    var initialization: InitializationReference?
  }
}

extension VirtualHLS.Track {
  /// Returns the segment with this name, such as `12.m4s`; nil if it is not listed, or a part of a file.
  package func segment(named name: some StringProtocol) -> VirtualHLS.Resource? {
    guard let number = Int(name.prefix { $0 != "." }), let segment = segment(at: number) else { return nil }
    let resource = media(of: segment, at: number)
    // Each segment has exactly one name: not `012.m4s`.
    return resource.kind == .segment && resource.name == String(name) ? resource : nil
  }

  // MARK: - For the playlist

  /// Returns the resource that contains a segment.
  func media(of segment: SegmentReference, at index: Int) -> VirtualHLS.Resource {
    let isDecrypted = isDecrypted && segment.encryption == nil && !segment.isGap
    guard isDecrypted || segment.byteRange == nil else { return file(segment.url, segment.alternateURLs) }
    return VirtualHLS.Resource(
      kind: .segment, url: segment.url, alternateURLs: segment.alternateURLs,
      name: "\(index).\(container.segmentExtension)", mediaType: container.mediaType(for: kind),
      encryptedPart: isDecrypted
        ? VirtualHLS.EncryptedPart(range: segment.byteRange, initialization: segment.initialization) : nil)
  }

  func initialization(_ reference: InitializationReference) -> VirtualHLS.Resource {
    let isDecrypted = isDecrypted && reference.encryption == nil
    guard isDecrypted || reference.byteRange == nil else {
      return file(reference.url, reference.alternateURLs)
    }
    return VirtualHLS.Resource(
      .initialization, reference.url, reference.alternateURLs, pathExtension: container.fileExtension,
      mediaType: container.mediaType(for: kind),
      encryptedPart: isDecrypted ? VirtualHLS.EncryptedPart(range: reference.byteRange) : nil)
  }

  /// Returns nil if a DRM system has the key, or its URL is not a resource.
  func key(_ encryption: SegmentEncryption) -> VirtualHLS.Resource? {
    guard encryption.systems.isEmpty, let url = encryption.keyURL, let scheme = url.scheme?.lowercased(),
      ["http", "https", "file", "data"].contains(scheme)
    else { return nil }
    return VirtualHLS.Resource(.key, url, [], pathExtension: "key", mediaType: "application/octet-stream")
  }

  private func file(_ url: URL, _ alternateURLs: [URL]) -> VirtualHLS.Resource {
    VirtualHLS.Resource(
      .file, url, alternateURLs, pathExtension: container.fileExtension,
      mediaType: container.mediaType(for: kind))
  }
}

extension VirtualHLS.Resource {
  /// A resource that is named by its URL, and by its place there if it is a part.
  fileprivate init(
    _ kind: Kind, _ url: URL, _ alternateURLs: [URL], pathExtension: String, mediaType: String,
    encryptedPart: VirtualHLS.EncryptedPart? = nil
  ) {
    let place = encryptedPart?.range.map { " \($0.offset) \($0.length ?? 0)" } ?? ""
    // FNV-1a: the same name in every process and every reading.
    let hash = (url.absoluteString + place).utf8.reduce(UInt64(0xcbf2_9ce4_8422_2325)) {
      ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3
    }
    let digits = String(hash >> 24, radix: 16)
    let padding = String(repeating: "0", count: 10 - digits.utf8.count)
    self.init(
      kind: kind, url: url, alternateURLs: alternateURLs,
      name: "\(kind.rawValue)-\(padding)\(digits).\(pathExtension)", mediaType: mediaType,
      encryptedPart: encryptedPart)
  }
}
