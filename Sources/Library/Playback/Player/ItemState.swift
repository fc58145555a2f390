internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelReading
internal import ReelSources
internal import Synchronization

/// How an item is played. These exclude each other; whether the program wants to play is not among them.
enum Playback {
  /// No frame of the position is on show yet. The seek, if any, that waits for it.
  case opening(PendingSeek?)
  /// The first frame is on show, and the buffer is not likely to keep up yet.
  case ready
  /// The clock runs whenever playback is wanted.
  case running
  /// The media ran out then. The clock stands still until the buffer is likely to keep up.
  case stalled(since: Duration)
  /// All is shown.
  case ended
  case failed

  var isOpening: Bool { if case .opening = self { true } else { false } }

  var hasEnded: Bool { if case .ended = self { true } else { false } }

  var hasFailed: Bool { if case .failed = self { true } else { false } }

  /// The seek that waits for its frame.
  var seek: PendingSeek? { if case .opening(let seek) = self { seek } else { nil } }

  var stalledAt: Duration? { if case .stalled(let time) = self { time } else { nil } }
}

/// A seek that waits for its frame.
struct PendingSeek {
  /// The position, on the player's timeline once the seek has begun.
  var time: MediaTime
  let began: Duration
  /// The call of `seek` that waits.
  let call: SeekCall
  let continuation: CheckedContinuation<Bool, any Error>
}

/// The identity of a call of `seek`.
final class SeekCall: Sendable {}

/// The frame on show, and the facts known about it since the last seek.
struct OnShow {
  /// The frame. It stays over a seek until the next one.
  var frame: VideoFrame?
  /// The span of the last frame that had one.
  var span: StreamSpan?
  /// The time of the last frame, and when it was shown. Playback may also begin without a frame: then there is
  /// only the latter.
  var time: MediaTime?
  var shownAt: Duration?
  /// The end of the time for which the last frame stays on show.
  var end: MediaTime?
  /// The end of the last frame by its own duration. Kept when the player jumps by itself.
  var ownEnd: MediaTime?
  /// The end of the last frame, if the player then jumped by itself. Media between it and the next frame is
  /// reported as skipped.
  var skipsFrom: MediaTime?
  /// True if the player has jumped since the last frame.
  var hasJumped = false
  /// The number of frames dropped since the last frame.
  var droppedCount = 0
  /// True if the last frame is damaged.
  var isDamaged = false
  /// The time at which the ring ran empty, at a rate of `.infinity`.
  var drySince: Duration?

  /// The start of the current iteration on the player's timeline.
  var shift: MediaTime { span?.shift ?? .zero }

  func isOf(_ frame: VideoFrame) -> Bool { self.frame?.decoded === frame.decoded }

  /// Keeps the frame on show until `time`.
  mutating func extend(to time: MediaTime?) {
    if let time, let end, end < time { self.end = time }
  }
}

/// How a live item keeps its distance from the live edge.
struct LiveFollowing {
  /// A factor for the rate, above 1 while the item catches up.
  var factor = 1.0
  var catchUp = LiveCatchUp()
  /// The distance that the user chose; nil for the manifest's.
  var target: Duration?
  /// The time to jump to, for which the reader has to look for newer segments first; nil for none.
  var lookout: MediaTime?
}

/// The source of an item's media.
enum ItemSource {
  case unbegun
  case resolving
  case open(OpenSource)

  var isUnbegun: Bool { if case .unbegun = self { true } else { false } }

  var opened: OpenSource? { if case .open(let source) = self { source } else { nil } }
}

enum ItemHealth {
  case sound
  /// Loading has ended with an error. What was loaded is shown first.
  case failing(ReelError)
  /// All loaded media has been shown.
  case failed(ReelError)

  var failure: ReelError? {
    switch self {
    case .sound: nil
    case .failing(let error), .failed(let error): error
    }
  }
}

