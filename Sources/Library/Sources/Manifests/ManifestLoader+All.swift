internal import Foundation
package import ReelCore
internal import ReelManifest

/// Reading of whole manifests.
extension ManifestLoader {
  /// The number of playlists and indexes read at a time.
  private static let concurrency = 8
  /// The limit for the bytes of all playlists of a source together, as a multiple of the limit for one
  /// manifest.
  private static let totalFactor = 4

  /// Reads the playlists and indexes of all rungs, as far as they are available.
  ///
  /// - Parameters:
  ///   - withImages: True to also read those of images and metadata, which are never played. The call does not wait
  ///     long for them once all others have arrived.
  ///   - end: The time of the system's monotonic clock at which those that are not there have failed; nil for no limit.
  ///     None gets all of the time if others have to wait for it.
  ///   - documents: Those that were read, to which `record` adds; together they may have only so many bytes.
  ///
  /// Throws `CancellationError`.
  package func loadAll(
    of resolved: ResolvedPresentation, withImages: Bool, until end: Duration? = nil,
    _ documents: Locked<[LoadedManifest.Document]>
  ) async throws -> LoadedManifest {
    let presentation = resolved.presentation
    var loaded = LoadedManifest(presentation: presentation, url: resolved.url, fetcher: fetcher)
    let limit = configuration.manifestLimits.byteCount.multipliedReportingOverflow(by: Self.totalFactor)
    let isTooMuch = { @Sendable in
      let count = documents.withLock { $0.reduce(0) { $0 + $1.bytes.count } }
      return !limit.overflow && count > limit.partialValue
    }
    let (places, optional) = places(in: presentation, withImages: withImages)
    let turns = (places.count + Self.concurrency - 1) / Self.concurrency
    let patience = ListPatience(turns: turns, end: end)
    let outcomes = try await Patience.gather(
      count: places.count, neededCount: optional, concurrency: Self.concurrency,
      clock: recorder.clock
    ) { index -> Result<RungSegments, ReelError> in
      if isTooMuch() {
        return .failure(ReelError(.badManifest, "the playlists of all rungs together are too large"))
      }
      let place = places[index]
      let rung = presentation.periods[place.period].trackGroups[place.group].rungs[place.rung]
      return try await patience.outcome(at: rung.media) {
        try await outcome(of: rung, variables: presentation.variables)
      }
    }
    for (index, place) in places.enumerated() {
      switch outcomes[index] {
      case .success(let found): loaded.take(found, at: place)
      case .failure(let error): loaded.failures.append(failure(error, at: place))
      case nil:
        let rung = presentation.periods[place.period].trackGroups[place.group].rungs[place.rung]
        loaded.failures.append(failure(rung.lateImages, at: place))
      }
    }
    loaded.documents = documents.withLock { $0 }
    return loaded
  }

  // MARK: - Private

  /// The position of a rung: its period, its group in that, and its index in the group.
  private typealias Place = (period: Int, group: Int, rung: Int)

  /// Returns the rungs whose segments have to be read; those with images or metadata last, from `optional`
  /// on.
  private func places(
    in presentation: Presentation, withImages: Bool
  ) -> (all: [Place], optional: Int) {
    var (needed, images): ([Place], [Place]) = ([], [])
    for (period, value) in presentation.periods.enumerated() {
      for (group, value) in value.trackGroups.enumerated() {
        for (rung, rungValue) in value.rungs.enumerated() {
          if case .segments = rungValue.media { continue }
          if value.kind == .image {
            images.append((period, group, rung))
          } else {
            needed.append((period, group, rung))
          }
        }
      }
    }
    return (withImages ? needed + images : needed, needed.count)
  }

  private func failure(_ error: ReelError, at place: Place) -> LoadedManifest.Failure {
    LoadedManifest.Failure(
      periodIndex: place.period, groupIndex: place.group, rungIndex: place.rung, error: error)
  }
}

/// Limits the time of each of many playlists and indexes, so that some that never come leave time for the others.
private struct ListPatience: Sendable {
  private let clock = SystemMonotonicClock()
  private let end: Duration?
  private let length: Duration

  /// The least time for one of them.
  private static let least = Duration.seconds(2)

  init(turns: Int, end: Duration?) {
    self.end = end
    length = end.map { [clock] in max(.zero, $0 - clock.now) / max(1, turns) } ?? .zero
  }

  /// Returns the outcome of `body`, or a failure if there is none in time.
  func outcome(
    at media: Rung.Media, of body: @escaping @Sendable () async throws -> Result<RungSegments, ReelError>
  ) async throws -> Result<RungSegments, ReelError> {
    guard let end else { return try await body() }
    let began = clock.now
    let last = min(end, began + max(length, Self.least))
    if began < end, let outcome = try await TimeLimit.run(until: last, on: clock, body) { return outcome }
    let location: String? =
      switch media {
      case .playlist(let url): url.reelName
      case .index(let reference): reference.url.reelName
      case .segments: nil
      }
    return .failure(
      ReelError(
        .timedOut,
        began < end
          ? "no answer within \(((last - began) / .seconds(1)).formatted(places: 1)) s"
          : "its turn did not come in time", at: location))
  }
}

/// Limits the wait for something that is useful, but not needed.
package enum Patience {
  /// The maximum wait for one more playlist when everything needed is known.
  package static let limit = Duration.seconds(5)

  private enum Event<Result: Sendable>: Sendable {
    case finished(Int, Result)
    case timeUp
  }

  /// Runs jobs in order, several in parallel, and returns the results of those that finished.
  ///
  /// The jobs from `neededCount` on are optional: once all others have finished, and no optional one has
  /// finished for `limit`, the rest is cancelled.
  package static func gather<Result: Sendable>(
    count: Int, neededCount: Int, concurrency: Int, clock: any MonotonicClock,
    job: @escaping @Sendable (Int) async throws -> Result
  ) async throws -> [Int: Result] {
    try await withThrowingTaskGroup(of: Event<Result>.self) { group in
      defer { group.cancelAll() }
      var results: [Int: Result] = [:]
      var (next, finishedNeededCount) = (0, 0)
      // The number of results when the time limit started.
      var timedCount: Int?
      while results.count < count {
        while next < count, next - results.count < concurrency {
          let index = next
          group.addTask { .finished(index, try await job(index)) }
          next += 1
        }
        if timedCount == nil, finishedNeededCount == neededCount, neededCount > 0 {
          timedCount = results.count
          group.addTask {
            try await clock.sleep(for: limit)
            return .timeUp
          }
        }
        switch try await group.next() {
        case .finished(let index, let result):
          results[index] = result
          if index < neededCount { finishedNeededCount += 1 }
        case .timeUp where timedCount == results.count: return results
        case .timeUp: timedCount = nil
        case nil: return results
        }
      }
      return results
    }
  }
}
