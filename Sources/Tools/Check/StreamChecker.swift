internal import Foundation
package import Logging
package import ReelCore
package import ReelPlayback

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
    var result = CheckResult(source: source.name)
    result.thresholds = options.thresholds
    // The start of a local file is recorded like that of a remote one.
    var configuration = configuration
    configuration.fetchesFiles = true
    let recording = StartRecording(fetcher)
    let log = RequestLog(recording)
    let reading = SourceReading(
      source, fetcher: log, recording: recording, configuration: configuration, options: options,
      logger: logger)
    var hasRunOut = false
    var openingError: ReelError?
    do {
      hasRunOut = try await runsOut(reading)
      if hasRunOut, reading.facts.format.isEmpty {
        openingError = ReelError(
          .timedOut, "it was not opened within the time limit", at: source.name)
      }
    } catch let error as ReelError where error.kind != .usage {
      openingError = error
    } catch {
      guard Task.isCancelled, !reading.facts.format.isEmpty else { throw error }
      result.isInterrupted = true
    }
    var facts = reading.facts
    facts.requests = log.requests
    if facts.url == nil, case .url(let url) = source { facts.url = facts.requests.first?.answerURL ?? url }
    if hasRunOut || result.isInterrupted {
      let reason = result.isInterrupted ? "the check was interrupted" : "the time limit was reached"
      result.notChecked.append(NotChecked(nil, "\(reason); what was found until then is reported"))
      // Of a rung that was being read, nothing is known for certain.
      for index in facts.rungs.indices where facts.rungs[index].status == .unread {
        facts.rungs[index].status = .excused(reason)
      }
    }
    facts.placeContent()
    if facts.start != nil, !result.isInterrupted {
      try await StartStructure.describe(&facts, from: recording)
    }
    if let openingError {
      if TransportFindings.isSilence(openingError, requests: log.requests) {
        result.silence = openingError
      } else if openingError.isOfUnsupportedContainer {
        result.notChecked.append(NotChecked(nil, openingError.reason))
      } else {
        result.findings = [opening(openingError, source, log)]
      }
    }
    result.findings += judge(facts)
    if facts.start != nil, !options.links.isEmpty, !result.isInterrupted {
      let replay = StartReplay(
        recording: recording, source: source, configuration: configuration, options: options, logger: logger)
      result.starts = try await replay.results(for: &result.findings, facts: facts)
    } else {
      // These are judged by what they cost on a link.
      result.findings.removeAll { $0.id == .startBytes || $0.id == .firstRungHeavy }
    }
    Self.sort(&result.findings)
    result.notChecked += facts.notChecked + Self.excuses(facts)
    result.notChecked += [LiveFindings.notChecked(in: facts)].compactMap(\.self)
    if options.watch != nil, !facts.isLive, !facts.format.isEmpty {
      result.notChecked.append(NotChecked(nil, "it is not live, so it was not watched"))
    }
    result.coverage = Self.coverage(facts)
    result.facts = facts
    if options.takesStills, !result.isInterrupted {
      result.stills = try await FindingStills(fetcher: fetcher, configuration: configuration, logger: logger)
        .stills(of: source, result)
    }
    return result
  }

  // MARK: - Private

  /// Reads the source. Returns true if the time limit was reached.
  private func runsOut(_ reading: SourceReading) async throws -> Bool {
    guard let limit = options.timeLimit else {
      try await reading.run()
      return false
    }
    return try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        try await reading.run()
        return false
      }
      group.addTask {
        try await SystemMonotonicClock().sleep(for: limit)
        return true
      }
      defer { group.cancelAll() }
      return try await group.next() ?? false
    }
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

  private func judge(_ facts: StreamFacts) -> [Finding] {
    let thresholds = options.thresholds
    var findings = SegmentFindings.findings(in: facts, thresholds)
    findings += ContentFindings.findings(in: facts, thresholds)
    findings += LadderFindings.findings(in: facts, thresholds)
    findings += ManifestFindings.findings(in: facts, thresholds)
    findings = Consequences.removed(from: findings)
    findings += TransportFindings.findings(in: facts, thresholds)
    findings += LiveFindings.findings(in: facts, thresholds)
    findings += StartFindings.findings(in: facts, thresholds)
    return findings
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
      guard case .excused(let reason) = rung.status else { return nil }
      return NotChecked(nil, rung: rung.name, reason)
    }
  }

  private static func coverage(_ facts: StreamFacts) -> Coverage {
    var coverage = Coverage()
    coverage.allRungCount = facts.rungs.count
    for rung in facts.rungs {
      let read = rung.samples.values.filter { $0.byteCount > 0 || $0.video != nil || $0.audio != nil }
      coverage.rungCount += read.isEmpty ? 0 : 1
      coverage.segmentCount += read.count
      coverage.allSegmentCount += max(rung.segments.count, read.count)
      coverage.byteCount += read.reduce(0) { $0 + $1.byteCount }
      for content in rung.content {
        coverage.frameCount += content.frames.count
        coverage.damagedFrameCount += content.frames.count(where: \.isDamaged)
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

extension ReelError {
  /// True for media in a container that Reel does not read, which is no fault of the media.
  fileprivate var isOfUnsupportedContainer: Bool {
    kind == .unsupported || found == .unsupportedContainer
  }
}
