/// What one transfer, or a part of one, tells about the link.
///
/// Transfers that run beside each other measure only their share of the link: an estimate is as good as the samples
/// are alone on it.
package struct TransferSample: Sendable, Hashable {
  /// The bytes that came over the wire.
  package var byteCount: Int64
  /// From the request to the last byte, without the pauses that the reader made of its own will.
  package var duration: Duration
  /// From the request to the first byte, a part of `duration`; nil where it was not measured.
  package var latency: Duration?
  /// By the clock of the player.
  package var endedAt: Duration

  package init(byteCount: Int64, duration: Duration, latency: Duration? = nil, endedAt: Duration) {
    self.byteCount = byteCount
    self.duration = duration
    self.latency = latency
    self.endedAt = endedAt
  }
}
