internal import ReelCore
internal import ReelReading
internal import ReelSources

/// The slots of a storyboard, and the key frames that are read for them.
struct StoryboardPlan: Sendable, Hashable {
  /// A key frame to read.
  struct Job: Sendable, Hashable {
    let slot: Int
    let place: KeyFramePlace
  }

  /// The divisor of a slot for a remainder: one that is no longer than that belongs to the slot before it.
  private static let remainderShare = 10
  /// The maximum plausible duration in seconds.
  private static let longestDuration = 1e12

  /// The length of a slot in milliseconds.
  let interval: Int
  /// The duration in milliseconds; nil if unknown.
  let duration: Int?
  /// The number of slots; nil if the duration is unknown.
  let slotCount: Int?
  /// True if a number of stills was requested.
  let isCounted: Bool
  /// The key frames in order, without repetition; empty if their positions are not known.
  private(set) var jobs: [Job] = []

  /// - Parameters:
  ///   - places: The positions of key frames, in order of time; nil if they are not known.
  ///   - start: The time at which the first slot begins.
  ///   - duration: The duration in seconds, from `start`.
  /// - Throws: `ReelError.unsupported` if there would be too many slots, or if a count is requested and the
  ///   duration is unknown.
  init(
    _ spacing: Storyboard.Spacing, places: [KeyFramePlace]?, start: MediaTime, duration: Double?
  ) throws(ReelError) {
    let whole = duration.map { max(1, Int((min($0, Self.longestDuration) * 1000).rounded())) }
    self.duration = whole
    isCounted = if case .count = spacing { true } else { false }
    var most = Storyboard.slotLimit
    var step: Int
    switch spacing {
    case .every(let seconds): step = max(1, Int((seconds * 1000).rounded()))
    case .count(let count):
      guard let whole else {
        throw ReelError(
          .unsupported, "the duration is unknown, so it can't be divided",
          advice: "use --every instead of --count")
      }
      most = count
      step = max(1, whole / max(1, count))
    }
    if let places, places.count > 1, let first = places.first, let last = places.last {
      let distance = (last.time - first.time).seconds * 1000 / Double(places.count - 1)
      step = max(step, Int(min(distance, Self.longestDuration * 1000).rounded()))
    }
    interval = step
    guard let whole else {
      slotCount = nil
      return
    }
    // Durations are often a little longer than the video, because of the audio.
    var slots = max(1, (whole + step - 1 - step / Self.remainderShare) / step)
    if case .count = spacing { slots = min(slots, most) }
    guard slots <= most else {
      let least = (Double(whole) / Double(most)).rounded(.up) / 1000
      throw ReelError(
        .unsupported, "a still every \(Double(step) / 1000) s would be \(slots) stills, more than \(most)",
        advice: least < Storyboard.intervals.upperBound
          ? "choose --every \(least) or more"
          : "choose --count; the duration of \(whole / 1000) s may be wrong")
    }
    slotCount = slots
    guard let places, !places.isEmpty else { return }
    var index = 0
    for slot in 0..<slots {
      let time = start.seconds + Double(slot * step) / 1000
      while index + 1 < places.count,
        abs(places[index + 1].time.seconds - time) <= abs(places[index].time.seconds - time)
      {
        index += 1
      }
      if let last = jobs.last, last.place == places[index] { continue }
      jobs.append(Job(slot: slot, place: places[index]))
    }
  }

  /// Returns the slot of a key frame that is read in order, by its time from the start of the storyboard. The
  /// next key frame is not known at that time, so each slot takes the first one that is not much before its
  /// beginning.
  func slot(at time: MediaTime) -> Int {
    max(0, Int((time.seconds * 1000 / Double(interval) + 1 / Double(Self.remainderShare)).rounded(.down)))
  }

  /// Like `slot(at:)`, but nil for a frame without a slot.
  ///
  /// A frame just before the end belongs to the last slot, if that has no other. If the stated duration is
  /// too short, there are further slots, unless a number of stills was requested.
  func slot(at time: MediaTime, after lastSlot: Int) -> Int? {
    let slot = slot(at: time)
    guard let slotCount, let duration, slot >= slotCount else {
      return slot < Storyboard.slotLimit ? slot : nil
    }
    if time.seconds * 1000 < Double(duration) { return lastSlot < slotCount - 1 ? slotCount - 1 : nil }
    return isCounted || slot >= Storyboard.slotLimit ? nil : slot
  }

  /// Returns the first time, from the start of the storyboard, that belongs to a slot.
  func firstTime(of slot: Int) -> MediaTime {
    MediaTime(seconds: (Double(slot) - 1 / Double(Self.remainderShare)) * Double(interval) / 1000)
  }
}

/// Determines the slots of a source read forward whose key frames were lost, by the surrounding key frames.
///
/// A slot without a key frame of its own is no loss: key frames may be further apart than the slots.
/// Therefore, the longest distance between key frames without a loss shows where others would have been.
struct StoryboardGaps: Sendable {
  private let plan: StoryboardPlan
  /// The distance in seconds; nil before the second key frame.
  private var longestDistance: Double?
  private var last: MediaTime?
  /// The multiple of the longest distance above which a gap has lost a key frame.
  private static let lossRatio = 1.5

  init(_ plan: StoryboardPlan) { self.plan = plan }

