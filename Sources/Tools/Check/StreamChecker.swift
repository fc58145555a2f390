internal import Foundation
package import Logging
package import ReelCore
package import ReelSources

/// Checks sources: opens each as a player does, reads every rung alone, and judges what was measured.
package struct StreamChecker: Sendable {
  package var fetcher: any Fetching
  package let configuration: LoadingConfiguration
  package let options: CheckOptions
  package let logger: Logger

  package init(
    fetcher: any Fetching, configuration: LoadingConfiguration, options: CheckOptions, logger: Logger
  ) {
    self.fetcher = fetcher
    self.configuration = configuration
    self.options = options
    self.logger = logger
  }

  /// Checks a source. A broken stream is a result with findings.
  ///
  /// Throws `ReelError` for a source that can't be checked at all (`unsupported`, `usage`), or `CancellationError`. If the
  /// task is cancelled once something is known, that is the result, without starts.
  package func check(_ source: MediaSource) async throws -> CheckResult {
    let time = CheckTime(options.timeLimit)
    var result = CheckResult(source: source.name)
    result.thresholds = options.thresholds
    // The start of a local file is recorded like that of a remote one.
    var configuration = configuration
    configuration.fetchesFiles = true
    let recording = StartRecording(fetcher)
    let log = RequestLog(recording)
    let reading = SourceReading(
      source, fetcher: log, recording: recording, configuration: configuration, options: options,
      end: time.readingEnd, logger: logger)
    var endReason: String?
    var openingError: ReelError?
    do {
      let ended: Void? = try await TimeLimit.run(until: time.readingEnd) { try await reading.run() }
      if ended == nil {
        endReason = Self.timeIsUp
        if reading.facts.format.isEmpty {
          openingError = ReelError(.timedOut, "not opened within \(time.readingLimit.text)", at: source.name)
        }
      }
    } catch let error as ReelError where error.kind != .usage {
      openingError = error
    } catch {
      guard Task.isCancelled, !reading.facts.format.isEmpty else { throw error }
      endReason = "the check was interrupted"
      result.isInterrupted = true
    }
    var facts =
      endReason.map { reading.facts(endedBecause: $0, isTimeUp: !result.isInterrupted) } ?? reading.facts
    facts.requests = log.requests
    if facts.url == nil, case .url(let url) = source { facts.url = facts.requests.first?.answerURL ?? url }
    if let endReason {
      result.notChecked.append(NotChecked(nil, "\(endReason); what was found until then is reported"))
    }
    // An interrupted task waits for nothing.
    let judgingEnd = result.isInterrupted ? nil : time.end
    let judging = Locked((facts: facts, findings: [Rules: [Finding]]()))
    _ = try await TimeLimit.run(until: judgingEnd) { [facts, options, isInterrupted = result.isInterrupted] in
      var facts = facts
      facts.placeContent()
      if facts.start != nil, !isInterrupted { try await StartStructure.describe(&facts, from: recording) }
      judging.withLock { [facts] in $0.facts = facts }
      for rules in Rules.allCases {
        if !isInterrupted { try Task.checkCancellation() }
        // Long lists take long, and the thread of a task is needed to see that the time is over.
        let found = try await BlockingThread.run(named: "check") { [facts] in
          rules.findings(in: facts, options.thresholds)
        }
        judging.withLock { $0.findings[rules] = found }
      }
    }
    let judged = judging.withLock { $0 }
    facts = judged.facts
    result.judgement = facts.judgement(openingError: openingError)
    if let openingError { describe(openingError, source, log, in: &result) }
    var findings = Rules.combined(judged.findings)
    // A single rung needs no name.
    if facts.rungs.count == 1 { for index in findings.indices { findings[index].rung = nil } }
    result.findings += findings
    let unapplied = Rules.allCases.filter { judged.findings[$0] == nil }
    result.notChecked += unapplied.flatMap(\.ids).map { NotChecked(late: $0, Self.timeIsUp) }
    if unapplied.contains(.segments), result.judgement == .judged {
      result.judgement = .unjudged(facts.late)
    }
    try await replay(&result, facts, configuration, recording, source, until: time)
    raiseUnjudged(in: &result)
    Self.sort(&result.findings)
    result.notChecked += facts.notChecked + Self.excuses(facts) + facts.outside.map { NotChecked($0) }
    result.notChecked += [LiveFindings.notChecked(in: facts)].compactMap(\.self)
    if options.watch != nil, !facts.isLive, !facts.format.isEmpty {
      result.notChecked.append(NotChecked(nil, "it is not live, so it was not watched"))
    }
    result.coverage = Self.coverage(facts)
    result.facts = facts
    if options.takesStills, !result.isInterrupted {
      let stills = FindingStills(fetcher: fetcher, configuration: configuration, logger: logger)
      let findings = try await TimeLimit.run(until: time.end) { [findings = result.findings, facts] in
        try await stills.findings(findings, with: facts, of: source)
      }
      if let findings { result.findings = findings }
    }
    return result
  }

  // MARK: - Private

  private static let timeIsUp = "the time limit was reached"

  /// Replays the start on each link, if there is one, and adds the costs of findings.
  private func replay(
    _ result: inout CheckResult, _ facts: StreamFacts, _ configuration: LoadingConfiguration,
    _ recording: StartRecording, _ source: MediaSource, until time: CheckTime
  ) async throws {
    var isOver = false
    if facts.start != nil, !options.links.isEmpty, !result.isInterrupted {
      let replay = StartReplay(
        recording: recording, source: source, configuration: configuration, options: options, logger: logger)
      do {
        let outcome = try await TimeLimit.run(until: time.end) { [findings = result.findings] in
          var findings = findings
          let starts = try await replay.results(for: &findings, facts: facts)
          return (findings, starts)
        }
        if let outcome {
          (result.findings, result.starts) = outcome
          return
        }
        isOver = true
      } catch let refusal as RungPlayback.Unknown {
        result.startRefusal = refusal.reason
        result.notChecked.append(NotChecked(nil, "the start: \(refusal.reason)"))
      }
    }
    // These are judged by what they cost on a link.
    let costly: [FindingID] = [.startBytes, .firstRungHeavy]
    result.findings.removeAll { costly.contains($0.id) }
    guard isOver else { return }
    result.notChecked += costly.map {
      NotChecked(late: $0, "the start was not replayed within the time limit")
    }
  }

  /// Adds what is known of a source that could not be opened.
  private func describe(
    _ error: ReelError, _ source: MediaSource, _ log: RequestLog, in result: inout CheckResult
  ) {
    guard case .unjudged(var reason) = result.judgement else {
      // A later part of it failed.
      result.findings.append(opening(error, source, log))
      return
    }
    switch reason.kind {
    case .unanswered where log.requests.contains { $0.purpose == .source && $0.isComplete }:
      // Not the server was slow, but this check.
      reason = Unjudged(.time, error.reason)
    case .unanswered where !TransportFindings.isSilence(error, requests: log.requests, at: log.elapsed):
      reason.kind = .faulty
      result.findings.append(opening(error, source, log))
    case .encrypted, .unsupported, .external:
      // In another container than Reel reads, it may be sound.
      if error.kind != .unsupported, error.found != .unsupportedContainer {
        result.findings.append(opening(error, source, log))
      }
    case .faulty: result.findings.append(opening(error, source, log))
    default: break
    }
    result.judgement = .unjudged(reason)
  }

  /// Makes a source fail of which nothing was judged, unless findings say why.
  private func raiseUnjudged(in result: inout CheckResult) {
    guard case .unjudged(let reason) = result.judgement, reason.kind != .unanswered, !result.isInterrupted,
      reason.isOmission || reason.kind == .leftOut || !result.findings.contains(where: { $0.level == .error })
    else { return }
    result.findings.append(reason.sourceFinding)
  }

  /// The finding for a source that could not be opened.
  private func opening(_ error: ReelError, _ source: MediaSource, _ log: RequestLog) -> Finding {
    guard error.kind == .badManifest else {
      return TransportFindings.unreachable(
        error, source: source.name, requests: log.requests, beginning: log.sourceBeginning)
    }
    var finding = Finding(
      .manifestInvalid, nil, .error, url: error.location, error.reason,
      fix: error.advice ?? "correct the manifest")
    if case .line(let line, _) = error.place { finding.line = line }
    return finding
  }

  /// Errors first, then by cost.
  private static func sort(_ findings: inout [Finding]) {
    findings.sort { left, right in
      if left.level != right.level { return left.level > right.level }
      return (left.largestCost, right.name, right.rung ?? "", right.segment ?? 0)
        > (right.largestCost, left.name, left.rung ?? "", left.segment ?? 0)
    }
  }

  private static func excuses(_ facts: StreamFacts) -> [NotChecked] {
    facts.rungs.compactMap { rung in
      // Also if a part of it was judged.
      if case .excused(let reason) = rung.status { return NotChecked(reason, rung: rung.name) }
      if case .cutOff(let reason) = rung.status {
        return NotChecked(Unjudged(.time, reason), rung: rung.name)
      }
      guard rung.status != .skipped, case .unjudged(let reason) = rung.judgement, reason.isOmission else {
        return nil
      }
      return NotChecked(reason, rung: rung.name)
    }
  }

  private static func coverage(_ facts: StreamFacts) -> Coverage {
    var coverage = Coverage()
    coverage.allRungCount = facts.rungs.count
    for rung in facts.rungs {
      let read = rung.samples.values.filter { $0.byteCount > 0 || $0.video != nil || $0.audio != nil }
      coverage.rungCount += read.isEmpty ? 0 : 1
      coverage.segmentCount += read.count
      coverage.allSegmentCount += max(rung.segments.count + rung.omittedCount, read.count)
      coverage.byteCount += read.reduce(0) { $0 + $1.byteCount }
      for content in rung.content {
        coverage.frameCount += content.frames.count
        coverage.damagedFrameCount +=
          content.frames.count(where: \.isDamaged) + content.undecodable.reduce(0) { $0 + $1.unitCount }
        coverage.audioDuration += content.sound.reduce(0) { $0 + $1.duration }
      }
    }
    return coverage
  }
}

