/// The runs of a lab, made when they are asked for: each of its dimensions with each.
///
/// Runs that differ only in pool size and policy follow each other, so an interrupted lab has compared what it has run.
package struct LabRuns: Sendable {
  package struct Link: Sendable, Hashable {
    package let name: String
    package let group: String

    package init(name: String, group: String) {
      self.name = name
      self.group = group
    }
  }

  /// The places of a run's values in the lists of the lab.
  package struct Places: Sendable, Hashable {
    package var feed = 0
    package var link = 0
    package var viewer = 0
    package var device = 0
    package var seed = 0
    package var slotCount = 0
    package var policy = 0
  }

  private let feeds: [String]
  private let links: [Link]
  private let viewers: [String]
  private let devices: [String]
  private let slotCounts: [Int]
  private let policies: [String]
  private let seeds: [UInt64]

  /// - Precondition: The product of the counts is an `Int`.
  package init(
    feeds: [String], links: [Link], viewers: [String], devices: [String], slotCounts: [Int],
    policies: [String], seeds: [UInt64]
  ) {
    self.feeds = feeds
    self.links = links
    self.viewers = viewers
    self.devices = devices
    self.slotCounts = slotCounts
    self.policies = policies
    self.seeds = seeds
  }

  /// Where the values of the run at `index` are in their lists.
  package func places(at index: Int) -> Places {
    var (places, rest) = (Places(), index)
    // The last one changes from run to run.
    let dimensions: [(WritableKeyPath<Places, Int>, Int)] = [
      (\.policy, policies.count), (\.slotCount, slotCounts.count), (\.seed, seeds.count),
      (\.device, devices.count), (\.viewer, viewers.count), (\.link, links.count), (\.feed, feeds.count),
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
    [feeds.count, links.count, viewers.count, devices.count, slotCounts.count, policies.count, seeds.count]
      .reduce(1, *)
  }

  package subscript(index: Int) -> LabRun {
    let places = places(at: index)
    let link = links[places.link]
    return LabRun(
      feed: feeds[places.feed], link: link.name, linkGroup: link.group, viewer: viewers[places.viewer],
      device: devices[places.device], slotCount: slotCounts[places.slotCount],
      policy: policies[places.policy], seed: seeds[places.seed])
  }
}
