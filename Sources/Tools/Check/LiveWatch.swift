internal import Foundation
internal import HTTPTypes
package import ReelCore
internal import ReelManifest
package import ReelSources

/// Re-reads the playlists or the MPD of a live presentation for some time, as a player does (RFC 8216 §6.3.4, ISO/IEC
/// 23009-1 §5.4.1).
package struct LiveWatch: Sendable {
  /// A playlist or MPD, and what its readings were so far.
  private struct Followed: Sendable {
    var url: URL
    /// The names of the rungs whose segments it lists.
    var rungs: [String]
    var dueAt: Duration = .zero
    var hasEnded = false
  }

  /// What one reading of a document brought.
  private struct Reading: Sendable {
    var readings: [String: LiveFacts.Reading] = [:]
    var live: LiveTiming?
    /// The longest segment, or the target duration, in seconds.
    var targetDuration = 0.0
    var failure: ReelError?
  }

  /// The most playlists that are followed, and the most segments that are asked for at a time.
  private static let documentLimit = 64
  private static let rungLimit = 16
  private static let byteLimit = 16 << 20

  private let facts: StreamFacts
  private let fetcher: any Fetching
  private let configuration: LoadingConfiguration
  private let clock: any WallClock

  /// - Parameters:
  ///   - facts: What is known of the presentation: its format, URL and rungs.
  ///   - fetcher: Fetches manifests and segments; that of `LoadedManifest`, which keeps to its limits.
  ///   - clock: The time, which also waits; that of the configuration if nil.
  package init(
    _ facts: StreamFacts, fetcher: any Fetching, configuration: LoadingConfiguration,
    clock: (any WallClock)? = nil
  ) {
    self.facts = facts
    self.fetcher = fetcher
    self.configuration = configuration
    self.clock = clock ?? configuration.clock
  }

  /// Watches for `seconds`, or until the presentation ends.
  ///
  /// - Parameter record: Called with what was seen so far, after each reading.
  /// - Throws: `CancellationError`, at once when the task is cancelled.
  package func run(
    for seconds: Double, record: @Sendable (LiveFacts) -> Void = { _ in }
  ) async throws -> LiveFacts {
    var live = LiveFacts()
    let began = clock.now
    let end = Duration.seconds(seconds)
    var documents = documents
    var time = Duration.zero
    while let next = documents.filter({ !$0.hasEnded }).map(\.dueAt).min(), next <= end {
      if next > time { try await clock.sleep(for: next - time) }
      time = Duration(clock.now - began)
      let due = documents.indices.filter { !documents[$0].hasEnded && documents[$0].dueAt <= max(time, next) }
      let results = try await read(due.map { documents[$0] })
      let now = Duration(clock.now - began)
      for (index, reading) in zip(due, results) {
        take(reading, of: &documents[index], at: now, into: &live)
      }
      time = now
      live.duration = now / .seconds(1)
      live.hasEnded = documents.allSatisfy(\.hasEnded) && !documents.isEmpty
      record(live)
    }
    if !live.hasEnded, !documents.isEmpty, time < end { try await clock.sleep(for: end - time) }
    live.duration = Duration(clock.now - began) / .seconds(1)
    record(live)
    return live
  }

  // MARK: - Private

  /// The documents to follow: the media playlists, or the MPD.
  private var documents: [Followed] {
    let rungs = facts.rungs.filter { $0.status != .skipped && !$0.isUnlisted && $0.kind != .image }
    if facts.format == "dash" {
      guard let url = facts.presentation?.live?.locations.first ?? facts.url else { return [] }
      return [Followed(url: url, rungs: rungs.prefix(Self.rungLimit).map(\.name))]
    }
    var documents: [Followed] = []
    for rung in rungs {
      guard let url = rung.url else { continue }
      if let index = documents.firstIndex(where: { $0.url == url }) {
        documents[index].rungs.append(rung.name)
      } else if documents.count < Self.documentLimit {
        documents.append(Followed(url: url, rungs: [rung.name]))
      }
    }
    return documents
  }

  /// Reads documents at once.
  private func read(_ documents: [Followed]) async throws -> [Reading] {
    try await withThrowingTaskGroup(of: (Int, Reading).self) { group in
      for (index, document) in documents.enumerated() {
        group.addTask {
          let reading = try await self.reading(of: document)
          return (index, reading)
        }
      }
      var readings = [Reading](repeating: Reading(), count: documents.count)
      for try await (index, reading) in group { readings[index] = reading }
      return readings
    }
  }

  /// Reads a document, or says why it can't be read.
  private func reading(of document: Followed) async throws -> Reading {
    do { return try await read(document) } catch let error as ReelError { return Reading(failure: error) }
  }

  private func read(_ document: Followed) async throws -> Reading {
    let metrics = Locked<RequestMetrics?>(nil)
    let request = FetchRequest(
      url: document.url, purpose: .manifest, report: { report in metrics.withLock { $0 = report } })
    let response = try await fetcher.fetch(request)
    let bytes = try await response.body.collect(upTo: Self.byteLimit, orThrow: .badManifest)
    let head = metrics.withLock { $0 }
    let age = head?.fields[.age].flatMap { Double($0) }
    let maxAge = Self.maxAge(head?.fields[.cacheControl])
    var reading =
      facts.format == "dash"
      ? try await readMPD(bytes, response, document, age: age ?? 0)
      : try readPlaylist(bytes, response, document)
    for name in reading.readings.keys {
      reading.readings[name]?.age = age
      reading.readings[name]?.maxAge = maxAge
    }
    return reading
  }

  private func readPlaylist(
    _ bytes: [UInt8], _ response: FetchResponse, _ document: Followed
  ) throws -> Reading {
    let reader = ManifestReader(limits: configuration.manifestLimits)
    let playlist = try reader.mediaPlaylist(
      from: bytes, url: response.url, variables: facts.presentation?.variables ?? [:])
    let value = LiveFacts.Reading(
      time: 0, lastNumber: playlist.segments.last?.number, end: playlist.segments.end.seconds)
    var reading = Reading(live: playlist.live)
    if case .targetDuration(let target) = playlist.live?.reload { reading.targetDuration = target.seconds }
    for name in document.rungs { reading.readings[name] = value }
    return reading
  }

  private func readMPD(
    _ bytes: [UInt8], _ response: FetchResponse, _ document: Followed, age: Double
  ) async throws -> Reading {
    let reader = ManifestReader(limits: configuration.manifestLimits)
    var now = clock.now
    // A clock of this machine that is off must not look like segments that are missing. A cache states when the origin
    // answered, and how long ago that was.
    if let date = response.date {
      let offset = date - now + MediaTime(seconds: age, timescale: 1000)
      if abs(offset.seconds) > 2 { now = now + offset }
    }
    let presentation = try reader.presentation(from: bytes, format: .dash, url: response.url, now: now)
    var reading = Reading(live: presentation.live)
    let rungs = facts.rungs.filter { document.rungs.contains($0.name) }
    // Where the segments follow from the clock alone, the manifest lists them whether they are there or not.
    let later = try presentation.live?.presentation?(now + MediaTime(value: 3600, timescale: 1))
    for rung in rungs {
      guard let segments = Self.segments(of: rung, in: presentation), let last = segments.last else {
        continue
      }
      var value = LiveFacts.Reading(time: 0, lastNumber: nil, end: segments.end.seconds)
      let length = last.duration.seconds
      reading.targetDuration = max(reading.targetDuration, length)
      let isClocked = later.flatMap { Self.segments(of: rung, in: $0) }.map { $0.end > segments.end } ?? false
      if isClocked {
        let past = now - MediaTime(seconds: 1.5 * length, timescale: 1000)
        let before = try presentation.live?.presentation?(past)
        if let newest = before.flatMap({ Self.segments(of: rung, in: $0)?.last }) {
          value.lacksNewest = try await isMissing(newest)
        }
      }
      reading.readings[rung.name] = value
    }
    return reading
  }

  /// True if the server says that there is no such segment.
  private func isMissing(_ segment: SegmentReference) async throws -> Bool {
    do {
      _ = try await fetcher.fetch(
        FetchRequest(.head, url: segment.url, purpose: .segment))
      return false
    } catch let error as ReelError {
      guard error.kind == .server else { return false }
    }
    // Some servers refuse HEAD.
    do {
      let range = segment.byteRange ?? ByteRange(offset: 0, length: 1)
      let response = try await fetcher.fetch(
        FetchRequest(
          url: segment.url, range: ByteRange(offset: range.offset, length: 1), purpose: .segment))
      response.body.close()
      return false
    } catch let error as ReelError {
      return error.status == 404 || error.status == 410
    }
  }

  /// Returns the segments of a rung in the last period that has it, or of another one of its kind.
  private static func segments(of rung: RungFacts, in presentation: Presentation) -> SegmentList? {
    func segments(_ matches: (Rung) -> Bool) -> SegmentList? {
      for period in presentation.periods.reversed() {
        for group in period.trackGroups where group.kind == rung.kind {
          for other in group.rungs where matches(other) {
            if case .segments(let list) = other.media, !list.isEmpty { return list }
          }
        }
      }
      return nil
    }
    let id = rung.declared?.id
    let own = segments { $0.id == id }
    guard let any = segments({ _ in true }) else { return own }
    // The rungs of the next period may have other names.
    return own.map { $0.end >= any.end || any.first?.discontinuity == $0.first?.discontinuity ? $0 : any }
      ?? any
  }

  private func take(
    _ reading: Reading, of document: inout Followed, at now: Duration, into live: inout LiveFacts
  ) {
    let seconds = now / .seconds(1)
    live.targetDuration = max(live.targetDuration, reading.targetDuration)
    var hasChanged = false
    for name in document.rungs {
      var all = live.readings[name] ?? []
      if let failure = reading.failure {
        var value = all.last ?? LiveFacts.Reading(time: 0, lastNumber: nil, end: 0)
        value.time = seconds
        value.failure = failure
        all.append(value)
      } else if var value = reading.readings[name] {
        value.time = seconds
        hasChanged = hasChanged || value.lastNumber != all.last?.lastNumber || value.end != all.last?.end
        all.append(value)
      }
      live.readings[name] = all
    }
    if reading.failure == nil {
      guard let timing = reading.live else {
        document.hasEnded = true
        return
      }
      if case .after(let period) = timing.reload { live.updatePeriod = period.seconds }
      if timing.isOver(at: clock.now) {
        document.hasEnded = true
        return
      }
      let segment = MediaTime(seconds: reading.targetDuration, timescale: 1000)
      let delay = timing.reloadDelay(hasChanged: hasChanged, segmentDuration: segment) ?? segment
      document.dueAt = now + .seconds(max(delay.seconds, 0.5))
    } else {
      document.dueAt = now + .seconds(max(live.targetDuration / 2, 0.5))
    }
  }

  /// Returns the value of `max-age`; nil if the field has none.
  private static func maxAge(_ field: String?) -> Double? {
    for part in field?.lowercased().split(separator: ",") ?? [] {
      let pair = part.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
      if pair.count == 2, pair[0] == "max-age" { return Double(pair[1].filter { $0 != "\"" }) }
    }
    return nil
  }
}

extension Duration {
  fileprivate init(_ time: MediaTime) {
    self = .nanoseconds(time.ticks(timescale: 1_000_000_000))
  }
}