extension Finding {
  /// The largest cost in milliseconds; 0 without one.
  fileprivate var largestCost: Double { costs.map(\.milliseconds).max() ?? 0 }
}

/// The time of a check. Reading ends a little earlier than the whole, so that what was read is judged within the limit.
private struct CheckTime: Sendable {
  /// Times of the system's monotonic clock; nil for no limit.
  let end: Duration?
  let readingEnd: Duration?
  let readingLimit: Duration

  private static let longestJudging = Duration.seconds(5)

  init(_ limit: Duration?) {
    let now = SystemMonotonicClock().now
    readingLimit = limit.map { $0 - min($0 / 5, Self.longestJudging) } ?? .zero
    end = limit.map { now + $0 }
    readingEnd = limit.map { [readingLimit] _ in now + readingLimit }
  }
}

/// Rules that are applied together. The gravest come first, and those that take long last.
private enum Rules: CaseIterable {
  case segments
  case manifest
  case transport
  case live
  case start
  case content
  case ladder

  /// The findings that they can make.
  var ids: [FindingID] {
    switch self {
    case .manifest: [.manifestInvalid]
    case .transport: [.ttfbSlow, .redirects, .noKeepAlive, .noRanges, .responseHeaders]
    case .live: [.liveStale]
    case .start: [.moovLast, .startBytes, .firstRungHeavy]
    case .segments:
      [
        .rungDead, .segmentMissing, .segmentTruncated, .decodeError, .segmentNotIndependent, .timestampBreak,
        .segmentDurationMismatch,
      ]
    case .content: [.black, .silent, .frozen, .rungContentDiffers]
    case .ladder:
      [
        .trackMissing, .codecsMismatch, .resolutionMismatch, .frameRateMismatch, .aspectDiffers,
        .rungsNotAligned, .avOffset, .bandwidthMismatch,
      ]
    }
  }

  func findings(in facts: StreamFacts, _ thresholds: Thresholds) -> [Finding] {
    switch self {
    case .manifest: ManifestFindings.findings(in: facts, thresholds)
    case .transport: TransportFindings.findings(in: facts, thresholds)
    case .live: LiveFindings.findings(in: facts, thresholds)
    case .start: StartFindings.findings(in: facts, thresholds)
    case .segments: SegmentFindings.findings(in: facts, thresholds)
    case .content: ContentFindings.findings(in: facts, thresholds)
    case .ladder: LadderFindings.findings(in: facts, thresholds)
    }
  }

  /// All findings, without those of the media and the manifest that another one explains.
  static func combined(_ findings: [Rules: [Finding]]) -> [Finding] {
    func all(_ rules: [Rules]) -> [Finding] { rules.flatMap { findings[$0] ?? [] } }
    return Consequences.removed(from: all([.segments, .content, .ladder, .manifest]))
      + all([.transport, .live, .start])
  }
}
