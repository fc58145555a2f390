/// The state that an adaptation decides by at a segment boundary.
package struct AdaptationState: Sendable, Hashable {
  /// The `RungCandidate.index` of the rung that is loaded; nil at the start.
  package var current: Int?
  /// The media that is loaded but not yet presented, in media time.
  package var buffered: Duration
  /// How much media the player tries to buffer, in media time.
  package var bufferTarget: Duration
  /// The duration of the segments; nil if unknown.
  package var segmentDuration: Duration?
  /// The playback rate, 1 for normal.
  package var rate: Double
  /// True while the presentation is stalled.
  package var isRebuffering: Bool
  /// The time by the player's clock.
  package var now: Duration
  /// In bits per second; nil for none.
  package var bandwidthCap: Int?
  /// In lines; nil for none.
  package var maximumHeight: Int?

  package init(
    current: Int?, buffered: Duration, bufferTarget: Duration, segmentDuration: Duration? = nil,
    rate: Double = 1,
    isRebuffering: Bool = false, now: Duration, bandwidthCap: Int? = nil, maximumHeight: Int? = nil
  ) {
    self.current = current
    self.buffered = buffered
    self.bufferTarget = bufferTarget
    self.segmentDuration = segmentDuration
    self.rate = rate
    self.isRebuffering = isRebuffering
    self.now = now
    self.bandwidthCap = bandwidthCap
    self.maximumHeight = maximumHeight
  }
}
