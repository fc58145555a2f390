internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Finding out what the source is, and what to do when that fails.
extension ItemSession {
  /// Begins to load, once, where anything is wanted.
  func beginWhereWanted() {
    let begins = state.withLock { state in
      guard !state.hasBegun, !state.isStopped, state.target.map({ $0.stage > .none }) ?? true else {
        return false
      }
      state.hasBegun = true
      return true
    }
    if begins { beginResolving() }
  }

  func beginResolving() {
    let resolving = environment.execution.task { [weak self] in
      guard let self else { return }
      await self.resolve()
    }
    let isStopped = state.withLock { state in
      if !state.isStopped { state.resolving = resolving }
      return state.isStopped
    }
    if isStopped { resolving.cancel() }
  }

  /// Finds out what the source is, with retries.
  func resolve() async {
    while true {
      do {
        try await resolveOnce()
        pumps.wake(.reader)
        return
      } catch {
        if Task.isCancelled || state.withLock({ $0.isStopped }) { return }
        let other =
          error is CancellationError
          ? ReelError(.network, "a transfer was cancelled") : ReelError(.internalFault, "\(error)")
        let located = (error as? ReelError ?? other).located(at: item.source.name)
        noteFailure(located, rung: "")
        guard let delay = nextRetry(after: located) else { return fail(located) }
        do { try await environment.clock.sleep(for: delay) } catch { return }
      }
    }
  }

  func resolveOnce() async throws {
    let source = item.source
    let url: URL? = if case .url(let url) = source { url } else { nil }
    let fetcher = ConfinedFetcher(
      base: CountedFetcher(base: environment.fetcher, memory: scope.memory), source: url)
    let resolver = SourceResolver(
      fetcher: fetcher, configuration: environment.loading, scope: scope, recorder: recorder, note: nil)
    let context = TrackContext(
      name: source.name, fetcher: fetcher, configuration: environment.loading, scope: scope,
      recorder: recorder, gate: environment.gate, logger: environment.logger,
      readsAhead: state.withLock { $0.prefersThroughput })
    let resolved = try await resolver.resolve(source)
    let isStopped = state.withLock { state in
      state.source = resolved
      state.resolver = resolver
      state.context = context
      return state.isStopped
    }
    // The item may be played by another session by now.
    if isStopped { throw CancellationError() }
    if case .presentation(let resolved) = resolved, let fault = resolved.presentation.live?.driftFault {
      noteFailure(fault.located(at: source.name), rung: "")
    }
    reach(.manifest)
  }

  /// The pause before the next attempt; nil where there is none.
  func nextRetry(after error: ReelError) -> Duration? {
    let (delay, policy) = state.withLock { state in
      let delay = state.isStopped ? nil : state.retry.next(after: error)
      return (delay, state.retry)
    }
    guard let delay else { return nil }
    item.remainingRetries.set(policy.remaining)
    delegate.event(
      .retry(attempt: policy.attempts - policy.remaining, of: policy.attempts, after: delay, error))
    return delay
  }

  func fail(_ error: ReelError) {
    state.withLock { $0.failure = error }
    delegate.wake()
  }
}
