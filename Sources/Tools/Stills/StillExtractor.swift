package import ReelCore
package import ReelReading

/// Makes posters and storyboards of sources.
package struct StillExtractor: Sendable {
  let opener: TrackOpener
  var size: SizeLimit?
  let stillLimit: Duration?
  let clock: any MonotonicClock

  /// - Parameters:
  ///   - opener: Opens the sources.
  ///   - size: The size of the stills, for the choice of a rung; nil for a poster to go by the bit rate, and for tiles of
  ///     320 pixels in width.
  ///   - stillLimit: The maximum time to wait for the index of a storyboard, for each of its tiles, and for each
  ///     candidate of a poster after the first frame; nil for no limit.
  ///   - clock: Measures that time.
  package init(
    _ opener: TrackOpener, size: SizeLimit?, stillLimit: Duration? = nil,
    clock: any MonotonicClock = SystemMonotonicClock()
  ) {
    self.opener = opener
    self.size = size
    self.stillLimit = stillLimit
    self.clock = clock
  }
}
