import Foundation
public import ReelCore

/// A complete presentation, as an HLS multivariant playlist and media playlists (RFC 8216): pure text, which a player
/// of HLS alone can play a DASH presentation by.
///
/// - Every video rung is a variant with every group of sound, 64 variants at most; beyond that they are paired by
///   their ranks. Sound of its own stands in groups, one for each codec, number of channels and quality, and each
///   group offers every language. WebVTT is offered as subtitles, text in MP4 is not.
/// - A track goes on through the periods: in each by the rung of the same id, else by the nearest one. A period is
///   parted from the next by EXT-X-DISCONTINUITY; where it lacks frames, sound or text, EXT-X-GAP segments stand
///   for them, so that all playlists have the same discontinuities.
/// - The length of a segment reaches to the beginning of the next one. Boundaries are rounded to nanoseconds, not
///   lengths, so that no sum drifts; where one period meets the next, segments are cut. At the very beginning and end they have
///   the length that they have.
///
/// FFmpeg's HLS demuxer keeps the first EXT-X-MAP, so it decodes later periods wrongly if their initializations differ.
///
/// Left out are trick mode, images, WebM, and what can't be played, with a warning for each.
public struct VirtualHLS: Sendable {
  /// Frames first, then sound, then text, each in the order of the manifest.
  package let tracks: [Track]
  /// What was left out, and why.
  public let warnings: [ReelError]
  let variants: [Variant]
  let audioGroups: [AudioGroup]
  /// The longest segment of frames and sound, in whole seconds: one for all, as RFC 8216 §6.2.4 demands.
  let targetDuration: Int64

  /// How many segments all tracks may have together: each is looked at once.
  static let segmentLimit = 2_000_000

  /// The playlists of `presentation`, whose rungs have `.segments`: others are left out.
  ///
  /// Throws `unsupported` for a live presentation, for one with more than 2,000,000 segments in all tracks, and where
  /// nothing is left, with the reasons.
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

  /// The track of this name, as `video-0`.
  package func track(named name: some StringProtocol) -> Track? {
    tracks.first { $0.name == name }
  }

  /// The multivariant playlist (RFC 8216 §4.3.4). `reference` gives the URI of a track's media playlist.
  package func multivariantPlaylist(
    reference: @escaping (Track) -> String = { "\($0.name).m3u8" }
  ) -> String {
    MultivariantPlaylistWriter(hls: self, reference: reference).text
  }

  /// The media playlist of a track (RFC 8216 §4.3.2, §4.3.3). `reference` gives the URI of a resource: unless told,
  /// its own URL.
  package func mediaPlaylist(
    of track: Track, reference: @escaping (Resource) -> String = { $0.url.absoluteString }
  ) -> String {
    let target = track.kind == .text ? track.targetDuration : targetDuration
    return MediaPlaylistWriter(track: track, targetDuration: target, reference: reference).text
  }
}

extension VirtualHLS {
  /// An EXT-X-STREAM-INF with the playlist that it stands before.
  struct Variant: Sendable {
    /// Index in `tracks`.
    var track: Int
    /// Index in `audioGroups`; nil where there is no sound, or it is muxed in.
    var audioGroup: Int?
    var bandwidth: Int64
    var averageBandwidth: Int64?
    /// RFC 6381; empty where one of the parts does not say.
    var codecs: [String]
  }

  /// EXT-X-MEDIA tags of one GROUP-ID.
  struct AudioGroup: Sendable {
    /// Indices in `tracks`.
    var tracks: [Int]
    /// One of `tracks`.
    var defaultTrack: Int
  }
}
