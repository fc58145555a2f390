public import ReelPlayback

extension SimulatedRuntime {
  /// Has players that are made with `configuration` live in this simulation: all that they do is done in it, and measured by
  /// its clock; local files are asked of their fetcher.
  public func apply(to configuration: inout PlayerConfiguration) {
    configuration.clock = self
    configuration.runtime = self
    configuration.loading.clock = SimulatedWallClock(self)
    configuration.loading.fetchesFiles = true
  }
}
