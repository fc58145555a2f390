internal import ReelCore

/// The slots of a storyboard, and the key frames that are read for them.
struct StoryboardPlan: Sendable, Hashable {
  /// A key frame to read.
  struct Job: Sendable, Hashable {
    let slot: Int
    let place: KeyFramePlace
  }

  /// A rest of the duration that is at most one in so many parts of a slot belongs to the slot before it.
  private static let remainderShare = 10
  /// In seconds. A longer one is as wrong.
  private static let longestDuration = 1e12

  /// In milliseconds.
  let interval: Int
  /// In milliseconds; nil if unknown.
  let duration: Int?
  /// Nil if the duration is unknown.
  let slotCount: Int?
  /// A number of stills was asked for.
  let isCounted: Bool
  /// In order, no key frame twice; empty if the places of key frames are not known.
  private(set) var jobs: [Job] = []

  /// - Parameters:
  ///   - places: In order of time; nil if they are not known.
  ///   - start: The time at which the first slot begins.
  ///   - duration: In seconds, from `start`.
  /// - Throws: `ReelError.unsupported` if there would be too many slots, or if a count is asked for and the duration is
  ///   unknown.
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
        advice: least < Storyboard.intervalLimit
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

  /// The slot of a key frame that is read in order, by its time from the start of the storyboard. The next key frame is
  /// not known then, so each slot takes the first one that is not much before its beginning.
  func slot(at time: MediaTime) -> Int {
    max(0, Int((time.seconds * 1000 / Double(interval) + 1 / Double(Self.remainderShare)).rounded(.down)))
  }

  /// Like `slot(at:)`, but nil for a frame without a slot.
  ///
  /// A frame just before the end belongs to the last slot, if that has no other. If the duration is stated too short, there
  /// are further slots, unless a number of stills was asked for.
  func slot(at time: MediaTime, after lastSlot: Int) -> Int? {
    let slot = slot(at: time)
    guard let slotCount, let duration, slot >= slotCount else {
      return slot < Storyboard.slotLimit ? slot : nil
    }
    if time.seconds * 1000 < Double(duration) { return lastSlot < slotCount - 1 ? slotCount - 1 : nil }
    return isCounted || slot >= Storyboard.slotLimit ? nil : slot
  }

  /// The first time, from the start of the storyboard, that belongs to a slot.
  func firstTime(of slot: Int) -> MediaTime {
    MediaTime(seconds: (Double(slot) - 1 / Double(Self.remainderShare)) * Double(interval) / 1000)
  }
}
