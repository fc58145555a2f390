package import ReelLab
import ReelSimulation

extension LabResult {
  /// A result over one feed, one dwell time and one device, unless others are named.
  package static func sample(
    _ policy: String, slots: Int = 3, link: String = "a", group: String = "g", seed: UInt64 = 1,
    feed: String = "feed.json", dwell: String = "retention", device: String = "mid",
    _ figures: [String: Double]
  ) -> LabResult {
    LabResult(
      run: LabRun(
        feed: feed, link: link, linkGroup: group, dwell: dwell, device: device, slotCount: slots,
        policy: policy, seed: seed),
      figures: figures)
  }

  /// Results of a made-up lab: each policy is slower than the one before it, by some noise and more on some links.
  package static func lab(
    policies: [String] = ["adjacent", "media3", "adaptive"], slots: [Int] = [3], groups: [String] = ["g"],
    linkCount: Int = 4, seeds: [UInt64] = [1, 2]
  ) -> [LabResult] {
    var random = SplitMix64(seed: 14)
    var results: [LabResult] = []
    for (groupNumber, group) in groups.enumerated() {
      for link in 0..<linkCount {
        for seed in seeds {
          let base = 200 + 500 * random.nextUnit() * Double(groupNumber + 1)
          for slotCount in slots {
            for (place, policy) in policies.enumerated() {
              let p95 = base * (1 + 0.3 * Double(place)) + 20 * random.nextUnit()
              let figures: [String: Double] = [
                "second_frame.p50": p95 / 4, "second_frame.p95": p95, "second_frame.p99": p95 * 1.2,
                "second_frame.over_100ms": 0.5, "rebuffering": 0.02 * random.nextUnit(),
                "bytes.fetched": 3e7, "bytes.wasted": 1e7 / Double(place + 1),
                "rung.mean": 1e6 * random.nextUnit(), "memory.pool": 5e6 * Double(slotCount),
                "failed": 0,
              ]
              results.append(
                .sample(
                  policy, slots: slotCount, link: "\(group)/\(link)", group: group, seed: seed,
                  figures))
            }
          }
        }
      }
    }
    return results
  }
}
