package import ReelCore
internal import ReelPlayback
package import ReelPool
package import ReelSimulation

/// The result of a walk: a record of every swipe, and the costs of the walk.
///
/// In JSON, keys are in snake_case; times end with `_ms` and are precise to the microsecond; sizes end with `_bytes`.
package struct WalkReport: Sendable, Hashable {
  package struct FailedItem: Sendable, Hashable, Codable {
    /// The item's index in the feed.
    package var index: Int
    /// The description of the item's identity.
    package var id: String
    /// The description of the error.
    package var error: String

    package init(index: Int, id: String, error: String) {
      self.index = index
      self.id = id
      self.error = error
    }

    private enum CodingKeys: String, CodingKey {
      case index = "item_index"
      case id = "item_id"
      case error
    }
  }

  /// Bytes from a store in front of the network, those from the network, and those in the store at the end.
  package struct Traffic: Sendable, Hashable {
    package var diskByteCount: Int64 = 0
    package var networkByteCount: Int64 = 0
    package var storedByteCount: Int64 = 0
  }

  /// A label that distinguishes the report from others that it is compared with.
  package var label: String
  package var settings: WalkSettings
  /// The records of all swipes in order; the first one is the start of the walk.
  package var swipes: [SwipeRecord] = []
  /// The duration of the walk on the pool's clock.
  package var duration: Duration = .zero
  /// The bytes fetched for all items, including items that were never shown.
  package var fetchedByteCount: Int64 = 0
  /// The part of `fetchedByteCount` that was never shown: all bytes of items that were never on the surface,
  /// and of the others the bytes left when they were evicted.
  package var unshownByteCount: Int64 = 0
  /// The frames decoded for all items.
  package var decodedFrameCount = 0
  /// The part of `decodedFrameCount` that was never shown.
  package var unshownFrameCount = 0
  /// The peak memory of each slot, in bytes; empty if it was not measured.
  package var slotHighWaterByteCounts: [Int] = []
  /// The peak memory of all slots together, in bytes; `nil` if it was not measured.
  package var poolHighWaterByteCount: Int?
  /// The items that failed, each once, in the order of their first failure.
  package var failedItems: [FailedItem] = []
  /// True if the walk was cancelled. The report then covers the time until that moment.
  package var isInterrupted = false
  /// Where the bytes of the walk came from.
  package var traffic = Traffic()
  /// The visits, of which this report is the first; nil for a walk with one and no simulated cache.
  package var visits: ReturnVisits?
  /// The outcomes of the assertions that were evaluated for the report, if any.
  package var assertions: [WalkAssertion.Outcome] = []

  package init(label: String, settings: WalkSettings) {
    self.label = label
    self.settings = settings
  }

  /// Adds items that failed. Each swipe to them that saw no frame gets the error, also as its cause.
  mutating func recordFailures(_ items: [FailedItem]) {
    failedItems = (failedItems + items).sorted { $0.index < $1.index }
    for item in items {
      for place in swipes.indices where swipes[place].itemIndex == item.index {
        swipes[place].recordFailure(item.error)
      }
    }
  }

  /// The figures of the whole walk, computed from the records.
  package var totals: WalkTotals { WalkTotals(self) }
}

extension WalkReport: Encodable {
  /// Writes the swipes and, as `totals`, the figures of the whole walk.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "label": label, "settings": settings, "swipes": swipes, "totals": totals, "duration_ms": duration,
      "slot_peak_bytes": slotHighWaterByteCounts, "failed_items": failedItems,
      "visits": visits?.visits, "cache": visits?.cache,
      "interrupted": isInterrupted ? true : nil, "assertions": assertions.isEmpty ? nil : assertions,
    ])
  }

  /// Returns the report as one line of JSON, with keys in alphabetical order. Equal reports give equal bytes.
  ///
  /// - Throws: `ReelError` of kind `internalFault` if encoding fails.
  package func json() throws(ReelError) -> String { try JSONLine.string(self, of: "report") }
}

/// The settings of a walk, complete enough to repeat it.
package struct WalkSettings: Sendable, Hashable {
  /// The name or file of the feed.
  package var feed: String
  /// The number of items in the feed.
  package var itemCount: Int
  /// The number of slots in the pool.
  package var slotCount: Int
  /// The preload policy, such as `adjacent`.
  package var policy: String
  /// The modelled link, such as `10Mbit/50ms`; `nil` for the real network.
  package var link: String?
  /// The modelled link; `nil` for the real network, and in reports that do not state it.
  package var linkSpec: LinkSpec?
  /// The time from the end of a drag to the settle.
  package var settle = Duration.zero
  /// The dwell times, such as `exp:5s`.
  package var dwell: String
  /// The shares of swipes back and bursts; `nil` if a trace determines the swipes, and in reports that do not state them.
  package var shares: SwipeShares?
  package var seed: UInt64
  /// True if the walk ran in a simulation. Damage and resident memory are then not measured.
  package var isVirtual: Bool
  /// The simulated time that decoding a frame cost; `nil` for the real time.
  package var decodeCost: Duration?
  /// The rung of each item's first segment.
  package var firstRung = FirstRung.adapted
  /// The device whose limits and costs applied: a name or a file; `nil` for none.
  package var device: String?
  /// The modelled player, with a remark if it was not measured; `nil` for Reel's pool.
  package var player: String?
  /// The visits and their cache; nil for one visit without a simulated cache.
  package var visits: VisitPlan?

  package init(
    feed: String, itemCount: Int, slotCount: Int, policy: String, link: String? = nil, dwell: String,
    shares: SwipeShares? = nil, seed: UInt64, isVirtual: Bool = false, decodeCost: Duration? = nil
  ) {
    self.feed = feed
    self.itemCount = itemCount
    self.slotCount = slotCount
    self.policy = policy
    self.link = link
    self.dwell = dwell
    self.shares = shares
    self.seed = seed
    self.isVirtual = isVirtual
    self.decodeCost = decodeCost
  }
}

extension WalkSettings: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "feed": feed, "items": itemCount, "slots": slotCount, "policy": policy, "link": link,
      "link_models": linkSpec?.features.optionNames, "settle_ms": settle, "dwell": dwell,
      "swipe_shares": shares, "first_rung": firstRung == .adapted ? nil : firstRung.rawValue, "seed": seed,
      "virtual": isVirtual, "decode_cost_ms": decodeCost, "device": device, "player": player,
      "simulated_cache_bytes": visits?.byteLimit, "visits": visits?.count, "between_ms": visits?.between,
      "not_measured": player != nil
        ? ["damage", "frames", "memory"] : isVirtual ? ["damage", "resident_memory"] : nil,
    ])
  }
}

extension PreloadStage {
  package var reportName: String { text.replacing(" ", with: "_") }
}
