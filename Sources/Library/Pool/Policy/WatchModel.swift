internal import Foundation

/// The share of viewers who still watch an item after a time, which stands for the probability that this viewer does.
struct WatchModel: Sendable {
  /// The assumed mean watch time in seconds, for items without a retention curve, which viewers leave at a constant rate.
  private static let priorMean = 10.0

  /// The shares by seconds; nil for an exponential curve.
  private let curve: [Double]?
  private let duration: Double?

  init(_ item: PoolSituation.Item) {
    duration = item.duration.map(\.inSeconds)
    guard let retention = item.retention, let first = retention.first, first > 0 else {
      curve = nil
      return
    }
    // Among those who have begun; a rise is treated as constant.
    var least = 1.0
    curve = retention.map { share in
      least = min(least, share.isFinite ? max(share / first, 0) : least)
      return least
    }
  }

  /// Returns the share that watches for longer than `seconds`, from 1 down to 0. Between two seconds, the
  /// curve is linear.
  func survival(_ seconds: Double) -> Double {
    guard seconds > 0 else { return 1 }
    if let duration, seconds >= duration { return 0 }
    guard let curve else { return exp(-seconds / Self.priorMean) }
    let index = Int(min(seconds, Double(curve.count)))
    guard index + 1 < curve.count else { return index < curve.count && duration != nil ? curve[index] : 0 }
    let share = seconds - Double(index)
    return curve[index] * (1 - share) + curve[index + 1] * share
  }
}

extension Duration {
  /// In seconds.
  package var inSeconds: Double { self / .seconds(1) }
}

/// A forecast of how long the viewer watches an item: from the viewer's last swipes, and the item's retention
/// as one more.
struct WatchForecast: Sendable {
  private static let step = 0.5
  private static let horizon = 60.0

  private let model: WatchModel
  /// The viewer's watch times of other items, in seconds.
  private let watched: [Double]

  init(_ item: PoolSituation.Item, _ history: ViewingHistory) {
    model = WatchModel(item)
    watched = history.swipes.map(\.watchedDuration.inSeconds)
  }

  /// Returns the probability that a viewer who has watched for `begun` seconds continues for `seconds`.
  func probability(of seconds: Double, after begun: Double) -> Double {
    let all = weight(beyond: begun)
    return all > 0 ? weight(beyond: begun + seconds) / all : 0
  }

  /// Returns the mean time for which such a viewer continues, in seconds.
  func meanRest(after begun: Double) -> Double {
    stride(from: Self.step / 2, to: Self.horizon, by: Self.step).reduce(0) {
      $0 + probability(of: $1, after: begun) * Self.step
    }
  }

  private func weight(beyond seconds: Double) -> Double {
    model.survival(seconds) + Double(watched.count { $0 > seconds })
  }
}
