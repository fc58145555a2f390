package import ReelCore
package import ReelPlayback

/// What the slots of a pool did during a walk, for drawing it. All times are since the walk began.
package struct WalkTimeline: Sendable {
  /// How much a timeline keeps. What comes later is counted in ``omittedCount``.
  package struct Limits: Sendable, Hashable {
    package var stayCount: Int
    package var requestCount: Int
    package var stallCount: Int
    package var binCount: Int

    /// Enough for a page: 4,000 stays, 6,000 requests, 2,000 stalls, 800 bins.
    package static let page = Limits(stayCount: 4_000, requestCount: 6_000, stallCount: 2_000, binCount: 800)
    /// Enough for a trace file: 100,000 stays, 300,000 requests, 100,000 stalls, 20,000 bins.
    package static let trace = Limits(
      stayCount: 100_000, requestCount: 300_000, stallCount: 100_000, binCount: 20_000)

    package init(stayCount: Int, requestCount: Int, stallCount: Int, binCount: Int) {
      self.stayCount = stayCount
      self.requestCount = requestCount
      self.stallCount = stallCount
      self.binCount = binCount
    }
  }

  /// A stage that an item reached.
  package struct Reached: Sendable, Hashable {
    package let stage: PreloadStage
    package let time: Duration
  }

  /// The time that an item has a slot.
  package struct Stay: Sendable, Hashable {
    package let slot: Int
    package let itemIndex: Int
    package let from: Duration
    package var to: Duration
    package var stages: [Reached] = []
    package var failedAt: Duration?
  }

  /// A request, from the moment at which it was made.
  package struct Request: Sendable, Hashable {
    package let number: Int
    /// `nil` for a request that belongs to no slot, such as that of a poster.
    package let slot: Int?
    package let itemIndex: Int?
    package let purpose: FetchPurpose
    package let url: String
    package let from: Duration
    /// When the head of the answer was there.
    package var answeredAt: Duration?
    package var to: Duration
    package var byteCount: Int64 = 0
    package var failure: String?
  }

  /// A time in which an item had to wait for media.
  package struct Stall: Sendable, Hashable {
    package let itemIndex: Int
    package let from: Duration
    package var to: Duration
  }

  /// The figures of each slot within a span of time.
  package struct Bin: Sendable, Hashable {
    /// The most memory within the span, by slot; of a span without a sample, that of the last sample before.
    package var memory: [Int] = []
    /// The bytes that were read, by slot.
    package var byteCounts: [Int] = []
    /// The frames that were decoded, by slot.
    package var frameCounts: [Int] = []

    package init() {}
  }

  package var duration: Duration = .zero
  package var slotCount = 0
  package var stays: [Stay] = []
  package var requests: [Request] = []
  package var stalls: [Stall] = []
  package var bins: [Bin] = []
  /// The length of the span of each bin.
  package var binWidth: Duration = .milliseconds(50)
  /// The number of stays, requests and stalls beyond the limits.
  package var omittedCount = 0

  package init() {}
}
