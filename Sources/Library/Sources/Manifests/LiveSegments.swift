internal import Foundation
package import ReelCore
package import ReelManifest

/// One reading of a live manifest: the segments of the track.
package struct LiveReading: Sendable {
  package var segments: SegmentList
  /// The timing for following the presentation; nil if no more segments will come.
  package var live: LiveTiming?
  /// The segments that the same manifest states for another time; nil if they do not depend on the time.
  package var segmentsAtTime: (@Sendable (WallTime) throws -> SegmentList)?
  /// The time before its end at which a segment becomes available.
  package var availabilityTimeOffset = MediaTime.zero
  /// The parts of the presentation whose periods lack the track.
  package var absences: [Absence] = []
  /// The difference of the starts of its timeline and the player's. Another value means another run of
  /// timestamps.
  package var timelineShift = MediaTime.zero

  package init(segments: SegmentList, live: LiveTiming?) {
    self.segments = segments
    self.live = live
  }
}

/// The segments of a live track. The manifest is reloaded when a segment is needed that it does not list yet,
/// and a reload is due.
package final class LiveSegments: Sendable {
  package let firstIndex: Int
  /// The first segment when joining other tracks. If those begin in a part without this track, it is the
  /// first segment after that part.
  package let joiningIndex: Int
  private let clock: any WallClock
  private let stallLimit: Duration
  private let skipsRefused: Bool
  private let read: @Sendable () async throws -> LiveReading

  private struct Listing {
    var window: SegmentWindow
    var reading: LiveReading
    /// The time at which the last reload began, and whether it brought anything new.
    var readAt: WallTime
    var hasChanged = true
    /// The time at which something new was last found.
    var grewAt: WallTime
    /// The time at which the presentation was last known to lack the track.
    var absentAt: WallTime?
    /// The number of segments that were skipped since the last one that was loaded.
    var leftOutInARow = 0
    /// The segments that have failed once.
    private(set) var failedIndexes: Set<Int> = []
    /// The time at which the current series of failures began.
    var failingSince: WallTime?
    var missedCount = 0
    /// True if a listed segment was not available, so the manifest may be out of date.
    var isDoubtful = false

    mutating func recordFailure(at index: Int) {
      let oldest = window.startIndex
      if failedIndexes.count > 24 { failedIndexes = failedIndexes.filter { $0 >= oldest } }
      failedIndexes.insert(index)
    }
  }

  private let state: Locked<Listing>

  /// - Parameters:
  ///   - clock: The server's time.
  ///   - stallLimit: The longest time without anything new.
  ///   - skipsRefused: True to skip a segment that fails, instead of requesting it again.
  ///   - read: Reloads the manifest.
  package init(
    _ first: LiveReading, identity: SegmentWindow.Identity, clock: any WallClock, stallLimit: Duration,
    skipsRefused: Bool = false, read: @escaping @Sendable () async throws -> LiveReading
  ) {
    let window = SegmentWindow(first.segments, identity: identity, hasEnded: first.live == nil)
    let now = clock.now
    let grewAt = Self.publication(of: window, first, by: now)
    firstIndex = Self.firstIndex(in: window, first, edge: window.end + (now - grewAt))
    joiningIndex = Self.joiningIndex(in: window, first, at: now) ?? firstIndex
    self.clock = clock
    self.stallLimit = stallLimit
    self.skipsRefused = skipsRefused
    self.read = read
    var state = Listing(window: window, reading: first, readAt: now, grewAt: grewAt)
    if Self.isAbsent(first, at: now) { state.absentAt = now }
    self.state = Locked(state)
  }

  /// The range from the oldest available segment to the newest known one.
  package var knownIndexes: Range<Int> {
    let window = window
    return window.startIndex..<window.endIndex
  }
  package var window: SegmentWindow { state.withLock { $0.window } }
  package var live: LiveTiming? { state.withLock { $0.reading.live } }
  /// The distance from the edge that playback keeps; nil if no more segments will come.
  package var distance: MediaTime? { state.withLock { Self.distance(in: $0.window, $0.reading) } }

  /// True if a part of the presentation lacks this track.
  package var hasAbsences: Bool { state.withLock { !$0.reading.absences.isEmpty } }

  /// Returns true if the presentation lacks this track at `time`. Allows for a last segment that ends
  /// slightly before its period.
  package func isAbsent(at time: MediaTime) -> Bool {
    state.withLock { state in
      state.reading.absences.contains { $0.contains(time) || $0.contains(time + Self.absenceTolerance) }
    }
  }

  /// The current end of the media, as far as it can be known. The edge advances between reloads.
  package var edge: MediaTime {
    let now = clock.now
    return state.withLock { state in
      state.window.hasEnded ? state.window.end : state.window.end + max(.zero, now - state.grewAt)
    }
  }

  /// Returns the distances of a position from the live edge; nil if no more segments will come.
  package func distances(from time: MediaTime) -> LiveDistances? {
    guard let distance else { return nil }
    let (edge, window) = (edge, window)
    // While the track is missing, its window does not show which media is still available.
    let length = isAbsent(at: time) ? MediaTime.zero : window.end - window.start
    return LiveDistances(
      latency: .seconds((edge - time).seconds), target: .seconds(distance.seconds),
      oldest: .seconds(length.seconds),
      segmentDuration: window[window.endIndex - 1].map { .seconds($0.duration.seconds) }, edge: edge)
  }

  /// Returns the position for a jump to `time`: the start of the segment at `time`, or of the last known one if the edge,
  /// which moves with the clock, is further ahead. Inside the segment of `position`, it is `time` itself, if that is in the
  /// window. Nil if nothing is later than `position`.
  package func place(near time: MediaTime, after position: MediaTime) -> MediaTime? {
    let (window, instant) = (window, MediaTime(value: 1, timescale: 1_000_000))
    guard let index = window.index(at: min(time, window.end - instant)), let segment = window[index] else {
      return nil
    }
    if segment.start > position { return segment.start }
    return time > position && time < window.end ? time : nil
  }

  /// Returns the segment at `index`, without waiting for it.
  package func peek(at index: Int) -> Pulled<SegmentReference> {
    state.withLock { state in
      if state.isDoubtful { return .wait }
      if let segment = state.window[index] { return .element(segment) }
      return state.window.hasEnded && index >= state.window.endIndex ? .end : .wait
    }
  }

  /// Returns the segment at `index`, after waiting for it if it has not appeared yet; nil after the last one. If it
  /// has left the window, the oldest available one is returned instead.
  package func segment(from index: Int) async throws -> (index: Int, segment: SegmentReference)? {
    while true {
      // After an unavailable segment, the manifest is reloaded before the next request.
      while state.withLock({ $0.isDoubtful }), try await !readAgain() {
        try await clock.sleep(for: .seconds(1))
      }
      let window = window
      let wanted = index
      let index = max(index, window.startIndex)
      if let segment = window[index] {
        if index > wanted { state.withLock { $0.missedCount += index - wanted } }
        return (index, segment)
      }
      if window.hasEnded { return nil }
      try await update()
    }
  }

  /// Returns the index of the known segment at `time`.
  package func index(at time: MediaTime) -> Int? { window.index(at: time) }

  /// Returns the next step after the segment at `index`, or something that it needs, could not be loaded: before
  /// `again`, half its duration has passed.
  package func recovery(after error: ReelError, at index: Int) async throws -> LiveRecovery {
    guard error.kind == .server || error.kind == .network || error.kind == .timedOut, !skipsRefused else {
      return .fail
    }
    let now = clock.now
    let (recovery, duration) = state.withLock { state -> (LiveRecovery, MediaTime) in
      // Several readers may read different segments.
      let since = state.failingSince ?? now
      let recovery = LiveRecovery.after(
        error, wasRefused: state.failedIndexes.contains(index),
        hasStalled: (now - since).seconds > stallLimit.seconds, leftOutInARow: state.leftOutInARow)
      state.failingSince = since
      state.recordFailure(at: index)
      if case .leaveOut = recovery {
        state.leftOutInARow += 1
        state.missedCount += 1
        state.isDoubtful = true
      }
      return (recovery, state.window[index]?.duration ?? .zero)
    }
    if case .again = recovery {
      try await clock.sleep(for: .seconds(min(max(duration.seconds / 2, 0.25), 5)))
    }
    return recovery
  }

  /// Records that a segment was loaded, so that earlier failures do not count.
  package func recordSuccess() {
    state.withLock { state in
      state.leftOutInARow = 0
      state.failingSince = nil
    }
  }

  /// The number of segments that were skipped because they could not be loaded, or had left the window.
  package var missedCount: Int { state.withLock { $0.missedCount } }

  /// Returns true if `time` is after the known segments, but newer ones can be found at once: nobody has looked for them
  /// while the reader rested.
  package func isOutdated(at time: MediaTime) -> Bool {
    state.withLock { time >= $0.window.end && overdueLook($0) != nil }
  }

  /// Looks for newer segments, once, if the known ones are outdated at `time`. A failure is left to the reader that
  /// waits for the next segment.
  package func update(for time: MediaTime) async throws {
    guard let isReading = state.withLock({ time >= $0.window.end ? overdueLook($0) : nil }) else { return }
    do { _ = try await isReading ? readAgain() : lookAtClock() } catch is ReelError {}
  }

  // MARK: - Private

  /// Waits until the manifest is due, or until the clock brings the next segment, and adds new segments.
  ///
  /// A manifest that can't be read is requested again until nothing new has arrived for the stall limit; then
  /// that error is thrown, or `timedOut`.
  private func update() async throws {
    var isDone = false
    while !isDone {
      try Task.checkCancellation()
      let (due, isReading) = state.withLock { nextLook($0) }
      let wait = due - clock.now
      if wait > .zero { try await clock.sleep(for: .seconds(wait.seconds)) }
      isDone = try await isReading ? readAgain() : lookAtClock()
    }
  }

  /// Returns whether a look at the manifest is due, or one at the clock would find segments; nil for neither.
  private func overdueLook(_ state: Listing) -> Bool? {
    guard !state.window.hasEnded else { return nil }
    let now = clock.now
    let next = nextLook(state)
    if next.isReading, next.at <= now { return true }
    guard let segments = try? state.reading.segmentsAtTime?(now) else { return nil }
    var window = state.window
    _ = window.update(segments)
    return window.endIndex > state.window.endIndex ? false : nil
  }

  /// Returns the next check: reloading the manifest, or checking the clock.
  private func nextLook(_ state: Listing) -> (at: WallTime, isReading: Bool) {
    let last = state.window[state.window.endIndex - 1]
    let now = clock.now
    var reload: WallTime?
    if let delay = state.reading.live?.reloadDelay(
      hasChanged: state.hasChanged, segmentDuration: last?.duration)
    {
      reload = state.readAt + delay
    }
    let isAbsent = Self.isAbsent(state.reading, at: now)
    if !isAbsent, let expected = expectedReload(state) { reload = min(reload ?? expected, expected) }
    guard state.reading.segmentsAtTime != nil else {
      return (reload ?? now + MediaTime(value: 1, timescale: 1), true)
    }
    // A segment is available at about its end.
    let moment = Self.moment
    var next = now + moment * 10
    if let start = state.reading.live?.availabilityStart, let last, !isAbsent {
      next = start + state.window.end + last.duration - state.reading.availabilityTimeOffset
      next = min(max(next, now + moment), now + MediaTime(value: 60, timescale: 1))
    }
    if let reload, reload <= next { return (reload, true) }
    return (next, false)
  }

  /// Returns when a manifest that lists its segments is expected to list the next one, derived from the times
  /// at which they appeared; nil if that is unknown, or if segments appear by time alone. For a late segment,
  /// the check is repeated after each half segment.
  private func expectedReload(_ state: Listing) -> WallTime? {
    guard case .after? = state.reading.live?.reload,
      let start = state.reading.live?.availabilityStart, let last = state.window[state.window.endIndex - 1]
    else { return nil }
    let next = start + state.window.end + last.duration - state.reading.availabilityTimeOffset + Self.moment
    if let atTime = state.reading.segmentsAtTime, let segments = try? atTime(max(next, clock.now)),
      segments.end > state.window.end
    {
      return nil
    }
    return next > state.readAt
      ? max(next, state.readAt + Self.shortestReload)
      : state.readAt + max(last.duration.half, Self.shortestReload)
  }

  /// Reloads the manifest. Returns false if it can't be read for now.
  private func readAgain() async throws -> Bool {
    let began = clock.now
    do {
      try take(try await read(), began: began)
      return true
    } catch let error as ReelError where error.kind != .unsupported {
      let hasStalled = state.withLock { state in
        state.readAt = began
        state.hasChanged = false
        return isStalled(state)
      }
      if hasStalled { throw error }
      return false
    }
  }

  private func take(_ reading: LiveReading, began: WallTime) throws {
    try state.withLock { state in
      let isOver =
        reading.live.map { live in
          live.isOver(at: clock.now) && reading.segments.end <= state.window.end
        } ?? true
      let change = state.window.update(
        reading.segments, hasEnded: isOver, beginsRun: reading.timelineShift != state.reading.timelineShift)
      state.readAt = began
      state.isDoubtful = false
      if case .jumped(let missed) = change { state.missedCount += missed }
      state.hasChanged = change != .unchanged && change != .steppedBack
      if change != .steppedBack { state.reading = reading }
      if state.hasChanged || state.window.hasEnded { state.grewAt = clock.now }
      if Self.isAbsent(reading, at: clock.now) { state.absentAt = clock.now }
      try checkStall(state)
    }
  }

  /// Adds the segments that appear by the clock alone. Returns false if there are none yet.
  private func lookAtClock() async throws -> Bool {
    let now = clock.now
    guard let segmentsAtTime = state.withLock({ $0.reading.segmentsAtTime }) else { return false }
    let segments = try segmentsAtTime(now)
    let isComplete = live?.isOver(at: now) ?? true
    // Without reloads, a segment that is not available within a year never will be.
    let year = MediaTime(value: 365 * 86_400, timescale: 1)
    let isOver = try isComplete || (isNeverRead && segmentsAtTime(now + year).end == segments.end)
    let isNever = isNeverRead
    return try state.withLock { state in
      let known = state.window.endIndex
      _ = state.window.update(segments, hasEnded: isOver)
      let hasGrown = state.window.endIndex > known
      if hasGrown || isOver { state.grewAt = clock.now }
      // A manifest that is never reloaded already states everything.
      if isNever, Self.isAbsent(state.reading, at: clock.now) { state.absentAt = clock.now }
      try checkStall(state)
      return hasGrown || isOver
    }
  }

  private var isNeverRead: Bool {
    if case .never = live?.reload { return true }
    return false
  }

  /// Returns true if the presentation currently lacks the track.
  private static func isAbsent(_ reading: LiveReading, at now: WallTime) -> Bool {
    guard let start = reading.live?.availabilityStart else { return false }
    return reading.absences.contains { $0.contains(now - start) }
  }

  private static func joiningIndex(
    in window: SegmentWindow, _ reading: LiveReading, at now: WallTime
  ) -> Int? {
    guard let start = reading.live?.availabilityStart,
      let distance = distance(in: window, reading)
    else { return nil }
    let place = now - start - distance
    guard let absence = reading.absences.first(where: { $0.contains(place) }) else { return nil }
    guard let end = absence.end else { return window.endIndex }
    return (window.startIndex..<window.endIndex).first { index in
      window[index].map { $0.start + absenceTolerance >= end } ?? false
    } ?? window.endIndex
  }

  private func isStalled(_ state: Listing) -> Bool {
    let last = state.window[state.window.endIndex - 1]?.duration.seconds ?? 0
    let aliveAt = max(state.grewAt, state.absentAt ?? state.grewAt)
    return (clock.now - aliveAt).seconds > max(stallLimit.seconds, 4 * last)
  }

  private func checkStall(_ state: Listing) throws(ReelError) {
    guard isStalled(state) else { return }
    let seconds = Int((clock.now - state.grewAt).seconds)
    throw ReelError(.timedOut, "the live manifest has listed no new segment for \(seconds) s")
  }

  private static let absenceTolerance = MediaTime(value: 1, timescale: 2)
  private static let moment = MediaTime(value: 50, timescale: 1000)
  /// The shortest interval between reloads.
  private static let shortestReload = MediaTime(value: 1, timescale: 2)
  /// The time that the manifest and the next segment may take to arrive once it is available.
  private static let margin = MediaTime(value: 1, timescale: 1)

  /// Returns when the last segment was published, as far as known.
  private static func publication(
    of window: SegmentWindow, _ reading: LiveReading, by now: WallTime
  ) -> WallTime {
    guard let start = reading.live?.availabilityStart, let last = window[window.endIndex - 1] else {
      return now
    }
    let time = start + window.end - reading.availabilityTimeOffset
    return time < now && (now - time < last.duration || isAbsent(reading, at: now)) ? time : now
  }

  /// Returns the distance in the manifest, but at least a segment and a second: nearer to the edge, playback
  /// would stall before each next segment.
  private static func distance(in window: SegmentWindow, _ reading: LiveReading) -> MediaTime? {
    guard let live = reading.live else { return nil }
    guard let last = window[window.endIndex - 1] else { return live.delay }
    return max(live.delay, last.duration - reading.availabilityTimeOffset + margin)
  }

  private static func firstIndex(
    in window: SegmentWindow, _ reading: LiveReading, edge: MediaTime
  ) -> Int {
    guard let distance = distance(in: window, reading) else { return window.startIndex }
    return window.index(at: min(edge - distance, window.end - moment)) ?? window.startIndex
  }
}

/// How far a position is behind the live edge.
package struct LiveDistances: Sendable, Hashable {
  package let latency: Duration
  /// The latency that playback keeps.
  package let target: Duration
  /// The latency of the oldest media in the window.
  package let oldest: Duration
  package let segmentDuration: Duration?
  package let edge: MediaTime

  /// The latency of the oldest media, if that limits how far back playback may be.
  package var limit: Duration? { oldest > target ? oldest : nil }
}

extension Duration {
  fileprivate var seconds: Double { self / .seconds(1) }
}