/// All that belongs to the item of a player, and ends with it: how it is played, and how it is loaded and decoded.
/// Without an item it is empty, and never changes.
///
/// ```
///  ItemReader ---> packets ---> ItemDecoder ---> frames ---> onShow
///                                    |
///                                    +---------> audio --->
/// ```
///
/// The workers of the item (`ItemSession`) have jobs, and what they bring counts while its job is the current
/// one: a seek ends the jobs that must begin elsewhere.
struct ItemState: ~Copyable {
  /// The session that runs the workers; nil without an item.
  let session: ItemSession?

  // MARK: Playing
  var playback = Playback.opening(nil)
  var clock = Timebase()
  var onShow = OnShow()
  /// True once outputs were notified that the audio has ended.
  var hasAnnouncedSoundEnd = false
  var levelCheckedAt: Duration?
  var following = LiveFollowing()
  var statistics = PlayerStatistics()
  var latenessIndex = 0

  // MARK: Loading
  var source = ItemSource.unbegun
  /// What the requests of the source belong to.
  var storeUse = StoreUse()
  var health = ItemHealth.sound
  /// The reason why nothing was shown, if there is no other failure.
  var fruitlessFailure: ReelError?
  var retry = ItemRetryPolicy()
  /// How far to load; nil for playing.
  var target: PreloadTarget?
  /// False while muted, and once separate audio was given up.
  var wantsAudio = true
  /// Whether audio is a separate stream; nil until that is known.
  var hasSeparateAudio: Bool?
  var hasVideoPacket = false
  var iterations = LoopIterations(loops: false)
  var readingJobs: [TrackKind: ReadingJob] = [:]
  var streams = ReaderStreams()
  var tracks = KnownTracks()
  var controller: RungController?
  /// The audio group of the rung (HLS).
  var audioGroup: String?
  /// The time for which the separate audio stream has been missing, and the next check of that.
  var audioAbsence = AudioAbsence()
  var audioWatch: (any ScheduledCall)?
  var live: LiveSegments?
  /// The live segments of a separate audio stream.
  var liveAudio: LiveSegments?
  /// The time range of audio before the first frame.
  var soundBeforeVideo: Range<MediaTime>?
  /// The parts of a complete presentation that have no video.
  var videoAbsences: [Absence] = []
  var readerWait: Duration = .zero
  var readerBusy: Duration = .zero
  var packets: ForwardBuffer
  /// The limits up to which the buffer was filled; nil while it is not full.
  var filledLimits: ForwardBuffer.Limits?

  // MARK: Decoding
  /// The job of the video decoder. For the player, it stands for the position since the last seek.
  var videoJob = DecodingJob()
  var audioJob = DecodingJob()
  var frames: FrameRing
  var audio = AudioQueue()
  /// True if the first frame is not urgent, so that all decoder threads are used from the beginning.
  var prefersThroughput = false
  /// True while the decoder has audio in hand, which is then in no queue: a packet, or the last audio of a decoder.
  var isDecodingAudio = false
  var decoding = DecodingAccount()

  /// A time shorter than any frame. Printed times are rounded down to it, so a frame less than this after a
  /// requested time is the intended one.
  static let instant = MediaTime(value: 1, timescale: 1_000_000)

  /// No item.
  init() {
    session = nil
    packets = ForwardBuffer(limits: ForwardBuffer.Limits(target: .zero))
    frames = FrameRing(frameCapacity: 1, byteCapacity: 0)
  }

  /// An item before loading.
  init(_ session: ItemSession, start: MediaTime?, target: PreloadTarget?, wantsAudio: Bool, loops: Bool) {
    let configuration = session.core.configuration
    self.session = session
    self.target = target
    self.wantsAudio = wantsAudio
    retry = configuration.retryPolicy
    iterations = LoopIterations(loops: loops)
    packets = ForwardBuffer(limits: session.limits(for: target))
    frames = FrameRing(
      frameCapacity: configuration.ringFrameCapacity, byteCapacity: configuration.ringByteCapacity)
    clock = Timebase(time: start ?? .zero)
    statistics.times = PlaybackTimes(start: session.startedAt)
    // Printed times are rounded down.
    let target = start.flatMap { $0 > .zero ? $0 + Self.instant : nil }
    if let target { _ = packets.seek(to: target) }
    videoJob = DecodingJob(target: target)
    for kind in TrackKind.allCases {
      readingJobs[kind] = ReadingJob(start: target ?? start.map { _ in .zero }, scope: session.makeScope())
    }
  }
}

