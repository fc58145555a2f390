import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelReading
import ReelTestSupport
import Testing

@Suite("Outputs", .hangLimit)
struct OutputTests {
  @Test("An external output is refused, or let go, where it is not allowed")
  func external() async throws {
    let stage = try await Moment.plays.stage()
    let output = Screen(clock: stage.simulation, isExternal: true)
    stage.player.allowsExternalPlayback = false
    #expect(throws: ReelError.self) { try stage.player.attach(output) }
    #expect(output.count == 0 && !output.isFinished)
    stage.player.allowsExternalPlayback = true
    try stage.player.attach(output)
    // The frame on show.
    #expect(output.all == stage.shown.suffix(1))
    await stage.run(for: .milliseconds(200))
    stage.player.allowsExternalPlayback = false
    #expect(output.isFinished)
    let count = output.count
    try await stage.playsOut()
    #expect(output.count == count && output.lateCount == 0)
    #expect(stage.eventNames.contains("outputFailed"))
    try await stage.close()
  }

  enum Act: CaseIterable {
    case stop
    case detach
    case replace
    case attach
    case seek
  }

  @Test("An output may use the player that shows to it", arguments: Act.allCases)
  func usesPlayer(act: Act) async throws {
    let stage = try Stage("media/h264-gops.mp4")
    let other = PlayerItem(stage.item.source)
    let count = Locked(0)
    let itself = Locked<CallbackOutput?>(nil)
    let output = CallbackOutput { [weak player = stage.player, simulation = stage.simulation] _ in
      let number = count.withLock { count in
        count += 1
        return count
      }
      guard number == 5, let player else { return }
      switch act {
      case .stop: player.stop()
      case .detach: if let output = itself.withLock({ $0 }) { try player.detach(output) }
      case .replace: player.replaceCurrentItem(with: other)
      case .attach: try player.attach(NullOutput())
      case .seek:
        player.pause()
        Task(executorPreference: simulation) { [weak player] in try await player?.seek(to: .zero) }
      }
    }
    itself.withLock { $0 = output }
    try stage.player.attach(output)
    stage.player.setRate(.infinity)
    try await stage.run("five frames") { count.withLock { $0 } >= 5 }
    await stage.run(for: .seconds(1))
    if act == .stop || act == .detach { #expect(count.withLock { $0 } == 5) }
    itself.withLock { $0 = nil }
    try await stage.close()
  }

  /// How a frame lies in a square of 100, by the clip's size, its rotation and its pixels' shape.
  static let places: [(path: String, gravity: VideoGravity, upright: PixelSize)] = [
    ("media/rotate-90.mp4", .resizeAspect, PixelSize(width: 96, height: 160)),
    ("media/rotate-180.mp4", .resizeAspectFill, PixelSize(width: 160, height: 96)),
    ("media/rotate-270.mp4", .resize, PixelSize(width: 96, height: 160)),
    ("media/portrait-90x160.mp4", .resizeAspect, PixelSize(width: 90, height: 160)),
  ]

  @Test("A frame is upright, and the item tells its size", arguments: places.indices)
  func rotation(_ number: Int) async throws {
    let place = Self.places[number]
    let stage = try Stage(place.path)
    let sizes = Locked<[PixelSize]>([])
    let targets = Locked<[PixelSize]>([])
    try stage.player.attach(
      CallbackOutput { frame in
        let upright = frame.presentationSize
        let square = PixelSize(width: 100, height: 100)
        let image = try FrameConverter().convert(frame, target: square, gravity: place.gravity)
        sizes.withLock { $0.append(upright) }
        targets.withLock { $0.append(image.size) }
      })
    stage.player.setRate(.infinity)
    try await stage.playsOut()
    #expect(Set(sizes.withLock { $0 }) == [place.upright])
    #expect(Set(targets.withLock { $0 }) == [PixelSize(width: 100, height: 100)])
    #expect(stage.item.presentationSize.value == place.upright)
    try await stage.close()
  }
}
