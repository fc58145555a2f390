internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The task loops, and the turns of the decoding ones.
extension ItemSession {
  func makeTaskLoops() {
    let (runtime, clock, account) = (environment.runtime, environment.clock, environment.account)
    let reading = Reading(kind: .video)
    let readingAudio = Reading(kind: .audio)
    let video = PipelineBox<VideoPipeline>()
    let audioBox = PipelineBox<AudioPipeline>()
    taskLoops.all.withLock { all in
      all[.reader] = TaskLoop(named: "read", runtime: runtime, clock: clock, account: account) {
        [weak self] in
        self?.read(reading) ?? .idle
      }
      all[.audioReader] = TaskLoop(named: "read-audio", runtime: runtime, clock: clock, account: account) {
        [weak self] in
        self?.read(readingAudio) ?? .idle
      }
      all[.video] = TaskLoop(named: "decode", runtime: runtime, clock: clock, account: account) {
        [weak self] in
        self?.decodeVideo(video)
        return .idle
      }
      all[.audio] = TaskLoop(named: "decode-audio", runtime: runtime, clock: clock, account: account) {
        [weak self] in
        self?.decodeAudio(audioBox)
        return .idle
      }
    }
  }

  /// The state that a decoder's task loop keeps between turns.
  final class PipelineBox<Pipeline>: @unchecked Sendable {
    // Sendable: used only in turns of its task loop, and there is one turn at a time.
    var pipeline: Pipeline?
  }

  func decodeVideo(_ box: PipelineBox<VideoPipeline>) {
    let pipeline: VideoPipeline
    if let made = box.pipeline {
      pipeline = made
    } else {
      let scope = scope
      let claim = environment.decoderLimit?.makeClaim { [weak self] in self?.taskLoops.wake(.video) }
      pipeline = VideoPipeline(
        buffer: buffer, ring: ring,
        options: VideoPipeline.Options(
          name: item.source.name, logger: environment.logger, gate: environment.gate,
          claim: claim, clock: environment.clock, decoders: environment.decoders,
          threads: environment.loading.decoderThreads,
          recordDecoding: { [weak self] account in
            self?.state.withLock { $0.decoding = account }
            self?.delegate.decoded(account.frameCount)
          },
          recordFailure: { [weak self] error in
            guard let self else { return }
            handle(.spanWasFruitless(error.located(at: item.source.name)))
          }),
        isCancelled: { scope.isCancelled })
      box.pipeline = pipeline
    }
    let (order, target) = state.withLock { ($0.machine.order, $0.machine.target) }
    // The decoder may be closed by then.
    defer { state.withLock { $0.decoding.facts = pipeline.facts } }
    do {
      if let target {
        try preload(pipeline, order, target)
      } else {
        _ = try pipeline.turn(order)
      }
      refill()
    } catch is CancellationError {
      // After a seek there is another turn; after a stop there is none.
      if !scope.isCancelled { taskLoops.wake(.video) }
    } catch {
      pipeline.giveUpDecoder()
      let unknown = ReelError(.internalFault, "\(error)")
      handle(.decodingFailed((error as? ReelError ?? unknown).located(at: item.source.name)))
      ring.finish(generation: order.generation)
    }
  }

  /// Decodes up to the target, then releases everything that can be restored.
  private func preload(_ pipeline: VideoPipeline, _ order: VideoPipeline.Order, _ target: PreloadTarget)
    throws
  {
    guard target.stage >= .firstFrame else { return pipeline.giveUpDecoder() }
    if ring.statistics.frameCount > target.frameLimit - 1 {
      // The last frame taken may not be on show yet, and another may be taken meanwhile.
      while let taken = ring.takenTime(generation: order.generation), pipeline.rest(at: taken) {
        if ring.clear(generation: order.generation, after: taken) { break }
      }
    }
    _ = try pipeline.turn(order)
    guard !target.isDecoderWarm, pipeline.hasReachedLimit, pipeline.park() else { return }
    environment.account?.purge()
    // The decoder has packets to decode again, so the buffer may now count as full.
    delegate.wake()
  }

  func decodeAudio(_ box: PipelineBox<AudioPipeline>) {
    // The audio of a preloaded item is decoded only when it is played.
    guard state.withLock({ $0.machine.target == nil }) else { return }
    let pipeline =
      box.pipeline
      ?? AudioPipeline(buffer: buffer, queue: audio, name: item.source.name, logger: environment.logger)
    box.pipeline = pipeline
    let (bufferGeneration, generation) = state.withLock { state in
      state.isDecodingAudio = true
      return (buffer.bufferGeneration(of: .audio), state.machine.order.generation)
    }
    // The presenter may be waiting for the decoder.
    defer {
      state.withLock { $0.isDecodingAudio = false }
      delegate.wake()
    }
    do {
      try pipeline.turn(bufferGeneration: bufferGeneration, generation: generation)
      refill()
    } catch {
      // The item continues to play without its audio.
      recordFailure(
        error.located(at: item.source.name), rung: "",
        outcome: .lost(MediaLoss(kind: .audio, reason: .damaged, range: nil)))
      audio.finish(generation: generation)
      // Another span may be decodable.
      taskLoops.wake(.audio)
    }
  }
}
