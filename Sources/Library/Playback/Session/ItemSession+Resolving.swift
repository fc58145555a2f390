internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Resolving the source, and the reaction to a failure of it.
extension ItemSession {
  func beginResolving(after pause: Duration) {
    let resolving = environment.runtime.task { [weak self] in
      guard let self else { return }
      if pause > .zero {
        do { try await environment.clock.sleep(for: pause) } catch { return }
      }
      await resolve()
    }
    let isStopped = change { state, _ in
      if !state.machine.isStopped { state.resolving = resolving }
      return state.machine.isStopped
    }
    if isStopped { resolving.cancel() }
  }

  private func resolve() async {
    do {
      try await resolveOnce()
      handle(.resolved)
    } catch {
      if Task.isCancelled { return }
      let other =
        error is CancellationError
        ? ReelError(.network, "a transfer was cancelled") : ReelError(.internalFault, "\(error)")
      handle(.resolvingFailed((error as? ReelError ?? other).located(at: item.source.name)))
    }
  }

  private func resolveOnce() async throws {
    let source = item.source
    let url: URL? = if case .url(let url) = source { url } else { nil }
    let fetcher = ConfinedFetcher(
      base: CountedFetcher(base: environment.fetcher, memory: scope.memory), source: url)
    let resolver = SourceResolver(
      fetcher: fetcher, configuration: environment.loading, scope: scope, recorder: recorder, record: nil)
    let context = TrackContext(
      name: source.name, fetcher: fetcher, configuration: environment.loading, scope: scope,
      recorder: recorder, gate: environment.gate, logger: environment.logger,
      readsAhead: prefersThroughput)
    let resolved = try await resolver.resolve(source)
    let opened = Opened(source: resolved, resolver: resolver, context: context)
    let isStopped = change { state, _ in
      state.opened = opened
      return state.machine.isStopped
    }
    // The item may be played by another session by now.
    if isStopped { throw CancellationError() }
    if case .presentation(let resolved) = resolved { recordLadder(of: resolved.presentation) }
    if case .presentation(let resolved) = resolved, let fault = resolved.presentation.live?.driftFault {
      recordFailure(fault.located(at: source.name), rung: "", outcome: .tolerated)
    }
  }
}
