internal import DequeModule
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelReading
internal import ReelSources

/// Decodes the audio packets of an item into its audio queue.
///
/// Confined to the turns of its `ItemDecoder`.
final class AudioPipeline {
  // Turns are of the session, so it lives as long as one.
  private unowned let session: ItemSession
  private let name: String
  private let logger: Logger
  private var decoder: AudioDecoder?
  private var span: StreamSpan?
  private var job: DecodingJob?
  /// The audio that was decoded last.
  private var last: AudioQueue.Chunk?
  /// True if no audio of the span has been decoded yet.
  private var isSpanNew = true
  private var isFinished = false
  /// A span that can't be decoded. Its packets are skipped.
  private var brokenSpan: StreamSpan?
  /// The packets that could not be decoded and were not reported, on the item's timeline.
  private var undecodable: Range<MediaTime>?
  /// True if the decoder has returned no audio since it was opened or flushed, and the packets that it got until then.
  private var isSilent = true
  private var silent: Silence?

  /// Packets for which a decoder has returned no audio yet.
  private struct Silence {
    var count = 0
    var hasRejected = false
    var range: Range<MediaTime>

    /// False if the decoder may only hold the audio back.
    var isLost: Bool { count > AudioPipeline.heldCount || hasRejected }
  }

  /// Losses with less audio than this between them are reported as one.
  private static let separation = MediaTime(value: 1, timescale: 2)

  init(session: ItemSession, name: String, logger: Logger) {
    self.session = session
    self.name = name
    self.logger = logger
  }

  /// Decodes as much as possible. If a span can't be decoded, throws `ReelError` once and skips the span.
  func turn(_ job: DecodingJob) throws(ReelError) {
    if job !== self.job {
      self.job = job
      try decoder?.flush()
      last = nil
      isFinished = false
      undecodable = nil
      isSilent = true
      silent = nil
    }
    if isFinished {
      let goesOn = session.change { state, _ in
        guard state.audioJob === job, case .element = state.packets.peekNext(.audio) else { return false }
        // More packets follow after all: the item loops.
        state.audio.resume()
        return true
      }
      isFinished = goesOn != true
    }
    while !isFinished {
      let next = session.change { state, out -> Pulled<MediaPacket> in
        let next: Pulled<MediaPacket> =
          state.audioJob === job && !state.audio.isFull ? state.packets.next(.audio) : .wait
        state.isDecodingAudio = if case .wait = next { false } else { true }
        // The presenter may be waiting for audio that does not come yet.
        if !state.isDecodingAudio, state.audio.isEmpty { out.wake(.presenter) }
        return next
      }
      switch next ?? .wait {
      case .element(let packet):
        if packet.span === brokenSpan { continue }
        do throws(ReelError) {
          try decode(packet)
        } catch {
          brokenSpan = packet.span
          decoder = nil
          throw error
        }
      case .end:
        try drain()
        session.change { state, out in
          state.isDecodingAudio = false
          if state.audioJob === job { state.audio.finish() }
          out.wake(.presenter)
        }
        isFinished = true
      case .wait:
        return
      }
    }
  }

  // MARK: - Private

  private func decode(_ packet: MediaPacket) throws(ReelError) {
    if packet.span !== span || decoder == nil {
      try drain()
      span = packet.span
      decoder = try AudioDecoder(stream: packet.span.stream, name: name, logger: logger)
      isSpanNew = true
      isSilent = true
    }
    guard let decoder else { return }
    let rejectedCount = decoder.rejectedPacketCount
    let buffers = try decoder.decode(packet.unit)
    record(packet, isRejected: decoder.rejectedPacketCount > rejectedCount, hasAudio: !buffers.isEmpty)
    append(buffers, of: packet.span)
  }

  private func drain() throws(ReelError) {
    guard let decoder, let span else { return }
    self.decoder = nil
    let buffers = try decoder.drain()
    // A decoder that has held back all its audio has decoded it.
    if buffers.isEmpty, let silent, silent.isLost { addUndecodable(silent.range) }
    silent = nil
    reportUndecodable(of: span)
    append(buffers, of: span)
  }

