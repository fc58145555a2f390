internal import ReelCore
internal import ReelFFmpeg
internal import ReelSources

/// Decodes the packets of an item: frames into its ring, audio into its queue.
///
/// One worker does both. Audio takes little time: before each packet of video, its queue is filled.
///
/// Confined to the turns of its task loop. Between turns it owns its decoders, and nothing else.
final class ItemDecoder: @unchecked Sendable {
  // Sendable: used only in turns of its task loop, and there is one turn at a time.
  private unowned let session: ItemSession
  private lazy var video = makeVideoPipeline()
  private lazy var audio = AudioPipeline(
    session: session, name: session.item.source.name, logger: session.core.logger)
  /// The job whose frames can't be decoded.
  private var failedJob: DecodingJob?

  init(_ session: ItemSession) { self.session = session }

  func turn() -> TaskLoop.Next {
    decodeFrames()
    decodeAudio()
    // A decoder may be closed by now, and there may be room in the buffer.
    session.change { state, out in
      state.decoding.facts = video.facts
      state.refill(&out)
    }
    return .idle
  }

  // MARK: - Private

  private func decodeFrames() {
    guard let (order, target) = session.read({ ($0.decodingOrder, $0.target) }), order.job !== failedJob
    else { return }
    do {
      if let target {
        try preload(order, target)
      } else {
        _ = try video.turn(order)
      }
    } catch is CancellationError {
      // After a seek, or without its permit, the decoder goes on in another turn; after a stop there is none.
      if !session.scope.isCancelled { session.wake(.decoder) }
    } catch {
      failedJob = order.job
      video.giveUpDecoder()
      let failure = located(error)
      session.change { state, out in
        state.decodingFailed(failure, &out)
        state.finishFrames(of: order.job, &out)
      }
    }
  }

  /// Decodes up to the target, then releases everything that can be restored.
  private func preload(_ order: VideoPipeline.Order, _ target: PreloadTarget) throws {
    guard target.stage >= .firstFrame else { return video.giveUpDecoder() }
    let frameCount = session.read { $0.frames.statistics.frameCount } ?? 0
    if frameCount > target.frameLimit - 1 { video.rest() }
    _ = try video.turn(order)
    guard !target.isDecoderWarm, video.hasReachedLimit, video.park() else { return }
    session.core.account?.purge()
    // The decoder has packets to decode again, so the buffer may now count as full.
    session.core.wake()
  }

  /// Decodes audio, if there is any, until its queue is full. A span that can't be decoded is left out.
  private func decodeAudio() {
    guard case .some(let job?) = session.read({ $0.hasAudioToDecode ? $0.audioJob : nil }) else { return }
    do {
      try audio.turn(job)
    } catch {
      // The item continues to play without its audio.
      let failure = located(error)
      session.change { state, out in
        state.isDecodingAudio = false
        state.log(failure, .lost(MediaLoss(kind: .audio, reason: .damaged, range: nil)))
        if state.audioJob === job { state.audio.finish() }
        // Another span may be decodable.
        out.wake([.decoder, .presenter])
      }
    }
  }

  private func located(_ error: any Error) -> ReelError {
    let unknown = ReelError(.internalFault, "\(error)")
    return (error as? ReelError ?? unknown).located(at: session.item.source.name)
  }

  private func makeVideoPipeline() -> VideoPipeline {
    let (scope, core, name) = (session.scope, session.core, session.item.source.name)
    return VideoPipeline(
      session: session,
      options: VideoPipeline.Options(
        name: name, logger: core.logger, gate: core.gate,
        claim: core.decoders?.makeClaim { [weak session] in session?.wake(.decoder) }, clock: core.clock,
        decoders: core.configuration.decoders, threads: session.loading.decoderThreads,
        recordDecoding: { [weak session] account in
          session?.change { state, out in
            state.decoding = account
            out.signal(.decoded(count: account.frameCount))
          }
        },
        recordLoss: { [weak session] range, span in
          session?.change { state, _ in state.framesLost(in: range, of: span) }
        },
        recordFailure: { [weak session] error in
          session?.change { state, _ in state.spanWasFruitless(error.located(at: name)) }
        },
        decodeAudio: { [unowned self] in decodeAudio() }),
      isCancelled: { scope.isCancelled })
  }
}
