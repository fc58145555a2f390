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

  /// Asked at the end: what is wrong with the media that ends there; nil where nothing is.
  var endFault: ReelError? { get }

  /// Waits for the next packet. Throws `CancellationError` where its scope was cancelled.
  func next() throws -> ReadUnit

  /// Goes to a key frame at or before `time`, or as near to it as the source allows; reading ends with `scope`.
  ///
  /// - Parameters:
  ///   - time: on the item's own timeline; nil for where it begins.
  ///   - pass: the time through the item that is read from here on.
  func seek(to time: MediaTime?, pass: ItemPass, scope: LoadScope) throws

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
