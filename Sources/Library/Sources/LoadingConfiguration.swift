package import Foundation
public import HTTPTypes
internal import Logging
public import ReelCore
package import ReelManifest

/// The configuration of loading: which tracks to choose, header fields, keys, and limits.
public struct LoadingConfiguration: Sendable {
  /// The highest bit rate to choose, in bits per second. If all rungs are above it, the lowest one is chosen. A player
  /// that adapts the bit rate ignores it. 3 Mbit/s by default.
  public var preferredPeakBitRate: Int = 3_000_000
  /// The largest frame height to choose, in pixels. If all rungs are higher, those with the smallest height are chosen.
  public var maximumHeight: Int?
  /// The preferred audio languages, the most preferred first, as ISO 639 codes or RFC 5646 tags. `de` and `deu` are the
  /// same. Of the tracks in a language, one of the same region goes first, then one without a region, then others.
  public var audioLanguages: [String] = []
  /// Header fields to send with the requests for a source and for what its manifest names, also to other hosts.
  ///
  /// Credentials are sent only to the server of the source, by scheme, host and port, and to ``credentialHosts``, whether
  /// its manifest or a redirect leads to another one. They are: `Authorization`, `Proxy-Authorization`, `Cookie`, fields
  /// whose names end in `key`, `token`, `secret` or `password`, and those made by `HTTPField.secret(_:_:)`. The user name
  /// and password of a source's URL are a credential too. A local source has no server of its own.
  public var headers: HTTPFields = [:]
  /// Other hosts that may get the credentials of a source, such as that of its segments or keys. If the source is at
  /// `https`, they never get them over `http`.
  public var credentialHosts: Set<CredentialHost> = []
  /// The URL of the feed that names the source, if it came from a server: the credentials in `headers` are for that one.
  package var feed: URL?
  /// Further fields for one source, whose credentials belong to its own server.
  package var itemHeaders: HTTPFields = [:]
  /// Provides the keys of encrypted samples. Without it, Reel plays only media that is not encrypted, or whose keys
  /// have URLs in an HLS playlist.
  public var keyProvider: (any KeyProvider)?
  package var manifestLimits = ManifestLimits()
  /// The number of frame threads of a video decoder. 1 by default.
  public var decoderThreads = 1
  /// The largest size of the temporary file for a resource that must be downloaded completely before it can
  /// be read: its index is at the end, and the server does not support ranges; or the server ignores ranges,
  /// although it claims to support them. 2 GiB by default.
  package var spoolByteLimit: Int64 = 2 << 30
  /// The largest size of a segment, in bytes for each second of it. One of less than four seconds, or of unknown
  /// duration, counts as four. 64 MiB by default.
  package var segmentByteRate: Int64 = 64 << 20
  /// The time without a new segment in a live manifest after which loading fails with `timedOut`. Four times
  /// the duration of the last segment if that is longer. 30 s by default.
  package var liveStallLimit = Duration.seconds(30)
  /// Whether to follow a live presentation by a server's clock if its manifest names one (UTCTiming, ISO/IEC 23009-1
  /// §5.8.5.7). True by default.
  package var asksServersForTime = true
  /// The clock for live presentations.
  package var clock: any WallClock = SystemWallClock()
  /// The part of a source to read.
  package var reading = Reading.everything
  /// Whether H.264 frames that are shown at half their size or less are decoded without deblocking
  /// (`VideoDecoder.Options.skipsDeblocking`).
  package var skipsDeblocking = false
  /// Whether playlists of I-frames may be read instead of the rungs.
  package var usesIFramePlaylists = false
  /// The size that frames are shown at, for the choice of a rung (`SizedRung`); nil to go by the bit rate.
  package var shownSize: SizeLimit?
  /// Whether local files are requested from the fetcher like remote ones.
  package var fetchesFiles = false

  /// The part of a source to read.
  package enum Reading: Sendable, Hashable {
    case everything
    /// A few key frames, each by itself: nothing else of a segment or a file is loaded.
    ///
    /// - `endsTransfers`: The transfer of a segment of fragmented MP4 pauses after its first key frame,
    ///   because the rest is rarely needed.
    /// - `skipsRefused`: A segment of a live presentation that can't be loaded is skipped, instead of being
    ///   requested again.
    case keyFrames(endsTransfers: Bool, skipsRefused: Bool)

    package var endsTransfers: Bool { if case .keyFrames(true, _) = self { true } else { false } }
    package var skipsRefused: Bool { if case .keyFrames(_, true) = self { true } else { false } }
  }

  /// Creates the default configuration.
  public init() {}

  /// Returns the header fields of the requests for a source, and who gets them.
  package func headers(of source: URL?) -> SourceHeaders {
    var result = SourceHeaders(of: source, hosts: credentialHosts)
    result.add(headers, ownedBy: feed ?? source)
    result.add(itemHeaders, ownedBy: source)
    return result
  }
}

/// The streams that a reader reads.
package enum ReaderRole: Sendable {
  /// Video, and muxed audio if wanted.
  case main(wantsAudio: Bool)
  /// An audio rendition with segments of its own, of the given group if there are several.
  case audio(group: String?)

  /// The kind of track that a loss of its media concerns.
  package var kind: TrackKind { if case .main = self { .video } else { .audio } }
}
