internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// Decodes the audio packets of a forward buffer into an audio queue.
///
/// Confined to its task loop's turns.
final class AudioPipeline {
  private let buffer: ForwardBuffer
  private let queue: AudioQueue
  private let name: String
  private let logger: Logger
  private var decoder: AudioDecoder?
  private var span: StreamSpan?
  private var bufferGeneration = -1
  /// The audio that was decoded last.
  private var last: AudioQueue.Chunk?
  /// True if no audio of the span has been decoded yet.
  private var isSpanNew = true
  private var isFinished = false
  /// A span that can't be decoded. Its packets are skipped.
  private var brokenSpan: StreamSpan?

  init(buffer: ForwardBuffer, queue: AudioQueue, name: String, logger: Logger) {
    self.buffer = buffer
    self.queue = queue
    self.name = name
    self.logger = logger
  }

  /// Decodes as much as possible. If a span can't be decoded, throws `ReelError` once and skips the span.
  func turn(bufferGeneration: Int, generation: Int) throws(ReelError) {
    if bufferGeneration != self.bufferGeneration {
      self.bufferGeneration = bufferGeneration
      try decoder?.flush()
      last = nil
      isFinished = false
    }
    if isFinished {
      switch buffer.peekNext(.audio, bufferGeneration: bufferGeneration) {
      case .packet:
        // More packets follow after all: the item loops.
        isFinished = false
        queue.resume(generation: generation)
      case .end:
        // The queue may have been flushed since.
        return queue.finish(generation: generation)
      case .none, .stale:
        return
      }
    }
    while !isFinished, queue.hasRoom(generation: generation) {
      switch buffer.next(.audio, bufferGeneration: bufferGeneration) {
      case .packet(let packet):
        if packet.span === brokenSpan { continue }
        do throws(ReelError) {
          try decode(packet, generation: generation)
        } catch {
          brokenSpan = packet.span
          decoder = nil
          throw error
        }
      case .end:
        try drain(generation: generation)
        queue.finish(generation: generation)
        isFinished = true
      case .none, .stale:
        return
      }
    }
  }

  // MARK: - Private

  private func decode(_ packet: MediaPacket, generation: Int) throws(ReelError) {
    if packet.span !== span || decoder == nil {
      try drain(generation: generation)
      span = packet.span
      decoder = try AudioDecoder(stream: packet.span.stream, name: name, logger: logger)
      isSpanNew = true
    }
    guard let buffers = try decoder?.decode(packet.box.packet) else { return }
    for pcm in buffers { append(pcm, of: packet.span, generation: generation) }
  }

  private func drain(generation: Int) throws(ReelError) {
    guard let decoder, let span else { return }
    self.decoder = nil
    for pcm in try decoder.drain() { append(pcm, of: span, generation: generation) }
  }

  private func append(_ pcm: PCMBuffer, of span: StreamSpan, generation: Int) {
    guard pcm.frameCount > 0 else { return }
    var pcm = pcm
    let nextTime = last?.end
    // The first frame may correct the offset meanwhile.
    let offset = span.offset.value
    var time = pcm.ticks.map { span.stream.time(ticks: $0) + offset + span.shift } ?? nextTime ?? span.shift
    if let nextTime, time < nextTime {
      // Repeated, or from another rung: it was played already.
      if time + pcm.duration <= nextTime { return }
      if isSpanNew {
        pcm = pcm.dropping(Int((nextTime - time).ticks(timescale: Int32(clamping: pcm.sampleRate))))
        time = nextTime
      }
    }
    isSpanNew = false
    let chunk = AudioQueue.Chunk(
      buffer: pcm, shift: span.shift, mediaTime: time - offset, offset: span.offset)
    last = chunk
    queue.append(chunk, generation: generation)
  }
}