  /// More packets than a decoder takes before its first audio.
  private static let heldCount = 4

  /// Records the outcome of a packet. Packets that an edit list leaves out have none.
  private func record(_ packet: MediaPacket, isRejected: Bool, hasAudio: Bool) {
    guard !packet.unit.isDiscarded else { return }
    let start = packet.time - packet.span.shift
    let range = start..<max(start, packet.end - packet.span.shift)
    if hasAudio {
      if let silent, silent.isLost { addUndecodable(silent.range) }
      silent = nil
      isSilent = false
      if isRejected { addUndecodable(range) }
    } else if isSilent {
      var silence = silent ?? Silence(range: range)
      let first = min(silence.range.lowerBound, start)
      silence.range = first..<max(silence.range.upperBound, range.upperBound)
      // The first packet may need one before it.
      if isRejected, silence.count > 0 || packet.unit.isNoise { silence.hasRejected = true }
      silence.count += 1
      silent = silence
    } else if isRejected {
      addUndecodable(range)
    }
    if hasAudio, let end = undecodable?.upperBound, range.lowerBound - end > Self.separation {
      reportUndecodable(of: packet.span)
    }
  }

  private func addUndecodable(_ range: Range<MediaTime>) {
    let start = min(undecodable?.lowerBound ?? range.lowerBound, range.lowerBound)
    undecodable = start..<max(undecodable?.upperBound ?? range.upperBound, range.upperBound)
  }

  private func reportUndecodable(of span: StreamSpan) {
    guard let range = undecodable.take() else { return }
    session.change { state, _ in
      if state.audioJob === job { state.mediaUndecodable(.audio, in: range, rung: span.rung) }
    }
  }

  private func append(_ buffers: [PCMBuffer], of span: StreamSpan) {
    let chunks = buffers.compactMap { place($0, of: span) }
    guard !chunks.isEmpty else { return }
    session.change { state, out in
      guard state.audioJob === job else { return }
      if state.audio.isEmpty { out.wake(.presenter) }
      for chunk in chunks { state.audio.append(chunk) }
    }
  }

  /// Gives audio its place on the timeline; nil if it was played already.
  private func place(_ pcm: PCMBuffer, of span: StreamSpan) -> AudioQueue.Chunk? {
    guard pcm.frameCount > 0 else { return nil }
    var pcm = pcm
    let nextTime = last?.end
    // The first frame may correct the offset meanwhile.
    let offset = span.offset.value
    var time = pcm.ticks.map { span.stream.time(ticks: $0) + offset + span.shift } ?? nextTime ?? span.shift
    if let nextTime, time < nextTime {
      // Repeated, or from another rung: it was played already.
      if time + pcm.duration <= nextTime { return nil }
      if isSpanNew {
        pcm = pcm.dropping(Int((nextTime - time).ticks(timescale: Int32(clamping: pcm.sampleRate))))
        time = nextTime
      }
    }
    isSpanNew = false
    let (start, end) = span.shown.withLock {
      ($0.start.map { $0 + span.shift }, $0.end.map { $0 + span.shift })
    }
    let timescale = Int32(clamping: pcm.sampleRate)
    if let end, time + pcm.duration > end {
      pcm = pcm.keeping(Int((end - time).ticks(timescale: timescale)))
    }
    if let start, time < start {
      pcm = pcm.dropping(Int((start - time).ticks(timescale: timescale)))
      time = start
    }
    guard pcm.frameCount > 0 else { return nil }
    let chunk = AudioQueue.Chunk(
      buffer: pcm, shift: span.shift, mediaTime: time - offset, offset: span.offset)
    last = chunk
    return chunk
  }
}

/// The decoded audio of one player that is not heard yet, in order. A pure value.
struct AudioQueue: Sendable {
  struct Chunk: Sendable {
    var buffer: PCMBuffer
    /// The time to subtract from `time` for the item's own time.
    let shift: MediaTime
    /// `time` without `offset`.
    var mediaTime: MediaTime
    /// The offset of the timestamps. The first frame may correct it after the audio was decoded.
    let offset: TimestampOffset

