internal import Foundation
internal import ReelCore
internal import ReelManifest

/// The answers of servers about stored resources, for requests that are about to come.
///
/// A stored manifest tells what its reader will ask for next. While the manifest has to be confirmed, those resources are asked
/// about too: otherwise each would wait for the one before it, a round trip each.
final class AskedAhead: Sendable {
  /// The server's word that what is stored of a resource holds.
  struct Answer: Sendable {
    var requestCount: Int
    var metrics: RequestMetrics?
  }

  private enum Question {
    case open(Completion)
    /// For so many requests that are still to come.
    case answered(Answer, useCount: Int)
  }

  private let questions = Locked<[EntryKey: (question: Question, askedAt: ContinuousClock.Instant)]>([:])

  /// An answer is for requests that follow within this time.
  private static let lifetime = Duration.seconds(5)

  /// Asks, unless that was done already.
  ///
  /// - Parameters:
  ///   - useCount: How many requests for the resource are about to come.
  ///   - ask: Returns nil if the resource was not confirmed.
  func ask(_ key: EntryKey, useCount: Int, _ ask: @escaping @Sendable () async -> Answer?) {
    let completion = Completion()
    let now = ContinuousClock.now
    let isFirst = questions.withLock { questions in
      questions = questions.filter { now < $0.value.askedAt + Self.lifetime }
      guard questions[key] == nil else { return false }
      questions[key] = (.open(completion), now)
      return true
    }
    guard isFirst else { return }
    Task {
      let answer = await ask()
      questions.withLock { $0[key] = answer.map { (.answered($0, useCount: useCount), now) } }
      completion.finish()
    }
  }

  /// Returns the answer about a resource, and waits for it if it is under way; nil if there is none.
  ///
  /// The first request for a resource gets its counts.
  func take(_ key: EntryKey) async -> Answer? {
    while true {
      let found = questions.withLock { questions -> Question? in
        guard let (question, askedAt) = questions[key], .now < askedAt + Self.lifetime else { return nil }
        if case .answered(_, let useCount) = question {
          let rest = Question.answered(Answer(requestCount: 0), useCount: useCount - 1)
          questions[key] = useCount > 1 ? (rest, askedAt) : nil
        }
        return question
      }
      switch found {
      case .open(let completion):
        await completion.wait()
        if Task.isCancelled { return nil }
      case .answered(let answer, _): return answer
      case nil: return nil
      }
    }
  }
}

extension MediaCache {
  /// No further rung is asked about once this many resources are.
  private static let questionLimit = 8

  /// Asks about the stored resources with which a reader of a stored manifest begins, and that are not fresh.
  func askAhead(of manifest: Entry, _ request: FetchRequest) {
    var requests: [EntryKey: [FetchRequest]] = [:]
    for rung in rungs(of: manifest, request) where requests.count < Self.questionLimit {
      for next in startRequests(of: rung, request) ?? [] {
        requests[Self.key(of: next), default: []].append(next)
      }
    }
    for (key, requests) in requests {
      guard let first = requests.first, let entry = entry(for: first, key), !isUsable(entry, for: first)
      else {
        continue
      }
      asked.ask(key, useCount: requests.count) { [weak self] in await self?.confirm(entry, first) }
    }
  }

  private func confirm(_ entry: Entry, _ request: FetchRequest) async -> AskedAhead.Answer? {
    let metrics = Locked<RequestMetrics?>(nil)
    var request = request
    request.report = { news in metrics.withLock { $0 = news } }
    switch try? await send(request, confirming: entry) {
    case .confirmation(true, let requestCount):
      return AskedAhead.Answer(requestCount: requestCount, metrics: metrics.withLock { $0 })
    case .answer(let answer):
      // Whoever needs it fetches it.
      answer.response.body.close()
      return nil
    case .confirmation(false, _), nil: return nil
    }
  }

  /// The rungs of video and audio with which a stored manifest begins; empty if it can't be read at once.
  private func rungs(of manifest: Entry, _ request: FetchRequest) -> [Rung] {
    guard
      let bytes = folder.read(
        manifest.key, version: manifest.answer.version, from: 0, maximum: StoredFile.byteLimit),
      Int64(bytes.count) == manifest.answer.resourceByteCount, case .manifest(let format) = TextFormat(bytes),
      let presentation = try? ManifestReader().presentation(
        from: bytes, format: format, url: manifest.answer.url(of: request))
    else { return [] }
    let groups = presentation.periods.first?.trackGroups ?? []
    return groups.filter { $0.kind == .video || $0.kind == .audio }.flatMap(\.rungs)
  }

  /// The requests of a reader that begins with a rung; nil if one of their answers is not stored.
  private func startRequests(of rung: Rung, _ manifest: FetchRequest) -> [FetchRequest]? {
    func request(_ url: URL, _ range: ByteRange? = nil, _ purpose: FetchPurpose) -> FetchRequest {
      var request = FetchRequest(url: url, range: range, purpose: purpose)
      if let source = manifest.source {
        source.apply(to: &request)
      } else {
        request.headers = manifest.headers
      }
      return request
    }
    var requests: [FetchRequest]
    switch rung.media {
    case .playlist(let url):
      requests = [request(url, nil, .manifest)]
      guard let playlist = storedEntry(for: requests[0]),
        let rung = rungs(of: playlist, requests[0]).first,
        let further = startRequests(of: rung, requests[0])
      else { return nil }
      requests += further
    case .segments(let segments):
      guard let segment = segments.first else { return nil }
      requests = [request(segment.url, segment.byteRange, .segment)]
      if let initialization = segment.initialization {
        requests.append(request(initialization.url, initialization.byteRange, .initialization))
      }
    case .index(let index):
      // One for the index, one for the segment that it tells.
      requests = Array(repeating: request(index.url, index.indexRange, .segment), count: 2)
      if let initialization = index.initialization {
        requests.append(request(initialization.url, initialization.byteRange, .initialization))
      }
    }
    return requests.allSatisfy { storedEntry(for: $0) != nil } ? requests : nil
  }

  /// Nil if the first byte that is wanted is not stored.
  private func storedEntry(for request: FetchRequest) -> Entry? {
    guard Self.mayStore(request), let entry = entry(for: request, Self.key(of: request)),
      hasStart(of: entry, request)
    else { return nil }
    return entry
  }
}
