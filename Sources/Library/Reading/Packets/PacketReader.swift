package import Foundation
package import ReelCore
package import ReelFFmpeg
package import ReelManifest
package import ReelSources

/// Reads the packets of a source's streams in file order, for any kind of source.
///
/// Confined to a thread that may block.
package protocol PacketReader: AnyObject {
  /// The known properties of the streams; empty before the first packet.
  var streams: ReaderStreams { get }
  /// The time spent waiting for media, and for playlists and indexes.
  var waits: ReaderWaits { get }

  /// The known facts about the source, for reports.
  var status: ReaderStatus { get }

  /// The fault of the media that ended; nil for none.
  var endFault: ReelError? { get }

  /// Waits until the streams of the first packet are known. The packet itself may still be on its way. Throws
  /// like `next()`.
  func prepare() throws

  /// Waits for the next packet; nil at the end. Throws `CancellationError` if its scope was cancelled.
  func next() throws -> MediaPacket?

  /// Seeks to a key frame at or before `time`, or as near to it as the source allows. Reading ends with
  /// `scope`.
  ///
  /// - Parameters:
  ///   - time: The position on the item's own timeline; nil for its beginning.
  ///   - loop: The iteration to read.
  func seek(to time: MediaTime?, loop: LoopIteration, scope: LoadScope) throws

  /// Seeks to a place that this reader has named.
  func seek(to place: KeyFramePlace, scope: LoadScope) throws

  /// Returns true if a seek to `time` is cheaper than reading on from `position`. Both are on the item's own
  /// timeline.
  func isSeekWorthwhile(to time: MediaTime, from position: MediaTime) -> Bool

  /// Returns the known positions of key frames after the first one, in order: the segments of a complete
  /// list, or the key frames in the index of a file. Nil if they are not known.
  ///
  /// - Parameter isEnough: Called with each position; true ends the list after it.
  func keyFramePlaces(until isEnough: (KeyFramePlace) -> Bool) -> [KeyFramePlace]?

  /// Returns the known positions of all key frames, in order, including the first one: the segments of all
  /// periods, those of a live window, or the key frames in the index of a file. Nil if they are not known.
  /// Call it after `prepare()`.
  func allKeyFramePlaces() throws -> [KeyFramePlace]?

  /// The tracks with which other readers of the same presentation can avoid reading the same playlists and
  /// initializations; nil for a media file.
  var sharedTracks: SharedTracks? { get }

  /// Announces the only key frames that will be read, in this order, so that their bytes can be fetched ahead.
  func plan(_ places: [KeyFramePlace])

  /// Records that more packets may not be needed from this position: if reading can continue there later,
  /// transfers end.
  func recordEnough()

  /// Ends reading before the segments that begin at or after a time on the item's own timeline, until the next seek.
  func end(before time: MediaTime)

  /// Releases everything that can be restored without fetching anything twice, because nothing is read for a
  /// while. Returns true if something was released.
  ///
  /// A resting player of fragmented MP4 at 720x1280 holds 0.3 MB less, a tenth of its memory, because its
  /// demuxer is closed.
  func rest() -> Bool

  /// Drops muxed audio from here on, or stops dropping it.
  func setDropsAudio(_ drops: Bool)
}

/// A reader's information about its streams.
package struct ReaderStreams: Sendable {
  package var video: StreamInfo?
  package var audio: StreamInfo?
  /// True if no further stream can appear after the first packet.
  package var areAllKnown = false
  package var rung: Rung?
  /// Where the playlist let playback begin (EXT-X-START), on the item's own timeline; nil if it began elsewhere.
  package var beginning: StartOffset?
  /// The duration; nil if unknown.
  package var duration: MediaTime?
  /// False for a source that can only be read once, forward.
  package var canSeek = true
  package var live: LiveTiming?
  /// The live track that was opened first, by whose times others are placed; nil for other tracks.
  package var liveSegments: LiveSegments?

  package init() {}
}

/// Facts about a reader's source, for reports.
package struct ReaderStatus: Sendable {
  /// All streams of the open container, including those that are not read.
  package var containerStreams: [StreamInfo] = []
  /// The number of bytes of the container up to the end of the last packet.
  package var position: Int64 = 0
  /// The reason why the media ends too early, as far as is known; nil if it does not. Unlike `endFault`, also
  /// for containers that do not state where they end, and for MP4 before the end was read.
  package var cut: ReelError?
  /// The URL of the segment that was requested last, or that a seek leads to; nil for a media file.
  package var segmentURL: URL?
  /// The rung that was opened last, with its segments, even if none of them could be read; nil for a media file.
  package var track: RungTrack?
  /// The number of segments that could not be loaded, or had left the live window.
  package var missedSegmentCount = 0
}

