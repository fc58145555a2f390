/// What was measured on one walk of a lab.
package struct LabResult: Sendable, Hashable, Codable {
  /// A figure of a walk; lower is better except for ``meanBitRate``.
  ///
  /// Times are in milliseconds, sizes in bytes, rates in bits per second, shares from 0 to 1.
  package enum Figure: String, Sendable, Hashable, Codable, CodingKeyRepresentable, CaseIterable {
    case firstFrameP50 = "first_frame_p50"
    case firstFrameP95 = "first_frame_p95"
    case firstFrameP99 = "first_frame_p99"
    case secondFrameP50 = "second_frame_p50"
    case secondFrameP95 = "second_frame_p95"
    case secondFrameP99 = "second_frame_p99"
    case secondFrameMean = "second_frame_mean"
    case secondFrameOver100ms = "second_frame_over_100ms"
    case secondFrameOver1s = "second_frame_over_1s"
    case rebufferingRatio = "rebuffering_ratio"
    case stallCount = "stall_count"
    case fetchedByteCount = "fetched_bytes"
    case wastedByteCount = "wasted_bytes"
    case meanBitRate = "mean_bit_rate"
    case rungSwitchCount = "rung_switches"
    case peakMemory = "peak_memory"
    case decodedFrameCount = "decoded_frames"
    case abandonedSwipeCount = "abandoned_swipes"
    case failedItemCount = "failed_items"
    /// The mean wait of a swipe for manifests, playlists and keys; this and the following parts of the wait for the first
    /// frame add up to its mean.
    case waitManifest = "wait_manifest"
    case waitInitialization = "wait_initialization"
    /// For the beginning of a segment: round trips, and connections that had to be opened.
    case waitAnswer = "wait_answer"
    /// For the bytes of segments.
    case waitTransfer = "wait_transfer"
    case waitDecode = "wait_decode"
    /// For other downloads, parsing and demuxing.
    case waitPreparing = "wait_preparing"
    /// From the first frame to the second.
    case waitSecondFrame = "wait_second_frame"
  }

  package var run: LabRun
  /// Only what the walk has: for instance no bit rate without a ladder.
  package var figures: [Figure: Double]
  /// Why the walk failed; it then has no figures.
  package var error: String?

  package init(run: LabRun, figures: [Figure: Double], error: String? = nil) {
    self.run = run
    self.figures = figures
    self.error = error
  }
}
