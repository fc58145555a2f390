public import ReelPlayback

extension SimulatedRuntime {
  /// Puts players made with `configuration` into this simulation: they run in it, and use its clock.
  ///
  /// They read local files through their fetcher, so that a modelled link applies to files too.
  public func apply(to configuration: inout PlayerConfiguration) {
    configuration.clock = self
    configuration.runtime = self
    configuration.loading.clock = SimulatedWallClock(self)
    configuration.loading.fetchesFiles = true
  }
}
