/// Which walk of a lab: one of each of the lab's dimensions.
///
/// The names are those of the configuration. Runs that differ only in `slotCount` and `policy` are paired: the viewer
/// swipes alike, and the link is the same.
package struct LabRun: Sendable, Hashable, Codable {
  package var feed: String
  /// The name of the recording or the link's text.
  package var link: String
  /// What the results of several links are summed up under: the folder of a recording, or the link itself.
  package var linkGroup: String
  package var viewer: String
  package var device: String
  package var slotCount: Int
  package var policy: String
  package var seed: UInt64

  package init(
    feed: String, link: String, linkGroup: String, viewer: String, device: String, slotCount: Int,
    policy: String, seed: UInt64
  ) {
    self.feed = feed
    self.link = link
    self.linkGroup = linkGroup
    self.viewer = viewer
    self.device = device
    self.slotCount = slotCount
    self.policy = policy
    self.seed = seed
  }
}

extension LabRun {
  private enum CodingKeys: String, CodingKey {
    case feed, link, viewer, device, policy, seed
    case linkGroup = "link_group"
    case slotCount = "slots"
  }
}