    /// The time on the player's timeline.
    var time: MediaTime { mediaTime + offset.value }

    var end: MediaTime { time + buffer.duration }
  }

  private var chunks: Deque<Chunk> = []
  /// True if no audio follows.
  private(set) var isFinished = false
  /// The end of the audio taken last.
  private var takenEnd: MediaTime?
  /// Audio before this time is dropped; a chunk that contains it is cut.
  private var start: MediaTime?
  /// The duration of audio to decode ahead.
  private static let capacity = MediaTime(value: 1, timescale: 2)

  /// The time at which the next audio is due; nil if there is none.
  var nextTime: MediaTime? { chunks.first?.time }

  /// The end of the audio so far; nil before there is any.
  var end: MediaTime? { chunks.last?.end ?? takenEnd }

  var isEmpty: Bool { chunks.isEmpty }

  /// True if enough is decoded.
  var isFull: Bool { length >= Self.capacity }

  /// True if more should be decoded: less than half of what the queue may hold is left.
  var isLow: Bool { length * 2 < Self.capacity }

  /// True if the last audio has been taken.
  var isDrained: Bool { isFinished && chunks.isEmpty }

  mutating func append(_ chunk: Chunk) {
    var chunk = chunk
    if let start {
      guard chunk.end > start else { return }
      let missing = start - chunk.time
      if missing > .zero {
        let cut = missing.ticks(timescale: Int32(clamping: chunk.buffer.sampleRate))
        chunk.buffer = chunk.buffer.dropping(Int(cut))
        chunk.mediaTime = chunk.mediaTime + missing
      }
      self.start = nil
    }
    isFinished = false
    chunks.append(chunk)
  }

  mutating func finish() { isFinished = true }

  /// Cancels the end: more audio follows.
  mutating func resume() { isFinished = false }

  /// Takes the next chunk, if it is due by `time`; nil for any.
  mutating func take(until time: MediaTime?) -> Chunk? {
    guard let first = chunks.first, time.map({ first.time <= $0 }) ?? true else { return nil }
    takenEnd = first.end
    return chunks.removeFirst()
  }

  /// Drops the audio of iterations after the one that begins at `shift`.
  mutating func drop(after shift: MediaTime) {
    while let last = chunks.last, last.shift > shift { chunks.removeLast() }
  }

  /// Drops all audio; what follows is played from `start` on.
  mutating func flush(start: MediaTime?) {
    self = AudioQueue()
    self.start = start
  }

  // MARK: - Private

  private var length: MediaTime {
    guard let first = chunks.first, let last = chunks.last else { return .zero }
    return last.end - first.time
  }
}

/// Measures how long the server has failed to deliver a separate audio stream.
///
/// On a busy machine everything is late: the handling of bytes that have arrived as well as the check of the
/// clock. Therefore, time is counted in intervals with a check at the end of each, and a multiple of the
/// check's delay is subtracted from the interval.
///
/// A pure value.
struct AudioAbsence: Sendable {
  /// The time counted so far.
  private(set) var length = Duration.zero
  /// The time at which audio last arrived or was requested.
  private(set) var since = Duration.zero
  private var intervalStart = Duration.zero

  /// The factor for a check's delay: if a check is late by a tenth of its interval, the interval does not
  /// count.
  private static let weight = 10

  /// Records that audio has arrived, or is requested from now on.
  mutating func end(at now: Duration) {
    length = .zero
    since = now
    intervalStart = now
  }

  /// Counts the interval up to `due`, the time for which the current check was planned.
  mutating func count(to due: Duration, now: Duration) {
    length += max(.zero, due - intervalStart - max(.zero, now - due) * Self.weight)
    intervalStart = now
  }

  /// Returns the time of the next check. It is always a whole interval away: with shorter ones, nothing might
  /// ever count.
  func nextLook(after now: Duration, patience: Duration) -> Duration { now + patience / 10 }
}
