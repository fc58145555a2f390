import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback

/// A player that is operated at random, from a seed, and what has to hold of what it shows.
struct StressRun {
  private let clips: [StressClip]
  private var scene: StressScene
  private var random: SplitMix
  /// The clip on show; nil for none, or one of which nothing is known.
  private var clip: StressClip?
  /// From here on frames are of `clip`.
  private var itemMark = 0
  /// From here on the order rises, but for loops; nil where seeks are under way.
  private var orderMark: Int?
  private var loops = false
  /// Has been set to more than the media's own rate, so that many frames are dropped.
  private var hasBeenFast = false
  private var seeks: [Task<Bool?, Never>] = []
  private var outputs: [StressScene.Witness] = []
  private var fetchers: [FixtureFetcher] = []
  private var players: [WeakPlayer] = []

  private struct WeakPlayer {
    weak var player: Player?
  }

  init(seed: UInt64, clips: [StressClip]) throws {
    self.clips = clips
    random = SplitMix(seed: seed)
    scene = try StressScene()
    fetchers.append(scene.fetcher)
    players.append(WeakPlayer(player: scene.player))
  }

  mutating func perform(_ step: Int) async throws {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<10: scene.player.play()
    case 10..<16: scene.player.pause()
    case 16..<26: setRate()
    case 26..<50: try await seek()
    case 50..<58: seekOnTheSide()
    case 58..<74: try replace()
    case 74..<77: try replaceWithBad()
    case 77..<79: try await stop()
    case 79..<83: scene.player.setMuted(.random(using: &random))
    case 83..<85: scene.player.setVolume(.random(in: 0...2, using: &random))
    case 85..<90: try attachOrDetach()
    case 90..<95: setLoops(.random(using: &random))
    case 95..<96: scene.player.automaticallyWaitsToMinimizeStalling.toggle()
    default: try letGo()
    }
    try await pause()
    check(step)
  }

  /// Ends everything, and checks that it has ended.
  mutating func finish() async throws {
    let player = scene.player
    try await scene.bounded("the end of the player") { await player.stopAndWait() }
    check(-1)
    let seeks = seeks
    try await scene.bounded("the end of all seeks") { for seek in seeks { _ = await seek.value } }
    #expect(scene.witness.isFinished)
    #expect(scene.witness.lateCount == 0)
    #expect(outputs.allSatisfy { $0.lateCount == 0 })
    let fetchers = fetchers
    try await scene.until("the end of all requests") { fetchers.allSatisfy { $0.heldCount == 0 } }
  }

  // MARK: - Private

  private mutating func seek() async throws {
    guard let item = scene.player.currentItem.value, let clip else { return }
    // One that begins late would end this one.
    let others = seeks
    seeks = []
    try await scene.bounded("the end of other seeks") { for seek in others { _ = await seek.value } }
    let last = clip.expected[clip.expected.count - 1].time.seconds
    let time =
      switch Int.random(in: 0..<8, using: &random) {
      case 0: MediaTime.zero
      case 1: MediaTime(seconds: last + .random(in: 0...100, using: &random))
      case 2: MediaTime(seconds: -1)
      default: MediaTime(seconds: .random(in: 0...last, using: &random))
      }
    let mark = scene.witness.count
    let player = scene.player
    let outcome = try await scene.bounded("a seek to \(time.seconds) in \(item.source.name)") {
      try await player.seek(to: time)
    }
    #expect(outcome, "nothing else was asked for")
    let wanted = clip.index(at: time)
    let shown = scene.witness.all[mark...]
    // The last one: the place may have been on show before.
    guard let index = shown.lastIndex(where: { clip.index(of: $0) == wanted }) else {
      Issue.record(
        "\(clip.path) at \(time.seconds): frame \(wanted) wanted, shown \(clip.indices(of: shown.suffix(20)))\n\(scene.state)"
      )
      return
    }
    orderMark = index
  }

  private mutating func seekOnTheSide() {
    let player = scene.player
    let time = MediaTime(seconds: .random(in: -1...12, using: &random))
    orderMark = nil
    seeks.append(Task { [weak player] in try? await player?.seek(to: time) })
  }

  private mutating func replace() throws {
    let next = clips.randomElement(using: &random)
    let isLocal = Bool.random(using: &random)
    let item = try next.map { PlayerItem(try $0.source(isLocal: isLocal)) }
    item?.preferredForwardBufferDuration = .milliseconds(
      [300, 1000, 3000, 30000].randomElement(using: &random) ?? 1000)
    let start =
      Int.random(in: 0..<4, using: &random) == 0
      ? MediaTime(seconds: .random(in: 0...2, using: &random)) : .zero
    scene.player.replaceCurrentItem(with: item, startingAt: start)
    itemMark = scene.witness.count
    clip = next
    orderMark = itemMark
  }

  private mutating func replaceWithBad() throws {
    guard let path = StressClip.bad.randomElement(using: &random) else { return }
    scene.player.replaceCurrentItem(
      with: PlayerItem(try MediaSource(argument: "http://fixtures.test/\(path)")))
    clip = nil
    orderMark = nil
  }

  private mutating func stop() async throws {
    let player = scene.player
    if Bool.random(using: &random) {
      try await scene.bounded("the end of the player") { await player.stopAndWait() }
    } else {
      player.stop()
    }
    check(-1)
    let count = scene.witness.count
    await Task.yield()
    #expect(scene.witness.count == count)
    #expect(scene.witness.isFinished)
    try begin()
  }

  /// Lets the player go as it is.
  private mutating func letGo() throws {
    outputs.append(scene.witness)
    try begin()
  }

  private mutating func begin() throws {
    scene = try StressScene()
    hasBeenFast = false
    scene.player.actionAtItemEnd = loops ? .loop : .pause
    fetchers.append(scene.fetcher)
    players.append(WeakPlayer(player: scene.player))
    clip = nil
    itemMark = 0
    orderMark = nil
    try replace()
  }

  private mutating func attachOrDetach() throws {
    if outputs.count < 3 || Bool.random(using: &random) {
      let output = StressScene.Witness()
      try scene.player.attach(output)
      outputs.append(output)
    } else if let output = outputs.randomElement(using: &random) {
      try scene.player.detach(output)
    }
  }

  private mutating func setRate() {
    let rate = [0.25, 1, 2, 8, .infinity, 0].randomElement(using: &random) ?? 1
    if rate > 1, rate < .infinity { hasBeenFast = true }
    scene.player.setRate(rate)
  }

  private mutating func setLoops(_ loops: Bool) {
    self.loops = loops
    scene.player.actionAtItemEnd = loops ? .loop : .pause
  }

  /// Lets the player do something: as long as it takes to show so many frames, but not long.
  private mutating func pause() async throws {
    let wanted = scene.witness.count + Int.random(in: 0..<6, using: &random)
    let limit = ContinuousClock.now + .milliseconds(Int.random(in: 0..<12, using: &random))
    while scene.witness.count < wanted, ContinuousClock.now < limit {
      try await Task.sleep(for: .microseconds(500))
    }
  }

  private func check(_ step: Int) {
    guard let clip else { return }
    let shown = scene.witness.all
    for frame in shown[itemMark...] where clip.index(of: frame) == nil {
      Issue.record(
        "step \(step): a frame of another item than \(clip.path), at \(frame.time)\n\(scene.state)")
      return
    }
    guard let orderMark else { return }
    // Late frames are dropped for at most a quarter of a second, and a little more where the machine is slow.
    let leeway = hasBeenFast ? 100 : 16
    let indices = shown[orderMark...].compactMap { clip.index(of: $0) }
    for (left, right) in zip(indices, indices.dropFirst()) where right <= left {
      // A new time through the item, by a loop or by playing on after the end; frames may be dropped there.
      if right < leeway, left >= clip.expected.count - leeway { continue }
      Issue.record(
        "step \(step): \(clip.path) shows \(right) after \(left), of \(indices.suffix(40))\n\(scene.state)")
      return
    }
  }
}
