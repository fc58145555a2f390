internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// Decodes the audio packets of a forward buffer into an audio queue.
///
/// Confined to its pump's turns.
final class AudioPipeline {
  private let buffer: ForwardBuffer
  private let queue: AudioQueue
  private let name: String
  private let logger: Logger
  private var decoder: AudioDecoder?
  private var run: MediaRun?
  private var epoch = -1
  /// Where the sound ends that was decoded.
  private var nextTime: MediaTime?
  /// No sound of the run was decoded.
  private var isRunNew = true
  private var isFinished = false
  /// Sound that can't be decoded: its packets are passed over.
  private var brokenRun: MediaRun?

  init(buffer: ForwardBuffer, queue: AudioQueue, name: String, logger: Logger) {
    self.buffer = buffer
    self.queue = queue
    self.name = name
    self.logger = logger
  }

  /// Decodes as far as it can go. Throws `ReelError` for a run whose sound can't be decoded, once; it is left out.
  func turn(epoch: Int, generation: Int) throws(ReelError) {
    if epoch != self.epoch {
      self.epoch = epoch
      try decoder?.flush()
      nextTime = nil
      isFinished = false
    }
    if isFinished {
      switch buffer.peekNext(.audio, epoch: epoch) {
      case .packet:
        // The item has begun anew after all.
        isFinished = false
        queue.goOn(generation: generation)
      case .end:
        // The queue may have been emptied since.
        return queue.finish(generation: generation)
      case .none, .stale:
        return
      }
    }
    while !isFinished, queue.hasRoom(generation: generation) {
      switch buffer.next(.audio, epoch: epoch) {
      case .packet(let packet):
        if packet.run === brokenRun { continue }
        do throws(ReelError) {
          try decode(packet, generation: generation)
        } catch {
          brokenRun = packet.run
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
    if packet.run !== run || decoder == nil {
      try drain(generation: generation)
      run = packet.run
      decoder = try AudioDecoder(stream: packet.run.stream, name: name, logger: logger)
      isRunNew = true
    }
    guard let buffers = try decoder?.decode(packet.box.packet) else { return }
    for pcm in buffers { append(pcm, of: packet.run, generation: generation) }
  }

  private func drain(generation: Int) throws(ReelError) {
    guard let decoder, let run else { return }
    self.decoder = nil
    for pcm in try decoder.drain() { append(pcm, of: run, generation: generation) }
  }

  private func append(_ pcm: PCMBuffer, of run: MediaRun, generation: Int) {
    guard pcm.frameCount > 0 else { return }
    var pcm = pcm
    var time = pcm.ticks.map { run.time(ticks: $0) } ?? nextTime ?? run.shift
    if let nextTime, time < nextTime {
      // Of another rung, or read once more: heard already.
      if time + pcm.duration <= nextTime { return }
      if isRunNew {
        pcm = pcm.dropping(Int((nextTime - time).ticks(timescale: Int32(clamping: pcm.sampleRate))))
        time = nextTime
      }
    }
    isRunNew = false
    let chunk = AudioQueue.Chunk(buffer: pcm, time: time, shift: run.shift)
    nextTime = chunk.end
    queue.append(chunk, generation: generation)
  }
}
