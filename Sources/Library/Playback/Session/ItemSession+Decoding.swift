internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The task loops, and the turns of the decoding ones.
extension ItemSession {
  func makeTaskLoops() -> TaskLoops {
    let reading = Reading(kind: .video)
    let readingAudio = Reading(kind: .audio)
    let video = PipelineBox<VideoPipeline>()
    let audio = PipelineBox<AudioPipeline>()
    return TaskLoops(
      reader: makeLoop("read") { $0.read(reading) },
      audioReader: makeLoop("read-audio") { $0.read(readingAudio) },
      video: makeLoop("decode") { session in
        session.decodeVideo(video)
        return .idle
      },
      audio: makeLoop("decode-audio") { session in
        session.decodeAudio(audio)
        return .idle
      })
  }

  private func makeLoop(
    _ name: String, turn: @escaping @Sendable (ItemSession) -> TaskLoop.Next
  ) -> TaskLoop {
    TaskLoop(
      named: name, runtime: environment.runtime, clock: environment.clock, account: environment.account
    ) { [weak self] in
      self.map(turn) ?? .idle
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
      let claim = environment.decoderLimit?.makeClaim { [weak self] in self?.wake(.video) }
      pipeline = VideoPipeline(
        session: self,
        options: VideoPipeline.Options(
          name: item.source.name, logger: environment.logger, gate: environment.gate,
          claim: claim, clock: environment.clock, decoders: environment.decoders,
          threads: environment.loading.decoderThreads,
          recordDecoding: { [weak self] account in
            self?.change { state, _ in state.decoding = account }
            self?.delegate.decoded(account.frameCount)
          },
          recordFailure: { [weak self] error in
            guard let self else { return }
            handle(.spanWasFruitless(error.located(at: item.source.name)))
          }),
        isCancelled: { scope.isCancelled })
      box.pipeline = pipeline
    }
    let (order, target) = state.read { ($0.decodingOrder(prefersThroughput), $0.machine.target) }
    // The decoder may be closed by then.
    defer { change { state, _ in state.decoding.facts = pipeline.facts } }
    do {
      if let target {
        try preload(pipeline, order, target)
      } else {
        _ = try pipeline.turn(order)
      }
      change { state, out in state.refill(&out) }
    } catch is CancellationError {
      // After a seek there is another turn; after a stop there is none.
      if !scope.isCancelled { wake(.video) }
    } catch {
      pipeline.giveUpDecoder()
      let unknown = ReelError(.internalFault, "\(error)")
      handle(.decodingFailed((error as? ReelError ?? unknown).located(at: item.source.name)))
      finishFrames(of: order.job)
    }
  }

  /// Ends the frames of a job: none follows the last one.
  func finishFrames(of job: DecodingJob) {
    change { state, out in
      guard state.videoJob === job else { return }
      state.frames.finish()
      if state.frames.isEmpty { out.wake(.presenter) }
    }
  }

  /// Decodes up to the target, then releases everything that can be restored.
  private func preload(_ pipeline: VideoPipeline, _ order: VideoPipeline.Order, _ target: PreloadTarget)
    throws
  {
    guard target.stage >= .firstFrame else { return pipeline.giveUpDecoder() }
    if state.read({ $0.frames.statistics.frameCount }) > target.frameLimit - 1 { pipeline.rest() }
    _ = try pipeline.turn(order)
    guard !target.isDecoderWarm, pipeline.hasReachedLimit, pipeline.park() else { return }
    environment.account?.purge()
    // The decoder has packets to decode again, so the buffer may now count as full.
    delegate.wake()
  }

  func decodeAudio(_ box: PipelineBox<AudioPipeline>) {
    // The audio of a preloaded item is decoded only when it is played.
    guard state.read({ $0.machine.target == nil }) else { return }
    let pipeline =
      box.pipeline ?? AudioPipeline(session: self, name: item.source.name, logger: environment.logger)
    box.pipeline = pipeline
    let job = change { state, _ in
      state.isDecodingAudio = true
      return state.audioJob
    }
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
      recordFailure(
        error.located(at: item.source.name), rung: "",
        outcome: .lost(MediaLoss(kind: .audio, reason: .damaged, range: nil)))
      change { state, out in
        if state.audioJob === job { state.audio.finish() }
        // Another span may be decodable.
        out.wake(.audio)
      }
    }
  }
}

extension ItemSession.State {
  /// What the video decoder is to do.
  func decodingOrder(_ prefersThroughput: Bool) -> VideoPipeline.Order {
    VideoPipeline.Order(
      job: videoJob, limit: machine.target?.frameLimit, prefersThroughput: prefersThroughput,
      lastIteration: machine.iterations.last)
  }
}
