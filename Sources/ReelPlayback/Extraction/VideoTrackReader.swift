internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// The pictures of one source's video track in presentation order, whatever the source is.
///
/// Confined to a thread that may block.
protocol VideoTrackReader: AnyObject {
  /// The earliest picture from where the track stands, for the fewest bytes; nil where there is none. Only as the
  /// first call, or after a seek.
  func firstPicture() throws -> TimedPicture?
  func nextPicture() throws -> TimedPicture?
  /// Goes to a key frame at or before `time`, or as near to it as the source allows.
  func seek(to time: MediaTime) throws
  /// True where a seek to `time` saves work over reading on from `position`.
  func isSeekWorthwhile(to time: MediaTime, from position: MediaTime) -> Bool
  /// Of the container that is open now.
  var picture: PictureReader? { get }
  /// Totals over all containers that were opened.
  var timing: PictureReader.Timing { get }
  var damagedCount: Int { get }
}

extension PictureReader.Timing {
  static func + (left: Self, right: Self) -> Self {
    var sum = left
    sum.source += right.source
    sum.demux += right.demux
    sum.decode += right.decode
    return sum
  }
}

/// What readers of every kind need.
struct TrackContext: Sendable {
  let name: String
  let fetcher: any Fetching
  let configuration: LoadingConfiguration
  let scope: LoadScope
  let recorder: StartupRecorder
  let gate: (any DecodingGate)?
  let logger: Logger
  /// More than the first picture is wanted: what comes next is fetched ahead, and frame threads are worth their
  /// delay.
  let readsAhead: Bool
  let providedKeys = ProvidedKeys()

  func options(isSeekable: Bool, keys: any SampleKeys) -> PictureReader.Options {
    var options = PictureReader.Options()
    options.threads = readsAhead ? configuration.decoderThreads : 1
    options.isSeekable = isSeekable
    options.keys = keys
    options.gate = gate
    let scope = scope
    options.isCancelled = { scope.isCancelled }
    return options
  }

  /// The keys for the samples of a media file.
  func keys(of resource: MediaResource, scope: LoadScope) -> ContainerKeys {
    ContainerKeys(context: self, location: resource.name, scope: scope)
  }
}
