internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// What a `PacketReader` gives.
enum ReadUnit: Sendable {
  case packet(MediaPacket, MediaPacket.Kind)
  case end
}

/// The packets of a source's streams in the order of the file, whatever the source is.
///
/// Confined to a thread that may block.
protocol PacketReader: AnyObject {
  /// What is known of the streams that are read; nil before the first packet.
  var streams: ReaderStreams { get }
  /// Time spent waiting: for media, and for what is needed before it.
  var waits: ReaderWaits { get }

  /// All streams of the container that is open, whether they are read or not.
  var containerStreams: [StreamInfo] { get }
  /// The bytes of the container up to the end of the last packet.
  var position: Int64 { get }

  /// Asked at the end: what is wrong with the media that ends there; nil where nothing is.
  var endFault: ReelError? { get }

  /// Waits until the streams of the first packet are known, which may still be on its way. Throws as `next()` does.
  func prepare() throws

  /// Waits for the next packet. Throws `CancellationError` where its scope was cancelled.
  func next() throws -> ReadUnit

  /// Goes to a key frame at or before `time`, or as near to it as the source allows; reading ends with `scope`.
  ///
  /// - Parameters:
  ///   - time: on the item's own timeline; nil for where it begins.
  ///   - loop: The iteration that is read from here on.
  func seek(to time: MediaTime?, loop: LoopIteration, scope: LoadScope) throws

  /// True where a seek to `time` saves work over reading on from `position`. Both are on the item's own timeline.
  func isSeekWorthwhile(to time: MediaTime, from position: MediaTime) -> Bool

  /// Lets go of what can be made again without fetching anything twice: nothing is read for a while. True where that was
  /// done now.
  func rest() -> Bool

  /// Drops audio that is muxed with video from here on, or takes it up again.
  func setDropsAudio(_ drops: Bool)
}

/// What readers tell of their streams.
struct ReaderStreams: Sendable {
  var video: StreamInfo?
  var audio: StreamInfo?
  /// True if no further stream can appear after the first packet.
  var areAllKnown = false
  var rung: Rung?
  /// The whole length, where it is known.
  var duration: MediaTime?
  /// False for what is read once, forward.
  var canSeek = true
  var live: LiveTiming?
}

/// Where a reader's time has gone that was not its own.
struct ReaderWaits: Sendable {
  /// For media.
  var media = Duration.zero
  /// For playlists and indexes.
  var manifests = Duration.zero
}

extension PacketReader {
  /// Runs `body`, which reads.
  ///
  /// - Parameter note: Told how long that waited for media, and how long it did not wait for anything.
  func timed<Result>(
    by clock: any MonotonicClock, _ body: () throws -> Result,
    note: (_ wait: Duration, _ busy: Duration) -> Void
  ) rethrows -> Result {
    let (start, before) = (clock.now, waits)
    defer {
      let (duration, after) = (clock.now - start, waits)
      let wait = after.media - before.media
      note(wait, max(.zero, duration - wait - (after.manifests - before.manifests)))
    }
    return try body()
  }
}

extension ResolvedSource {
  /// What reads the packets of one of its tracks.
  ///
  /// - Parameters:
  ///   - controller: Chooses the rung of each segment. A media file has no rungs.
  ///   - offsets: Shared by the readers of one item.
  ///   - isAlone: No other track is read beside it.
  ///   - scope: Ends what is read first; later `seek` gives others.
  func packetReader(
    for role: ReaderRole, resolver: SourceResolver, context: TrackContext, controller: RungController,
    offsets: TimestampOffsets, isAlone: Bool = false, log: any ReadingLog, scope: LoadScope
  ) -> any PacketReader {
    switch self {
    case .resource(let resource):
      ResourcePacketReader(resource, role: role, context: context, log: log, scope: scope)
    case .presentation(let resolved):
      SegmentedPacketReader(
        resolved, role: role, resolver: resolver, context: context, controller: controller,
        offsets: offsets, isAlone: isAlone,
        keys: KeyStore(
          fetcher: context.fetcher, headers: context.configuration.headers, runtime: scope.runtime),
        log: log, scope: scope)
    }
  }
}
