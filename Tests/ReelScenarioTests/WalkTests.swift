import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("A random walk over a player's calls", .hangLimit)
struct WalkTests {
  @Test(
    "Each frame is shown once, in order, of the current item; and in the end all is freed", arguments: 1...5)
  func walk(seed: UInt64) async throws {
    var walk = try Walk(seed: seed)
    for step in 0..<2000 {
      await walk.act()
      guard walk.check(step) else { break }
    }
    walk.stage.network.heal()
    try await walk.stage.close()
  }
}

/// A player that is operated at random, from a seed, in simulated time.
private struct Walk {
  let stage: Stage
  private let clips: [StressClip]
  private var random: SplitMix
  /// What is loaded; nil for nothing, or for a damaged item.
  private var clip: StressClip?
  /// The frames of a damaged item are not known.
  private var isDamaged = false
  /// The frames from here on are of `clip`.
  private var start = 0
  /// The frames up to here have been checked.
  private var checked = 0
  private var seeks: [Seek] = []
  private var outputs: [Screen] = []

  init(seed: UInt64) throws {
    random = SplitMix(seed: seed)
    clips = try StressClip.all()
    stage = try Stage(network: Network())
    try load(clips[0].path)
    clip = clips[0]
  }

  /// Makes a call, and lets a little time pass.
  mutating func act() async {
    let player = stage.player
    do {
      switch random.next(below: 100) {
      case 0..<16: player.play()
      case 16..<22: player.pause()
      case 22..<28: setRate([0.25, 1, 2, 8, .infinity, 0][random.next(below: 6)])
      case 28..<50: seek()
      case 50..<60: try loadAny()
      case 60..<62:
        try load(StressClip.bad[random.next(below: StressClip.bad.count)])
        isDamaged = true
      case 62..<63: player.replaceCurrentItem(with: nil)
      case 63..<65:
        player.replaceCurrentItem(with: player.currentItem.value)
        start = stage.screen.count
      case 65..<69: player.setMuted(random.next(below: 2) == 0)
      case 69..<73: player.setVolume(Float(random.next(below: 3)))
      case 73..<79: setAction([.pause, .loop, .none][random.next(below: 3)])
      case 79..<82: player.automaticallyWaitsToMinimizeStalling.toggle()
      case 82..<86:
        player.preloadTarget =
          [nil, nil, .buffered, .current, PreloadTarget.notLoaded][random.next(below: 5)]
      case 86..<90: setForwardBuffer()
      case 90..<92: stage.network.lose()
      case 92..<96: stage.network.heal()
      default: try attachOrDetach()
      }
    } catch { Issue.record(error) }
    if player.currentItem.value == nil { clip = nil }
    let time = [0, 0, 1, 20, 100, 400][random.next(below: 6)]
    if time == 0 {
      await stage.run(untilStep: stage.simulation.stepCount + random.next(below: 20))
    } else {
      await stage.run(for: .milliseconds(time))
    }
  }

  /// Returns false if something was wrong.
  mutating func check(_ step: Int) -> Bool {
    let shown = stage.shown
    defer { checked = shown.count }
    for place in isDamaged ? 0..<0 : max(start, checked)..<max(shown.count, start, checked) {
      guard let clip, let index = clip.index(of: shown[place]) else {
        Issue.record("step \(step): a frame of an item that was left, at \(shown[place].time)")
        return false
      }
      guard place > start, let before = clip.index(of: shown[place - 1]), index <= before else { continue }
      // The first frames of an iteration that comes late may be dropped.
      let isNewRound = index < 8 && before == clip.expected.count - 1
      guard !isNewRound, !seeks.contains(where: { $0.mark == place }) else { continue }
      Issue.record("step \(step): \(clip.path) shows \(index) after \(before), \(stage.events.suffix(5))")
      return false
    }
    let statistics = stage.player.statistics
    let figures = stage.account.figures
    #expect(statistics.onShowByteCount <= figures.frameByteCount, "step \(step)")
    #expect(statistics.unshownByteCount <= statistics.bufferByteCount, "step \(step)")
    #expect(statistics.bufferByteCount <= statistics.bufferHighWaterByteCount, "step \(step)")
    seeks.removeAll { $0.isOver && $0.mark < shown.count }
    return true
  }

  // MARK: - Private

  private mutating func load(_ path: String) throws {
    let item = try stage.load(path)
    item.preferredForwardBufferDuration = .milliseconds([300, 1000, 3000][random.next(below: 3)])
    (clip, isDamaged) = (nil, false)
    start = stage.screen.count
  }

  private mutating func loadAny() throws {
    let next = clips[random.next(below: clips.count)]
    try load(next.path)
    clip = next
  }

  /// Sets the rate. A loop without a clock would never end, because decoding takes no simulated time.
  private func setRate(_ rate: Double) {
    if rate == .infinity { stage.player.actionAtItemEnd = .pause }
    stage.player.setRate(rate)
  }

  private func setAction(_ action: Player.ActionAtItemEnd) {
    if action == .loop { stage.player.setRate(1) }
    stage.player.actionAtItemEnd = action
  }

  private mutating func seek() {
    guard let clip else { return }
    let last = clip.expected[clip.expected.count - 1].time.seconds
    // Not far beyond the end: there the next iteration of a loop comes late, and may lose most of its frames.
    let time = [-1, 0, last, last + 0.2][random.next(below: 4)]
    let place = random.next(below: 3) == 0 ? time : last * Double(random.next(below: 1000)) / 1000
    seeks.append(stage.seek(to: MediaTime(seconds: place)))
  }

  private mutating func setForwardBuffer() {
    stage.player.currentItem.value?.preferredForwardBufferDuration =
      .milliseconds([0, 100, 1000, 30_000][random.next(below: 4)])
  }

  private mutating func attachOrDetach() throws {
    if let output = outputs.popLast() {
      try stage.player.detach(output)
      #expect(output.isFinished && output.lateCount == 0)
    } else {
      let output = Screen(clock: stage.simulation)
      try stage.player.attach(output)
      outputs.append(output)
    }
  }
}
