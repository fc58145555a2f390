internal import Foundation
internal import ReelCore
internal import ReelManifest

/// One reading of a live manifest: the segments of the track that is followed.
struct LiveReading: Sendable {
  var segments: SegmentList
  /// Nil where no more will come.
  var live: LiveTiming?
  /// The segments that the same manifest tells of at another time; nil where time makes no difference.
  var segmentsAtTime: (@Sendable (WallTime) throws -> SegmentList)?
  /// How much earlier than its end a segment can be had.
  var availabilityTimeOffset = MediaTime.zero
  /// The parts of the presentation whose periods lack the track.
  var absences: [Absence] = []
  /// How much later its timeline begins than the one that is followed: another number is another run of timestamps.
  var timelineShift = MediaTime.zero
}

/// The segments of a live track. The manifest is read again when segments are waited for that it does not name yet, and
/// when it is due.
final class LiveSegments: SegmentSupply {
  /// What one look at the manifest has brought.
  struct Update: Sendable {
    var change: SegmentWindow.Change
    /// Indexes of the segments that are new.
    var newIndexes: Range<Int>
    /// True where the manifest was read, false where time alone brought it.
    var isReading: Bool
  }

  let firstIndex: Int
  /// The segment to begin with beside other tracks. If those begin in a part without this track, it is the first
  /// segment after that part.
  let joiningIndex: Int
  private let clock: any WallClock
  private let stallLimit: Duration
  private let read: @Sendable () async throws -> LiveReading

  private struct State {
    var window: SegmentWindow
    var reading: LiveReading
    /// When the last reading began, and whether it brought anything.
    var readAt: WallTime
    var hasChanged = true
    /// When there was something new last.
    var grewAt: WallTime
    /// When the presentation was last known to be without the track.
    var absentAt: WallTime?
    var failureCount = 0
    var failedIndex: Int?
    /// When the failures began that no success has ended yet.
    var failingSince: WallTime?
    var missedCount = 0
    /// A segment that the manifest names is not there: the manifest may be out of date.
    var isDoubtful = false
  }

  private let state: Locked<State>

  /// Segments that are refused one after the other before the track is given up.
  private static let failureLimit = 3

  /// - Parameters:
  ///   - clock: the server's time.
  ///   - stallLimit: how long nothing new may come.
  ///   - startOffset: where to begin, from the beginning or, where negative, from the end; nil for the manifest's rule.
  ///   - read: reads the manifest again.
  init(
    _ first: LiveReading, identity: SegmentWindow.Identity, startOffset: MediaTime?, clock: any WallClock,
    stallLimit: Duration, read: @escaping @Sendable () async throws -> LiveReading
  ) {
    let window = SegmentWindow(first.segments, identity: identity, hasEnded: first.live == nil)
    let now = clock.now
    let grewAt = Self.publication(of: window, first, by: now)
    firstIndex = Self.firstIndex(
      in: window, first, edge: window.end + (now - grewAt), startOffset: startOffset)
    joiningIndex = Self.joiningIndex(in: window, first, at: now, startOffset: startOffset) ?? firstIndex
    self.clock = clock
    self.stallLimit = stallLimit
    self.read = read
    var state = State(window: window, reading: first, readAt: now, grewAt: grewAt)
    if Self.isAbsent(first, at: now) { state.absentAt = now }
    self.state = Locked(state)
  }

  var knownIndexes: Range<Int> {
    let window = window
    return window.startIndex..<window.endIndex
  }
  var window: SegmentWindow { state.withLock { $0.window } }
  var live: LiveTiming? { state.withLock { $0.reading.live } }
  /// How far behind the edge playback is kept; nil where no more segments will come.
  var distance: MediaTime? { state.withLock { Self.distance(in: $0.window, $0.reading) } }

  /// True if a part of the presentation lacks this track.
  var hasAbsences: Bool { state.withLock { !$0.reading.absences.isEmpty } }

  /// True if the presentation lacks this track at `time`. Allows for a last segment that ends slightly before its
  /// period.
  func isAbsent(at time: MediaTime) -> Bool {
    state.withLock { state in
      state.reading.absences.contains { $0.contains(time) || $0.contains(time + Self.absenceTolerance) }
    }
  }

  /// The end of what there is by now, as far as can be told: the edge moves on between readings.
  var edge: MediaTime {
    let now = clock.now
    return state.withLock { state in
      state.window.hasEnded ? state.window.end : state.window.end + max(.zero, now - state.grewAt)
    }
  }

  func peek(at index: Int) -> SegmentPeek {
    state.withLock { state in
      if state.isDoubtful { return .awaited }
      if let segment = state.window[index] { return .segment(segment) }
      return state.window.hasEnded && index >= state.window.endIndex ? .ended : .awaited
    }
  }

