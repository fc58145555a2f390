/// For how long the viewer watches an item: the viewer's last swipes, and the item's retention as one more.
struct WatchForecast: Sendable {
  private static let step = 0.5
  private static let horizon = 60.0

  private let model: WatchModel
  /// How long the viewer watched other items, in seconds.
  private let watched: [Double]

  init(_ item: PoolSituation.Item, _ history: ViewingHistory) {
    model = WatchModel(item, history: ViewingHistory())
    watched = history.swipes.map(\.watchedDuration.inSeconds)
  }

  /// The probability that a viewer who has watched for `begun` seconds goes on for `seconds`.
  func probability(of seconds: Double, after begun: Double) -> Double {
    let all = weight(beyond: begun)
    return all > 0 ? weight(beyond: begun + seconds) / all : 0
  }

  /// The mean time for which such a viewer goes on, in seconds.
  func meanRest(after begun: Double) -> Double {
    stride(from: Self.step / 2, to: Self.horizon, by: Self.step).reduce(0) {
      $0 + probability(of: $1, after: begun) * Self.step
    }
  }

  private func weight(beyond seconds: Double) -> Double {
    model.survival(seconds) + Double(watched.count { $0 > seconds })
  }
}