// MARK: Queries of the player

extension ItemState {
  var playerItem: PlayerItem? { session?.item }

  /// The error that ended loading, even if it is not due yet.
  var failure: ReelError? { health.failure }

  /// The failure, if it can be reported now.
  var dueFailure: ReelError? {
    if case .failed(let error) = health { return error }
    return hasVideoPacket ? nil : failure
  }

  /// The time of the item, at a time of the clock.
  func time(at now: Duration, isFast: Bool) -> MediaTime {
    if isFast, let time = onShow.time { return time - onShow.shift }
    let time = clock.time(at: now)
    // The clock does not advance past the loaded media.
    return (onShow.end.map { min(time, max($0, onShow.time ?? $0)) } ?? time) - onShow.shift
  }

  /// Returns the kinds of media that a live presentation lacks at `time`, according to its periods.
  func absentKinds(at time: MediaTime) -> Set<TrackKind> {
    var absent: Set<TrackKind> = []
    if live?.isAbsent(at: time) == true { absent.insert(.video) }
    if liveAudio?.isAbsent(at: time) == true { absent.insert(.audio) }
    return absent
  }

  /// Returns true if a complete presentation has no video at `time`, on the presentation's timeline.
  func lacksVideo(at time: MediaTime) -> Bool { videoAbsences.contains { $0.contains(time) } }

  /// Returns the position at which playback begins: the first frame, or the requested position if there is no
  /// video at that time. All times are on the player's timeline.
  func beginning(firstFrame: MediaTime) -> MediaTime {
    let sought = playback.seek?.time
    let start = soundBeforeVideo.map { $0.lowerBound + onShow.shift }
    let wanted = sought ?? videoJob.target ?? start ?? firstFrame
    if wantsAudio, lacksVideo(at: wanted - onShow.shift) { return wanted }
    return max(sought ?? firstFrame, firstFrame)
  }

  /// True if no audio is ready, and more comes.
  private var lacksDecodedAudio: Bool { audio.isEmpty && !audio.isDrained }

  /// True if audio is decoded, and not only loaded.
  private var playsAudio: Bool { wantsAudio && target == nil }

  /// True if there is audio, or its end, to decode. That of a preloaded item is decoded only when it is played.
  var hasAudioToDecode: Bool {
    guard target == nil, !audio.isFull else { return false }
    return switch packets.peekNext(.audio) {
    case .element: true
    case .end: !audio.isFinished
    case .wait: false
    }
  }

  /// True if the decoder has to be woken for audio. After the end, more follows if the item loops after all.
  var isAudioDue: Bool { (audio.isLow || audio.isFinished) && hasAudioToDecode }

  /// Returns true if separate audio has run out and more will follow.
  func lacksAudio(at time: MediaTime) -> Bool {
    playsSeparateAudio && lacksDecodedAudio && packets.isAudioBehind(time)
      && !absentKinds(at: time).contains(.audio)
  }

  /// Returns true if the audio decoder is behind: no audio is ready, although packets due by `time` were
  /// loaded.
  func isAudioDecoderBehind(_ time: MediaTime) -> Bool {
    playsAudio && lacksDecodedAudio && isDecodingAudio || isAudioWaitingForDecoder(at: time)
  }

  /// Returns true if no audio is ready, and audio due by `time` waits to be decoded.
  func isAudioWaitingForDecoder(at time: MediaTime) -> Bool {
    playsAudio && lacksDecodedAudio && packets.hasAudioToDecode(until: time)
  }

  /// Returns true if the audio loader is behind: no audio is ready, packets due by `time` were not loaded,
  /// and more will come.
  func isAudioLoaderBehind(_ time: MediaTime) -> Bool {
    playsAudio && (hasSeparateAudio == true || streams.audio != nil) && lacksDecodedAudio
      && packets.isAudioBehind(time) && packets.isLoadingMoreAudio
  }