  func segment(from index: Int) async throws -> (index: Int, segment: SegmentReference)? {
    while true {
      // After a segment that was not there the manifest is read before the next is asked for.
      while state.withLock({ $0.isDoubtful }), try await readAgain() == nil {
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
      _ = try await update()
    }
  }

  func index(at time: MediaTime) -> Int? { window.index(at: time) }

  /// A segment that is announced before it is there is asked for once more; then it counts as a gap. Where there is no
  /// answer at all, it is asked for again until the stall limit.
  func action(after error: ReelError, at index: Int) async throws -> SegmentFailureAction {
    let isRefused = error.kind == .server
    guard isRefused || error.kind == .network || error.kind == .timedOut else { return .fail }
    let now = clock.now
    let (action, pause) = state.withLock { state -> (SegmentFailureAction, MediaTime) in
      let isFirst = state.failedIndex != index
      state.failedIndex = index
      let since = state.failingSince ?? now
      state.failingSince = since
      let duration = state.window[index]?.duration ?? .zero
      guard isRefused else {
        return ((now - since).seconds > stallLimit.seconds ? .fail : .tryAgain, duration)
      }
      if isFirst { return (.tryAgain, duration) }
      state.failureCount += 1
      guard state.failureCount < Self.failureLimit else { return (.fail, duration) }
      state.missedCount += 1
      state.isDoubtful = true
      return (.passOver, duration)
    }
    if case .tryAgain = action { try await clock.sleep(for: .seconds(min(max(pause.seconds / 2, 0.25), 5))) }
    return action
  }

  /// A segment was had: those that failed before it are forgiven.
  func noteSuccess() {
    state.withLock { state in
      state.failureCount = 0
      state.failingSince = nil
    }
  }

  var missedCount: Int { state.withLock { $0.missedCount } }

  /// Waits until the manifest is due, or time has brought the next segment, and takes what is new.
  ///
  /// A manifest that can't be read is tried again until nothing new has come for the stall limit; then that error is
  /// thrown, or `timedOut`.
  func update() async throws -> Update {
    while true {
      try Task.checkCancellation()
      let (due, isReading) = state.withLock { nextLook($0) }
      let wait = due - clock.now
      if wait > .zero { try await clock.sleep(for: .seconds(wait.seconds)) }
      if isReading {
        if let update = try await readAgain() { return update }
      } else if let update = try await lookAtClock() {
        return update
      }
    }
  }

  // MARK: - Private

  /// What comes next: reading the manifest, or a look at the clock.
  private func nextLook(_ state: State) -> (at: WallTime, isReading: Bool) {
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
    // The next segment is there when its end has come, more or less.
    let moment = Self.moment
    var next = now + moment * 10
    if let start = state.reading.live?.availabilityStart, let last, !isAbsent {
      next = start + state.window.end + last.duration - state.reading.availabilityTimeOffset
      next = min(max(next, now + moment), now + MediaTime(value: 60, timescale: 1))
    }
    if let reload, reload <= next { return (reload, true) }
    return (next, false)
  }

  /// When a manifest that lists its segments is likely to name the next one, by the times at which they are there; nil
  /// where that is not known, or time alone brings it. One that is late is looked for at every half of a segment.
  private func expectedReload(_ state: State) -> WallTime? {
    guard case .after? = state.reading.live?.reload,
      let start = state.reading.live?.availabilityStart, let last = state.window[state.window.endIndex - 1]
    else { return nil }
    let next = start + state.window.end + last.duration - state.reading.availabilityTimeOffset + Self.moment
    if let atTime = state.reading.segmentsAtTime, let segments = try? atTime(max(next, clock.now)),
      segments.end > state.window.end
    {
      return nil
    }
    let half = MediaTime(seconds: max(last.duration.seconds / 2, 0.5))
    return next > state.readAt ? max(next, state.readAt + Self.shortestReload) : state.readAt + half
  }

  private func readAgain() async throws -> Update? {
    let began = clock.now
    do {
      let reading = try await read()
      return try take(reading, began: began)
    } catch let error as ReelError where error.kind != .unsupported {
      let hasStalled = state.withLock { state in
        state.readAt = began
        state.hasChanged = false
        return isStalled(state)
      }
      if hasStalled { throw error }
      return nil
    }
  }

  private func take(_ reading: LiveReading, began: WallTime) throws -> Update {
    try state.withLock { state in
      let known = state.window.endIndex
      let isOver =
        reading.live.map { live in
          Self.isOver(live, at: clock.now) && reading.segments.end <= state.window.end
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
      return Update(
        change: change, newIndexes: min(known, state.window.endIndex)..<state.window.endIndex, isReading: true
      )
    }
  }

  /// What time has brought; nil for nothing.
  private func lookAtClock() async throws -> Update? {
    let now = clock.now
    guard let segmentsAtTime = state.withLock({ $0.reading.segmentsAtTime }) else { return nil }
    let segments = try segmentsAtTime(now)
    let isComplete = live.map { Self.isOver($0, at: now) } ?? true
    // Where nothing is read again, what is not there in a year will never be.
    let year = MediaTime(value: 365 * 86_400, timescale: 1)
    let isOver = try isComplete || (isNeverRead && segmentsAtTime(now + year).end == segments.end)
    let isNever = isNeverRead
    return try state.withLock { state in
      let known = state.window.endIndex
      let change = state.window.update(segments, hasEnded: isOver)
      let hasGrown = state.window.endIndex > known
      if hasGrown || isOver { state.grewAt = clock.now }
      // A manifest that is never reloaded already says everything.
      if isNever, Self.isAbsent(state.reading, at: clock.now) { state.absentAt = clock.now }
      try checkStall(state)
      guard hasGrown || isOver else { return nil }
      return Update(change: change, newIndexes: known..<state.window.endIndex, isReading: false)
    }
  }

  private var isNeverRead: Bool {
    if case .never = live?.reload { return true }
    return false
  }

  /// True where the presentation has ended, by what the manifest says.
  private static func isOver(_ live: LiveTiming, at now: WallTime) -> Bool {
    live.availabilityEnd.map { $0 <= now } ?? false
  }

  /// True if the presentation currently lacks the track.
  private static func isAbsent(_ reading: LiveReading, at now: WallTime) -> Bool {
    guard let start = reading.live?.availabilityStart else { return false }
    return reading.absences.contains { $0.contains(now - start) }
  }

  private static func joiningIndex(
    in window: SegmentWindow, _ reading: LiveReading, at now: WallTime, startOffset: MediaTime?
  ) -> Int? {
    guard startOffset == nil, let start = reading.live?.availabilityStart,
      let distance = distance(in: window, reading)
    else { return nil }
    let place = now - start - distance
    guard let absence = reading.absences.first(where: { $0.contains(place) }) else { return nil }
    guard let end = absence.end else { return window.endIndex }
    return (window.startIndex..<window.endIndex).first { index in
      window[index].map { $0.start + absenceTolerance >= end } ?? false
    } ?? window.endIndex
  }

  private func isStalled(_ state: State) -> Bool {
    let last = state.window[state.window.endIndex - 1]?.duration.seconds ?? 0
    let aliveAt = max(state.grewAt, state.absentAt ?? state.grewAt)
    return (clock.now - aliveAt).seconds > max(stallLimit.seconds, 4 * last)
  }

  private func checkStall(_ state: State) throws(ReelError) {
    guard isStalled(state) else { return }
    let seconds = Int((clock.now - state.grewAt).seconds)
    throw ReelError(.timedOut, "the live manifest has named no new segment for \(seconds) s")
  }

  private static let absenceTolerance = MediaTime(value: 1, timescale: 2)
  private static let moment = MediaTime(value: 50, timescale: 1000)
  /// No manifest is read more often.
  private static let shortestReload = MediaTime(value: 1, timescale: 2)
  /// For the manifest and the next segment to come, when that is there.
  private static let margin = MediaTime(value: 1, timescale: 1)

  /// When the last segment was published, as far as is known.
  private static func publication(
    of window: SegmentWindow, _ reading: LiveReading, by now: WallTime
  ) -> WallTime {
    guard let start = reading.live?.availabilityStart, let last = window[window.endIndex - 1] else {
      return now
    }
    let time = start + window.end - reading.availabilityTimeOffset
    return time < now && (now - time < last.duration || isAbsent(reading, at: now)) ? time : now
  }

  /// What the manifest says; but nearer than a segment and a second there is nothing to show before the next segment
  /// is there.
  private static func distance(in window: SegmentWindow, _ reading: LiveReading) -> MediaTime? {
    guard let live = reading.live else { return nil }
    guard let last = window[window.endIndex - 1] else { return live.delay }
    return max(live.delay, last.duration - reading.availabilityTimeOffset + margin)
  }

  private static func firstIndex(
    in window: SegmentWindow, _ reading: LiveReading, edge: MediaTime, startOffset: MediaTime?
  ) -> Int {
    let time: MediaTime
    if let startOffset {
      time = startOffset < .zero ? window.end + startOffset : window.start + startOffset
    } else if let distance = distance(in: window, reading) {
      time = min(edge - distance, window.end - moment)
    } else {
      return window.startIndex
    }
    return window.index(at: time) ?? window.startIndex
  }
}

extension Duration {
  fileprivate var seconds: Double { self / .seconds(1) }
}
