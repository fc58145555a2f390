/// A measurement of one transfer, or of a part of one.
///
/// Transfers that run in parallel measure only their share of the link, so the estimate is only good if each
/// sample had the link to itself.
package struct TransferSample: Sendable, Hashable {
  /// The bytes that were transferred.
  package var byteCount: Int64
  /// From the request to the last byte, without pauses made by the reader itself.
  package var duration: Duration
  /// From the request to the first byte, a part of `duration`; nil if it was not measured.
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
