internal import Foundation
internal import HTTPTypes
internal import ReelCore
internal import ReelManifest

/// The questions to servers about stored resources that a reading of a source is about to request, and their answers.
///
/// A stored manifest tells what its reader will ask for next. While the manifest has to be confirmed, those resources are asked
/// about too: otherwise each would wait for the one before it, a round trip each.
///
/// A server may serve few connections at a time. So a question has its connection for itself, and if its answer takes much
/// longer than that about the manifest, it is given up, and its resource is requested in its turn.
final class AskedAhead: Sendable {
  private struct Question {
    let range: ByteRange?
    /// Gives nil if nothing is known of the resource.
    let task: Task<MediaCache.Outcome?, Never>
    /// Nil once it was passed on.
    var report: Report?
  }

  private struct State {
    var questions: [EntryKey: Question] = [:]
    /// The time after which questions without an answer are given up; nil until the manifest is confirmed.
    var end: ContinuousClock.Instant?
  }

  private let state = Locked(State())

  /// A question is for requests that follow within this time.
  private static let lifetime = Duration.seconds(10)
  /// What a question may take besides twice the time of the manifest's: it may open a connection.
  private static let grace = Duration.milliseconds(100)

  // An answer that nobody has read ends with its question.
  deinit { for question in state.withLock({ $0.questions.values }) { question.task.cancel() } }

  /// Asks about a resource, unless that is done already.
  ///
  /// - Parameter ask: Returns nil if nothing is known of the resource then.
  func ask(
    _ key: EntryKey, _ range: ByteRange?,
    _ ask: @escaping @Sendable (Report) async -> MediaCache.Outcome?
  ) {
    let isNew = state.withLock { state in
      guard state.questions[key] == nil else { return false }
      let report = Report()
      state.questions[key] = Question(range: range, task: Task { await ask(report) }, report: report)
      return true
    }
    guard isNew else { return }
    Task { [weak self] in
      try? await Task.sleep(for: Self.lifetime)
      self?.forget(key)
    }
  }

  /// Records that the manifest was confirmed, so long after it was asked about.
  func confirmed(after time: Duration) {
    state.withLock { $0.end = .now + time + Self.grace }
  }

  /// Returns what became of the question about a resource, and waits for that; nil if nothing did.
  ///
  /// - Parameter range: The range that is wanted.
  func take(_ key: EntryKey, _ range: ByteRange?) async -> (outcome: MediaCache.Outcome, report: Report?)? {
    let found = state.withLock { state in state.questions[key].map { ($0.task, state.end ?? .now) } }
    guard let (task, end) = found else { return nil }
    let timer = Task {
      try? await Task.sleep(until: end)
      task.cancel()
    }
    // A timer that is cancelled ends at once.
    let outcome = await withTaskCancellationHandler {
      await task.value
    } onCancel: {
      timer.cancel()
    }
    timer.cancel()
    let question = state.withLock { state -> Question? in
      guard let question = state.questions[key], question.task == task else { return nil }
      state.questions[key]?.report = nil
      if case .answer = outcome { state.questions[key] = nil }
      return question
    }
    guard let question, let outcome else { return nil }
    switch outcome {
    // It holds for the other parts of the resource too.
    case .confirmation(let verdict, _) where question.report == nil:
      return (.confirmation(verdict, requestCount: 0), nil)
    case .answer(let answer) where question.range != range:
      answer.response.body.close()
      return nil
    case .answer, .confirmation: return (outcome, question.report)
    }
  }

  private func forget(_ key: EntryKey) {
    // Released outside the lock, because that ends the answer's transfer.
    let question = state.withLock { $0.questions.removeValue(forKey: key) }
    question?.task.cancel()
  }

  /// The metrics of a question, for the request that gets its answer.
  final class Report: Sendable {
    private struct State {
      var metrics: RequestMetrics?
      var handler: (@Sendable (RequestMetrics) -> Void)?
    }

    private let state = Locked(State())

    func record(_ metrics: RequestMetrics) {
      let handler = state.withLock { state in
        state.metrics = metrics
        return state.handler
      }
      handler?(metrics)
    }

    /// Passes the metrics on, now or once they come.
    func pass(to handler: (@Sendable (RequestMetrics) -> Void)?) {
      guard let handler else { return }
      let metrics = state.withLock { state in
        state.handler = handler
        return state.metrics
      }
      if let metrics { handler(metrics) }
    }
  }
}

extension MediaCache {
  /// Asks about the stored resources with which a reader of a stored manifest begins, and that are not fresh.
  func askAhead(of manifest: Entry, _ request: FetchRequest, _ asked: AskedAhead) {
    let groups = groups(of: manifest, request)
    for kind in [TrackGroup.Kind.video, .audio] {
      let starts = groups.filter { $0.kind == kind }.flatMap(\.rungs).compactMap { start(of: $0, request) }
      // Players begin with the rung that they began with before.
      guard let start = starts.max(by: { $0.lastUse < $1.lastUse }) else { continue }
      for (next, entry) in start.answers where !isUsable(entry, for: next) {
        asked.ask(next.key, next.request.range) { [weak self] report in
          var question = next
          question.request.report = report.record
          // An idle connection would keep a server that serves few at a time from the others. HTTP/2 has no such field.
          if !next.server.isSecure { question.request.headers[.connection] = "close" }
          return try? await self?.send(question, confirming: entry, isAhead: true)
        }
      }
    }
  }

  /// What a stored manifest begins with; empty if it can't be read at once.
  private func groups(of manifest: Entry, _ request: FetchRequest) -> [TrackGroup] {
    guard
      let bytes = folder.read(
        manifest.key, version: manifest.answer.version, from: 0, maximum: StoredFile.byteLimit),
      Int64(bytes.count) == manifest.answer.resourceByteCount, case .manifest(let format) = TextFormat(bytes),
      let presentation = try? ManifestReader().presentation(
        from: bytes, format: format, url: manifest.answer.url(of: request))
    else { return [] }
    return presentation.periods.first?.trackGroups ?? []
  }

  /// The stored answers with which a reader of a rung begins, and when the rung's media was used last.
  private typealias Start = (answers: [Stored], lastUse: Int64)

  /// Nil if one of the answers is not stored.
  private func start(of rung: Rung, _ manifest: FetchRequest) -> Start? {
    func answer(_ url: URL, _ range: ByteRange?, _ purpose: FetchPurpose) -> Stored? {
      var request = FetchRequest(url: url, range: range, purpose: purpose)
      if let source = manifest.source {
        source.apply(to: &request)
      } else {
        request.headers = manifest.headers
      }
      return stored(request).flatMap { hasStart(of: $0.entry, $0.request) ? $0 : nil }
    }
    func start(_ url: URL, _ range: ByteRange?, _ initialization: InitializationReference?) -> Start? {
      guard let media = answer(url, range, .segment) else { return nil }
      let lastUse = folder.lastUse(of: media.entry.key, version: media.entry.answer.version)
      guard let initialization else { return ([media], lastUse) }
      return answer(initialization.url, initialization.byteRange, .initialization).map {
        ([$0, media], lastUse)
      }
    }
    switch rung.media {
    case .playlist(let url):
      guard let playlist = answer(url, nil, .manifest),
        let rung = groups(of: playlist.entry, playlist.request.request).first?.rungs.first,
        let start = self.start(of: rung, playlist.request.request)
      else { return nil }
      return ([playlist] + start.answers, start.lastUse)
    case .segments(let segments):
      return segments.first.flatMap { start($0.url, $0.byteRange, $0.initialization) }
    case .index(let index): return start(index.url, index.indexRange, index.initialization)
    }
  }
}
