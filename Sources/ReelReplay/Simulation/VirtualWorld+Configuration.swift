public import ReelPlayback

extension VirtualWorld {
  /// Has players that are made with `configuration` live in this world: all that they do is done in it, and measured by
  /// its clock; local files are asked of their fetcher.
  public func apply(to configuration: inout PlayerConfiguration) {
    configuration.clock = self
    configuration.execution = self
    configuration.loading.clock = VirtualWallClock(self)
    configuration.loading.fetchesFiles = true
  }
}
