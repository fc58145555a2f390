internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// Decodes the audio packets of an item into its audio queue.
///
/// Confined to its task loop's turns.
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
      let next = session.change { state, _ -> Pulled<MediaPacket> in
        guard state.audioJob === job else { return .wait }
        return state.audio.hasRoom() ? state.packets.next(.audio) : .wait
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
        session.change { state, _ in if state.audioJob === job { state.audio.finish() } }
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
    }
    guard let buffers = try decoder?.decode(packet.unit) else { return }
    append(buffers, of: packet.span)
  }

  private func drain() throws(ReelError) {
    guard let decoder, let span else { return }
    self.decoder = nil
    append(try decoder.drain(), of: span)
  }

  private func append(_ buffers: [PCMBuffer], of span: StreamSpan) {
    let chunks = buffers.compactMap { place($0, of: span) }
    guard !chunks.isEmpty else { return }
    session.change { state, _ in
      guard state.audioJob === job else { return }
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
    let chunk = AudioQueue.Chunk(
      buffer: pcm, shift: span.shift, mediaTime: time - offset, offset: span.offset)
    last = chunk
    return chunk
  }
}

extension ItemSession {
  /// A turn of the task loop that decodes audio.
  func decodeAudio(_ box: DecoderBox<AudioPipeline>) -> TaskLoop.Next {
    let pipeline =
      box.pipeline ?? AudioPipeline(session: self, name: item.source.name, logger: core.logger)
    box.pipeline = pipeline
    let job = change { state, _ -> DecodingJob? in
      // The audio of a preloaded item is decoded only when it is played.
      guard state.target == nil else { return nil }
      state.isDecodingAudio = true
      return state.audioJob
    }
    guard case .some(let job?) = job else { return .idle }
    // The presenter may be waiting for the decoder.
    defer {
      change { state, out in
        state.isDecodingAudio = false
        out.wake(.presenter)
      }
    }
    do {
      try pipeline.turn(job)
      change { state, out in state.refill(&out) }
    } catch {
      // The item continues to play without its audio.
      let failure = error.located(at: item.source.name)
      change { state, out in
        state.log(failure, .lost(MediaLoss(kind: .audio, reason: .damaged, range: nil)))
        if state.audioJob === job { state.audio.finish() }
        // Another span may be decodable.
        out.wake(.audio)
      }
    }
    return .idle
  }
}
