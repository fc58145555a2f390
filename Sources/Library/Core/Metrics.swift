package import Metrics

/// The metrics that Reel reports through swift-metrics. This file names them all; the guide lists them.
///
/// Handles are made once for each fetcher and player, and only if the program has bootstrapped `MetricsSystem` before.
/// Labels and dimensions have underscores, which every backend accepts.

extension MetricsSystem {
  fileprivate static var isBootstrapped: Bool { !(factory is NOOPMetricsHandler) }
}

/// The metrics of requests over HTTP and HTTPS. A request counts when it ends, once with its redirects and retries.
package struct RequestCounters: Sendable {
  private struct Handles {
    /// `reel_requests`, by `purpose` and `outcome`: `completed`, `failed` or `cancelled`.
    let completed, failed, cancelled: Counter
    /// `reel_request_retries`, by `purpose`: attempts that failed and were repeated.
    let retries: Counter
    /// `reel_request_bytes`, by `purpose`: bytes of bodies received, before decompression.
    let bytes: Counter
    /// `reel_request_first_byte`, by `purpose`: the time from the request to the first byte of its body.
    let firstByte: Timer

    init(_ purpose: FetchPurpose) {
      let dimension = ("purpose", purpose.rawValue)
      func requests(_ outcome: String) -> Counter {
        Counter(label: "reel_requests", dimensions: [dimension, ("outcome", outcome)])
      }
      completed = requests("completed")
      failed = requests("failed")
      cancelled = requests("cancelled")
      retries = Counter(label: "reel_request_retries", dimensions: [dimension])
      bytes = Counter(label: "reel_request_bytes", dimensions: [dimension])
      firstByte = Timer(label: "reel_request_first_byte", dimensions: [dimension])
    }
  }

  private let handles: [FetchPurpose: Handles]

  /// Nil if the program has not bootstrapped `MetricsSystem`.
  package init?() {
    guard MetricsSystem.isBootstrapped else { return nil }
    handles = Dictionary(uniqueKeysWithValues: FetchPurpose.allCases.map { ($0, Handles($0)) })
  }

  package func record(_ request: RequestMetrics) {
    guard let handles = handles[request.purpose] else { return }
    switch request.outcome {
    case .completed: handles.completed.increment()
    case .failed: handles.failed.increment()
    case .cancelled: handles.cancelled.increment()
    }
    if request.failedAttemptCount > 0 { handles.retries.increment(by: request.failedAttemptCount) }
    handles.bytes.increment(by: request.byteCount)
    if let time = request.timeToFirstByte { handles.firstByte.record(duration: time) }
  }
}

package struct PlayerCounters: Sendable {
  /// `reel_startup`: the time from the beginning of loading an item to its decoded first frame.
  package let startup: Timer
  /// `reel_startup_stage`, by `stage`: the time that a stage of it took.
  private let stages: [String: Timer]
  /// `reel_frames`, by `outcome`: `decoded`, `shown` or `dropped` because they were late.
  package let decodedFrames, shownFrames, droppedFrames: Counter
  /// `reel_stalls`: how often the loaded media ran out during playback.
  package let stalls: Counter
  /// `reel_stall_duration`: how long each stall lasted.
  package let stallDuration: Timer

  /// Nil if the program has not bootstrapped `MetricsSystem`.
  ///
  /// - Parameter stages: The names of the stages of a start.
  package init?(stages names: [String]) {
    guard MetricsSystem.isBootstrapped else { return nil }
    startup = Timer(label: "reel_startup")
    stages = Dictionary(
      uniqueKeysWithValues: names.map { name in
        (name, Timer(label: "reel_startup_stage", dimensions: [("stage", name)]))
      })
    func frames(_ outcome: String) -> Counter {
      Counter(label: "reel_frames", dimensions: [("outcome", outcome)])
    }
    decodedFrames = frames("decoded")
    shownFrames = frames("shown")
    droppedFrames = frames("dropped")
    stalls = Counter(label: "reel_stalls")
    stallDuration = Timer(label: "reel_stall_duration")
  }

  package func record(stage: String, _ duration: Duration) { stages[stage]?.record(duration: duration) }
}
