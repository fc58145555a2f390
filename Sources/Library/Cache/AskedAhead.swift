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
  private enum Question {
    case open(Task<Void, Never>?, Completion)
    /// The report is nil once it was passed on.
    case answered(MediaCache.Outcome, Report?, of: ByteRange?, at: ContinuousClock.Instant)
  }

  private struct State {
    var questions: [EntryKey: Question] = [:]
    /// The time after which open questions are given up; nil until the manifest is confirmed.
    var end: ContinuousClock.Instant?
  }

  private let state = Locked(State())

  /// An answer is for requests that follow within this time.
  private static let lifetime = Duration.seconds(10)
  /// How long a body is kept for a reader.
  private static let bodyLifetime = Duration.seconds(2)
  /// What a question may take besides twice the time of the manifest's: it may open a connection.
  private static let grace = Duration.milliseconds(100)

  deinit {
    for question in state.withLock({ $0.questions.values }) {
      switch question {
      case .open(let task, _): task?.cancel()
      case .answered(.answer(let answer), _, _, _): answer.response.body.close()
      case .answered(.confirmation, _, _, _): break
      }
    }
  }

  /// Asks about a resource, unless that is done already.
  ///
  /// - Parameter ask: Returns nil if nothing is known of the resource then.
  func ask(
    _ key: EntryKey, _ range: ByteRange?,
    _ ask: @escaping @Sendable (Report) async -> MediaCache.Outcome?
  ) {
    let completion = Completion()
    let isFirst = state.withLock { state in
      if case .open = state.questions[key] { return false }
      state.questions[key] = .open(nil, completion)
      return true
    }
    guard isFirst else { return }
    let task = Task { [weak self] in
      let report = Report()
      let outcome = await ask(report)
      let answered = outcome.map { Question.answered($0, report, of: range, at: .now) }
      self?.end(key, completion, answered)
      guard case .answer(let answer) = outcome else { return }
      try? await Task.sleep(for: Self.bodyLifetime)
      if self?.removeAnswer(about: key) ?? false { answer.response.body.close() }
    }
    state.withLock { state in
      if case .open(_, let current) = state.questions[key], current === completion {
        state.questions[key] = .open(task, completion)
      }
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
    let open = state.withLock { state -> (Completion, ContinuousClock.Instant)? in
      guard case .open(_, let completion) = state.questions[key] else { return nil }
      return (completion, state.end ?? .now)
    }
    if let (completion, end) = open {
      let timer = Task { [weak self] in
        try? await Task.sleep(until: end)
        self?.giveUp(key, completion)
      }
      await completion.wait()
      timer.cancel()
    }
    let found = state.withLock { state -> Question? in
      guard case .answered(let outcome, _, let asked, let time) = state.questions[key],
        .now < time + Self.lifetime
      else { return nil }
      defer {
        // It holds for the other parts of the resource too.
        if case .confirmation(let holds, _) = outcome {
          state.questions[key] = .answered(
            .confirmation(holds, requestCount: 0), nil, of: asked, at: time)
        } else {
          state.questions[key] = nil
        }
      }
      return state.questions[key]
    }
    guard case .answered(let outcome, let report, let asked, _) = found else { return nil }
    if case .answer(let answer) = outcome, asked != range {
      answer.response.body.close()
      return nil
    }
    return (outcome, report)
  }

  // MARK: - Private

  private func end(_ key: EntryKey, _ completion: Completion, _ answered: Question?) {
    state.withLock { state in
      guard case .open(_, let current) = state.questions[key], current === completion else { return }
      state.questions[key] = answered
    }
    completion.finish()
  }

  private func giveUp(_ key: EntryKey, _ completion: Completion) {
    let task = state.withLock { state -> Task<Void, Never>? in
      guard case .open(let task, let current) = state.questions[key], current === completion else {
        return nil
      }
      state.questions[key] = nil
      return task
    }
    task?.cancel()
    completion.finish()
  }

  /// True if nobody has taken the body of an answer.
  private func removeAnswer(about key: EntryKey) -> Bool {
    state.withLock { state in
      guard case .answered(.answer, _, _, _) = state.questions[key] else { return false }
      state.questions[key] = nil
      return true
    }
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