  /// Returns the slots between two others whose key frames were lost.
  ///
  /// - Parameters:
  ///   - times: The times of packets marked as key frames since the last call, from the start of the
  ///     storyboard; at the end of the source, also that end.
  ///   - hasFailed: True if some of these packets could not be decoded.
  ///   - hasDamage: True if the container was damaged meanwhile, so packets may be missing.
  mutating func slots(
    of times: [MediaTime], between lastSlot: Int, and slot: Int, hasFailed: Bool, hasDamage: Bool
  ) -> [Int] {
    var lost: Set<Int> = []
    if hasFailed { lost.formUnion(times.compactMap { plan.slot(at: $0, after: lastSlot) }) }
    for time in times {
      if let last, time > last {
        // A packet that can't be decoded may have lost its mark as a key frame, too.
        if !hasDamage, !hasFailed {
          longestDistance = max(longestDistance ?? 0, (time - last).seconds)
        } else if let longestDistance, (time - last).seconds > longestDistance * Self.lossRatio {
          lost.formUnion(slots(from: last, to: time.seconds - longestDistance / 2, after: lastSlot))
        }
      }
      last = max(last ?? time, time)
    }
    return lost.filter { $0 > lastSlot && $0 < slot }.sorted()
  }

  /// Returns the slots whose key frames are missing because the source ends too early; none if its duration
  /// is unknown.
  ///
  /// - Parameter end: The end of the media that was read, from the start of the storyboard.
  func slots(after lastSlot: Int, behind end: MediaTime?) -> [Int] {
    guard let duration = plan.duration else { return [] }
    let lost = slots(from: last ?? .zero, to: Double(duration) / 1000, behind: end, after: lastSlot)
    return lost.filter { $0 > lastSlot }.sorted()
  }

  // MARK: - Private

  /// Returns the slots of the key frames that would be expected after one at `start`, before `end` in
  /// seconds.
  private func slots(
    from start: MediaTime, to end: Double, behind least: MediaTime? = nil, after lastSlot: Int
  ) -> Set<Int> {
    let step = max(longestDistance ?? 0, Double(plan.interval) / 1000)
    var slots: Set<Int> = []
    var time = start.seconds + step
    while time < end, let slot = plan.slot(at: MediaTime(seconds: time), after: lastSlot),
      slot < plan.slotCount ?? .max
    {
      if time >= least?.seconds ?? 0 { slots.insert(slot) }
      time += step
    }
    return slots
  }
}

/// Distributes the key frames of a plan to several threads, and returns their tiles in order to one.
///
/// The readers may be ahead of the consumer by a limited number of tiles.
final class StoryboardQueue: Sendable {
  /// The result of reading a key frame.
  enum Outcome: Sendable {
    case tile(Storyboard.Tile)
    case missing(Storyboard.Missing)
    /// There is no key frame, which is not an error.
    case nothing
  }

  private struct State {
    /// The number of key frames; nil until it is known.
    var jobCount: Int?
    var taken = 0
    var given = 0
    var outcomes: [Int: Outcome] = [:]
    var failure: (any Error)?
    var runningCount = 0
  }

  private let state = Locked(State())
  /// Counts the tiles that may still be started.
  private let room: any BlockingSemaphore
  private let news: any BlockingSemaphore

  init(runtime: any PlayerRuntime, limit: Int) {
    room = runtime.makeSemaphore()
    news = runtime.makeSemaphore()
    for _ in 0..<limit { room.signal() }
  }

  // MARK: Readers

  /// Sets the number of key frames, once it is known.
  func setCount(_ count: Int) {
    state.withLock { $0.jobCount = count }
    room.signal()
    news.signal()
  }

  /// Returns the next key frame to read; nil if there is none. Waits while the consumer is behind.
  func take() -> Int? {
    room.wait()
    let job = state.withLock { state -> Int? in
      guard state.failure == nil, state.jobCount.map({ state.taken < $0 }) ?? true else { return nil }
      state.taken += 1
      return state.taken - 1
    }
    // Other waiting threads end, too.
    if job == nil { room.signal() }
    return job
  }

  func put(_ outcome: Outcome, at job: Int) {
    state.withLock { $0.outcomes[job] = outcome }
    news.signal()
  }

  func fail(_ error: any Error) {
    state.withLock { $0.failure = $0.failure ?? error }
    room.signal()
    news.signal()
  }

  func beginThread() { state.withLock { $0.runningCount += 1 } }

  func endThread() {
    state.withLock { $0.runningCount -= 1 }
    news.signal()
  }

  // MARK: Consumer

  /// Returns the outcome of the next key frame in order; nil after the last one. Waits for it.
  func next() throws -> Outcome? {
    while true {
      let step = try state.withLock { state -> Outcome?? in
        if let failure = state.failure { throw failure }
        if let outcome = state.outcomes.removeValue(forKey: state.given) {
          state.given += 1
          return outcome
        }
        return state.jobCount.map { state.given >= $0 } ?? false ? .some(nil) : nil
      }
      if let step {
        if step != nil { room.signal() }
        return step
      }
      news.wait()
    }
  }

  /// Waits until all threads have ended.
  func finish() {
    while state.withLock({ $0.runningCount > 0 }) { news.wait() }
  }
}

/// Selects key frames to examine: evenly spread over those that begin in the first part of a source.
struct KeyFrameSpread {
  /// The number of key frames.
  let count: Int
  /// The length of the first part.
  static let length = MediaTime(value: 30, timescale: 1)

  /// Returns true if no position after this one is needed.
  func isEnough(_ place: KeyFramePlace, number: Int) -> Bool {
    number >= count && place.time >= Self.length
  }

  /// Returns the positions to examine. If no more than `count` begin within `length`, the first ones of all.
  func chosen(of places: [KeyFramePlace]) -> [KeyFramePlace] {
    let near = places.prefix { $0.time <= Self.length }
    guard near.count > count else { return Array(places.prefix(count)) }
    return (1...max(1, count)).map { near[$0 * near.count / count - 1] }
  }
}
