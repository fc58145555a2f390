/// The identity of a walk of a lab: one value of each of the lab's dimensions.
///
/// The names are those of the configuration. Runs that differ only in `slotCount` and `policy` are paired:
/// the swipes and the link are the same.
package struct LabRun: Sendable, Hashable, Codable {
  package var feed: String
  /// The name of the recording or the link's text.
  package var link: String
  /// The name under which the results of several links are combined: the folder of a recording, or the link
  /// itself.
  package var linkGroup: String
  package var dwell: String
  package var device: String
  package var slotCount: Int
  package var policy: String
  package var seed: UInt64

  package init(
    feed: String, link: String, linkGroup: String, dwell: String, device: String, slotCount: Int,
    policy: String, seed: UInt64
  ) {
    self.feed = feed
    self.link = link
    self.linkGroup = linkGroup
    self.dwell = dwell
    self.device = device
    self.slotCount = slotCount
    self.policy = policy
    self.seed = seed
  }
}

extension LabRun {
  package var pool: LabPool { LabPool(slotCount: slotCount, policy: policy) }

  /// What two paired walks have in common: the run without its pool.
  package var pair: LabRun {
    var run = self
    (run.slotCount, run.policy) = (0, "")
    return run
  }

  private enum CodingKeys: String, CodingKey {
    case feed, link, dwell, device, policy, seed
    case linkGroup = "link_group"
    case slotCount = "slots"
  }
}

/// The runs of a lab, created on access: all combinations of its dimensions.
///
/// Runs that differ only in pool size and policy are consecutive, so an interrupted lab has complete
/// comparisons of its finished runs. The product of the counts must be an `Int`.
package struct LabRuns: Sendable {
  package struct Link: Sendable, Hashable {
    let name: String
    let group: String
  }

  /// The positions of a run's values in the lists of the lab.
  package struct Places: Sendable, Hashable {
    package var feed = 0
    package var link = 0
    package var dwell = 0
    package var device = 0
    package var seed = 0
    package var slotCount = 0
    package var policy = 0
  }

  let feeds: [String]
  let links: [Link]
  let dwells: [String]
  let devices: [String]
  let slotCounts: [Int]
  let policies: [String]
  let seeds: [UInt64]

  /// Returns the positions of the values of the run at `index` in their lists.
  package func places(at index: Int) -> Places {
    var (places, rest) = (Places(), index)
    // The last dimension changes from run to run.
    let dimensions: [(WritableKeyPath<Places, Int>, Int)] = [
      (\.policy, policies.count), (\.slotCount, slotCounts.count), (\.seed, seeds.count),
      (\.device, devices.count), (\.dwell, dwells.count), (\.link, links.count), (\.feed, feeds.count),
    ]
    for (place, count) in dimensions {
      places[keyPath: place] = rest % count
      rest /= count
    }
    return places
  }
}

extension LabRuns: RandomAccessCollection {
  package var startIndex: Int { 0 }

  package var endIndex: Int {
    [feeds.count, links.count, dwells.count, devices.count, slotCounts.count, policies.count, seeds.count]
      .reduce(1, *)
  }

  package subscript(index: Int) -> LabRun {
    let places = places(at: index)
    let link = links[places.link]
    return LabRun(
      feed: feeds[places.feed], link: link.name, linkGroup: link.group, dwell: dwells[places.dwell],
      device: devices[places.device], slotCount: slotCounts[places.slotCount],
      policy: policies[places.policy], seed: seeds[places.seed])
  }
}