/// The time that a reader spent waiting.
package struct ReaderWaits: Sendable {
  package var media = Duration.zero
  /// The wait for playlists and indexes, and for segments that had not appeared yet.
  package var manifests = Duration.zero
}

/// The place where a key frame begins.
package struct KeyFramePlace: Sendable, Hashable {
  /// A time near the frame's, on the item's own timeline: the segment's start, or the decoding time.
  package let time: MediaTime
  /// The target of a reader's seek.
  package let seekTime: MediaTime
  /// The bytes of the key frame in its file; nil if they are not known.
  package var bytes: Range<Int64>?

  package init(time: MediaTime, seekTime: MediaTime, bytes: Range<Int64>? = nil) {
    self.time = time
    self.seekTime = seekTime
    self.bytes = bytes
  }
}

extension PacketReader {
  package func keyFramePlaces(until isEnough: (KeyFramePlace) -> Bool) -> [KeyFramePlace]? { nil }

  package func allKeyFramePlaces() throws -> [KeyFramePlace]? { nil }

  package func plan(_ places: [KeyFramePlace]) {}

  package func seek(to place: KeyFramePlace, scope: LoadScope) throws {
    try seek(to: place.seekTime, loop: LoopIteration(), scope: scope)
  }

  package var sharedTracks: SharedTracks? { nil }

  package func recordEnough() {}

  package func end(before time: MediaTime) {}

  /// Runs `body`, which reads.
  ///
  /// - Parameter record: Receives how long `body` waited for media, and how long it did not wait.
  package func timed<Result>(
    by clock: any MonotonicClock, _ body: () throws -> Result,
    record: (_ wait: Duration, _ busy: Duration) -> Void
  ) rethrows -> Result {
    let (start, before) = (clock.now, waits)
    defer {
      let (duration, after) = (clock.now - start, waits)
      let wait = after.media - before.media
      record(wait, max(.zero, duration - wait - (after.manifests - before.manifests)))
    }
    return try body()
  }
}

extension ResolvedSource {
  /// Creates a reader for the packets of one of its tracks.
  ///
  /// - Parameters:
  ///   - controller: Chooses the rung of each segment. A media file has no rungs.
  ///   - offsets: Shared by the readers of one item.
  ///   - isAlone: True if no other track is read at the same time.
  ///   - beginsByDefault: True to begin where a playlist lets playback begin (EXT-X-START), until the first seek to a
  ///     time; false to begin with the first segment.
  ///   - scope: Ends reading until `seek` sets another one.
  ///   - shared: The tracks that another reader of the same presentation has read.
  func packetReader(
    for role: ReaderRole, manifests: ManifestLoader, context: TrackContext, controller: RungController,
    offsets: TimestampOffsets, isAlone: Bool = false, beginsByDefault: Bool = true,
    log: @escaping ReadingLog,
    scope: LoadScope,
    shared: SharedTracks? = nil
  ) -> any PacketReader {
    switch self {
    case .resource(let resource):
      ResourcePacketReader(resource, role: role, context: context, log: log, scope: scope)
    case .presentation(let resolved):
      SegmentReader(
        resolved, role: role, manifests: manifests, context: context, controller: controller,
        offsets: offsets, isAlone: isAlone, beginsByDefault: beginsByDefault, log: log, scope: scope,
        shared: shared)
    }
  }
}

/// What readers report to whom they read for. Called on any thread and in tasks; must not block.
package typealias ReadingLog = @Sendable (ReadingReport) -> Void

/// A report of a reader. The name of the rung is empty for a media file.
package enum ReadingReport: Sendable {
  /// The next segments belong to this rung.
  case rung(Rung)
  case transfer(SegmentTransfer, rung: String)
  /// More requests were sent for a media file, and more bytes of it have arrived.
  case file(requestCount: Int, byteCount: Int64)
  /// Something could not be loaded. The outcome is the next attempt; nil if the error is thrown, and its receiver decides.
  case failure(ReelError, rung: String, outcome: ErrorLogEntry.Outcome?)
  /// A part of a media file or of a segment is damaged and was left out. The range is on the item's timeline; nil if it is
  /// not known.
  case damage(ReelError, rung: String, in: Range<MediaTime>?)
  /// Media is missing according to the timestamps.
  case hole(ReelError, rung: String, MediaLoss)
  /// A segment is skipped. Its start is on the item's timeline.
  case passedOver(ReelError, start: MediaTime, duration: MediaTime)
  /// The reader waits for the next segment of a live track that some periods lack, so the wait may be long.
  case absence(LiveSegments)
  /// A span of segments begins with one of this duration.
  case segment(duration: MediaTime)
}
