import Foundation
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
      throw ReelError(.unsupported, "a live presentation is not made into HLS")
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
    of track: Track, reference: @escaping (Resource) -> String = { $0.url.absoluteString }
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