  /// Returns true if audio before `time` is ready, or will be without more loading.
  func hasAudio(before time: MediaTime) -> Bool {
    audio.nextTime.map { $0 < time } ?? isAudioDecoderBehind(time)
  }

  /// True if some audio has not been passed to outputs yet.
  var hasAudioLeft: Bool { wantsAudio && !audio.isDrained }

  /// Returns the distances of `time` from the live edge; nil if the item is not live.
  func liveDistances(from time: MediaTime) -> LiveDistances? { live?.distances(from: time) }

  // MARK: Changes by the player

  /// Begins at another position: none of its frames is on show yet.
  mutating func begin(at time: MediaTime) {
    onShow = OnShow(frame: onShow.frame, span: onShow.span)
    hasAnnouncedSoundEnd = false
    levelCheckedAt = nil
    clock = Timebase(time: time)
  }

  /// Sets the position on show: drops media before it, and resumes loading if there is room again.
  mutating func setPosition(_ time: MediaTime, _ out: inout Effects) {
    packets.setPosition(time)
    refill(&out)
  }

  /// Takes the next frame, which is shown or dropped in the same change; nil if there is none.
  mutating func takeFrame(_ out: inout Effects) -> VideoFrame? {
    let taken = frames.take()
    if frames.takeRoom() { out.wake(.decoder) }
    return taken
  }

  /// Takes the next audio, if it is due by `time`; nil for any.
  mutating func takeAudio(until time: MediaTime?, _ out: inout Effects) -> AudioQueue.Chunk? {
    let chunk = audio.take(until: time)
    if isAudioDue { out.wake(.decoder) }
    return chunk
  }

  /// Publishes a stage of loading. The reader and the presenter may report at the same time, so the stage never
  /// goes back.
  func reach(_ stage: PreloadStage, _ out: inout Effects) {
    guard let session, session.item.preloadStage.value < stage else { return }
    session.item.record(stage, after: session.core.clock.now - session.startedAt)
    session.item.observed.preloadStage.set(stage)
    out.signal(.progressed)
  }

  func log(_ error: ReelError, rung: String = "", _ outcome: ErrorLogEntry.Outcome) {
    playerItem?.log(
      ErrorLogEntry(
        error: error, rung: rung.isEmpty ? nil : rung, time: packets.position, outcome: outcome))
  }
}

/// The work of a decoder from one position on. It ends with a seek, with muting, or with the session.
///
/// What a decoder brings counts only while its job is the current one. So nothing that was begun before a seek
/// has an effect after it.
final class DecodingJob: Sendable {
  /// The first frame to show is the one on show at this time; nil for the very first.
  let target: MediaTime?
  /// The time by which the first frame may be earlier.
  let tolerance: MediaTime
  private let over = Atomic(false)

  init(target: MediaTime? = nil, tolerance: MediaTime = .zero) {
    self.target = target
    self.tolerance = tolerance
  }

  /// Asked between packets, without a lock.
  var isOver: Bool { over.load(ordering: .relaxed) }

  func end() { over.store(true, ordering: .relaxed) }
}

/// The work of a reader from one position on. What it reads counts only while its job is the current one.
final class ReadingJob: Sendable {
  /// Where it begins, on the player's timeline; nil for where playback of the item begins by default.
  let start: MediaTime?
  let loop: LoopIteration
  /// True if the iteration has been read already: only the next one can follow.
  let beginsAtEnd: Bool
  /// Cancelling it interrupts the reader.
  let scope: LoadScope

  init(
    start: MediaTime? = nil, loop: LoopIteration = LoopIteration(), beginsAtEnd: Bool = false,
    scope: LoadScope
  ) {
    self.start = start
    self.loop = loop
    self.beginsAtEnd = beginsAtEnd
    self.scope = scope
  }
}

/// The task loops of a player and its item.
struct Workers: OptionSet, Sendable {
  let rawValue: UInt8

  static let reader = Workers(rawValue: 1)
  static let audioReader = Workers(rawValue: 2)
  static let decoder = Workers(rawValue: 4)
  static let presenter = Workers(rawValue: 8)
  /// All of an item.
  static let loading: Workers = [.reader, .audioReader, .decoder]
}
