import ReelCore
import ReelFFmpeg
import ReelPool
import ReelLab
import ReelReading

/// The progress of `reel feed`, for the line on a terminal.
final class WalkProgress: Sendable {
  private struct State {
    var label = ""
    var walkCount = 0
    /// The duration of a walk by its own clock, and its swipes.
    var length = Duration.zero
    var swipeCount = 0
    /// The time that each walk has reached, and its swipes so far.
    var times: [Duration] = []
    var swipes: [Int] = []
    /// The number of items that are opened again after a walk; 0 during a walk.
    var checkCount = 0
    var began = ContinuousClock.now
  }

  private let state = Locked(State())

  /// Names a step before the walks, such as reading the feed.
  func prepare(_ label: String) { state.withLock { $0.label = label } }

  /// Begins the walks, in sequence or in parallel.
  func begin(_ labels: [String], plan: WalkPlan) {
    state.withLock { state in
      state.label = labels.count == 1 ? labels[0] : "\(labels.count) walks"
      state.walkCount = labels.count
      state.times = Array(repeating: .zero, count: labels.count)
      state.swipes = Array(repeating: 0, count: labels.count)
      state.swipeCount = plan.swipeCount
      state.length = plan.duration
      state.began = ContinuousClock.now
    }
  }

  func record(_ event: WalkEvent, of place: Int) {
    state.withLock { state in
      guard state.times.indices.contains(place) else { return }
      state.times[place] = max(state.times[place], event.time)
      if event.kind == .swipe { state.swipes[place] += 1 }
      state.checkCount = event.kind == .check ? event.count ?? 0 : 0
    }
  }

  var text: String {
    let now = state.withLock { $0 }
    guard now.walkCount > 0 else { return now.label }
    let time = now.times.reduce(.zero, +)
    let rest = now.length * now.walkCount - time
    let swipes = now.swipes.reduce(0, +)
    var text =
      "\(now.label): swipe \(swipes) of \(now.swipeCount * now.walkCount), \(DurationText.readable(time))"
    let speed = time / (ContinuousClock.now - now.began)
    if now.checkCount > 0 {
      text += ", opening \(now.checkCount.counted("item")) again"
    } else if speed > 0, rest > .zero {
      text += ", about \(Int((rest / .seconds(1) / speed).rounded(.up))) s left"
    }
    return text
  }
}

/// The first frames of the items that a walk has shown, for its page.
final class FirstFrames: Sendable {
  /// The size into which a frame is fitted.
  static let box = PixelSize(width: 120, height: 160)
  /// The maximum number of items with a frame.
  static let limit = 120

  private let feed: Feed
  private let images = Locked<[Int: RGBImage]>([:])

  init(_ feed: Feed) { self.feed = feed }

  /// The images by the index of their item.
  var all: [Int: RGBImage] { images.withLock { $0 } }

  /// Keeps a frame with its own aspect ratio, HDR as SDR. A frame that can't be converted is left out.
  func add(_ frame: VideoFrame, of item: FeedItem) {
    guard let index = feed.index(of: item.id), images.withLock({ $0.count < Self.limit && $0[index] == nil })
    else {
      return
    }
    let natural = frame.presentationSize
    let scale = min(
      Double(Self.box.width) / Double(max(natural.width, 1)),
      Double(Self.box.height) / Double(max(natural.height, 1)))
    let size = PixelSize(
      width: max(1, Int((Double(natural.width) * scale).rounded())),
      height: max(1, Int((Double(natural.height) * scale).rounded())))
    var image = RGBImage.empty
    do {
      try StillRenderer().convert(
        frame.decoded, geometry: frame.geometry(target: size, gravity: .resize),
        orientation: frame.orientation, into: &image)
    } catch { return }
    let converted = image
    images.withLock { $0[index] = converted }
  }
}
