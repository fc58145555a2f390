internal import Foundation
internal import HTTPTypes
internal import ReelCore

/// Asks servers what the requests of a check left open: whether they serve ranges of a file, whether they compress
/// segments for those who accept it, whether a first answer that came late is the rule, and how long the answers of a
/// start take at least.
package struct ServerProbe: Sendable {
  /// Sends the requests, and records them.
  let log: RequestLog
  /// The header fields of the source.
  let headers: SourceHeaders
  let thresholds: Thresholds

  /// Sends a few small requests, if any are needed, and waits for their answers. The log has them afterwards.
  ///
  /// - Throws: `CancellationError`.
  package func run(_ facts: StreamFacts) async throws {
    var facts = facts
    facts.requests = log.requests
    if facts.isFile, let source = facts.requests.first(where: { $0.purpose == .source && $0.isSuccess }),
      source.host != nil, !facts.requests.contains(where: { $0.range != nil && $0.isSuccess })
    {
      try await ask(for: source.answerURL ?? source.url, .segment, range: ByteRange(offset: 1, length: 1))
    }
    if let segment = facts.requests.first(where: { $0.purpose == .segment && $0.isSuccess && $0.range == nil }
    ),
      segment.host != nil
    {
      try await askCompressed(for: segment.url)
    }
    try await askAgain(facts)
    let requests = log.requests
    for kind in TransportFindings.AnswerKind.allCases {
      let answers = requests.filter { $0.isSuccess && TransportFindings.kind(of: $0, in: facts) == kind }
      guard let first = answers.first, answers.count < TransportFindings.answerCount,
        TransportFindings.isSlow(answers, among: requests, thresholds)
      else { continue }
      for _ in answers.count..<TransportFindings.answerCount {
        let range = kind == .segment ? ByteRange(offset: 0, length: 1) : nil
        try await ask(for: first.url, kind == .segment ? .segment : .manifest, range: range)
      }
    }
  }

  // MARK: - Private

  private static let byteLimit = 16 << 20

  /// Repeats the requests of a start whose answers seem to wait at the server, which this machine may be the reason of.
  /// Segments have been read again already.
  private func askAgain(_ facts: StreamFacts) async throws {
    for purpose in [FetchPurpose.source, .manifest] {
      guard let url = log.requests.first(where: { $0.purpose == purpose && $0.isSuccess })?.url else {
        continue
      }
      while true {
        let requests = log.requests
        let answers = requests.filter { $0.url == url && $0.method == .get && $0.isSuccess }
        let waits = ServerWaits(requests)
        guard let least = answers.compactMap({ waits.wait(of: $0) }).min(),
          least >= StartRecording.leastWait, answers.count < TransportFindings.answerCount
        else { break }
        let range = facts.isFile ? ByteRange(offset: 0, length: 1) : nil
        try await ask(for: url, facts.isFile ? .segment : .manifest, range: range)
        guard log.requests.count > requests.count, log.requests.last?.isSuccess == true else { break }
      }
    }
  }

  /// Asks for a segment as browsers do, which accept compression of whatever they fetch, and reads the head of the answer.
  private func askCompressed(for url: URL) async throws {
    // A fetcher accepts compression of manifests.
    var request = FetchRequest(url: url, purpose: .manifest)
    request.storeUse = StoreUse(isBypassed: true)
    headers.apply(to: &request)
    do {
      try await log.fetch(request, as: .segment).body.close()
    } catch is ReelError {
      try Task.checkCancellation()
    }
  }

  private func ask(for url: URL, _ purpose: FetchPurpose, range: ByteRange?) async throws {
    var request = FetchRequest(url: url, range: range, purpose: purpose)
    request.storeUse = StoreUse(isBypassed: true)
    headers.apply(to: &request)
    do {
      let response = try await log.fetch(request)
      // A server that ignores the range sends everything.
      if range == nil || response.bodyByteCount ?? .max <= 1 {
        _ = try await response.body.collect(upTo: Self.byteLimit)
      } else {
        response.body.close()
      }
    } catch is ReelError {
      // The answer is in the log.
      try Task.checkCancellation()
    }
  }
}
