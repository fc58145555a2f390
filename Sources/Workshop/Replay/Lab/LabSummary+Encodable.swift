/// In JSON:
///
/// - `baseline`, `runs`, and `resamples`, the number of the bootstrap's draws.
/// - `feeds`, `links`, `link_groups`, `viewers`, `devices`, `slots`, `policies`, `seeds`: the dimensions.
/// - `groups`: for each group
///   - those of `feed`, `link_group`, `viewer`, `device` and `slots` that its walks have in common; `runs`.
///   - `pools`: for each pool `slots`, `policy`, `runs`, `failed` (of these), `pareto` (true on the front), and `figures`: for each figure of
///     ``LabResult/Figure`` `runs` (walks that have it), `mean`, `median` and `p95` over walks.
///   - `differences` from the baseline, and `size_differences` from the smallest pool of the same policy: for each
///     `slots`, `policy`, `minus_slots`, `minus_policy`, `pairs`, and `figures`: for each figure `pairs` (whose walks both
///     have it), `left_out` (other pairs), `mean`, and with two pairs or more `lower` and `upper`, the ends of the 95 %
///     interval, and `excludes_zero`.
extension LabSummary: Encodable {
  private enum CodingKeys: String, CodingKey {
    case baseline, runs, resamples, feeds, links, viewers, devices, slots, policies, seeds, groups
    case linkGroups = "link_groups"
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encodeIfPresent(baseline, forKey: .baseline)
    try values.encode(runCount, forKey: .runs)
    try values.encode(PairedBootstrap.resampleCount, forKey: .resamples)
    try values.encode(dimensions.feeds, forKey: .feeds)
    try values.encode(dimensions.links, forKey: .links)
    try values.encode(dimensions.linkGroups, forKey: .linkGroups)
    try values.encode(dimensions.viewers, forKey: .viewers)
    try values.encode(dimensions.devices, forKey: .devices)
    try values.encode(dimensions.slotCounts, forKey: .slots)
    try values.encode(dimensions.policies, forKey: .policies)
    try values.encode(dimensions.seeds, forKey: .seeds)
    try values.encode(groups, forKey: .groups)
  }
}

extension LabGroup: Encodable {
  private enum CodingKeys: String, CodingKey {
    case runs, pools, differences
    case sizeDifferences = "size_differences"
  }

  package func encode(to encoder: any Encoder) throws {
    try key.encodeDimensions(to: encoder)
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(runCount, forKey: .runs)
    try values.encode(rows, forKey: .pools)
    try values.encode(differences, forKey: .differences)
    try values.encode(sizeDifferences, forKey: .sizeDifferences)
  }
}

extension LabGroup.Key {
  private enum CodingKeys: String, CodingKey {
    case feed, viewer, device, slots
    case linkGroup = "link_group"
  }

  /// Writes what the walks have in common.
  fileprivate func encodeDimensions(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encodeIfPresent(feed, forKey: .feed)
    try values.encodeIfPresent(linkGroup, forKey: .linkGroup)
    try values.encodeIfPresent(viewer, forKey: .viewer)
    try values.encodeIfPresent(device, forKey: .device)
    try values.encodeIfPresent(slotCount, forKey: .slots)
  }
}

extension LabPool: Encodable {
  private enum CodingKeys: String, CodingKey {
    case slots, policy
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(slotCount, forKey: .slots)
    try values.encode(policy, forKey: .policy)
  }
}

extension LabGroup.Row: Encodable {
  private enum CodingKeys: String, CodingKey {
    case runs, failed, pareto, figures
  }

  package func encode(to encoder: any Encoder) throws {
    try pool.encode(to: encoder)
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(runCount, forKey: .runs)
    try values.encode(failedCount, forKey: .failed)
    try values.encode(isOnFront, forKey: .pareto)
    try values.encode(figures, forKey: .figures)
  }
}

extension LabGroup.Distribution: Encodable {
  private enum CodingKeys: String, CodingKey {
    case runs, mean, median, p95
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(count, forKey: .runs)
    try values.encode(mean, forKey: .mean)
    try values.encode(median, forKey: .median)
    try values.encode(p95, forKey: .p95)
  }
}

extension LabDifference: Encodable {
  private enum CodingKeys: String, CodingKey {
    case pairs, figures
    case minusSlots = "minus_slots"
    case minusPolicy = "minus_policy"
  }

  package func encode(to encoder: any Encoder) throws {
    try pool.encode(to: encoder)
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(baseline.slotCount, forKey: .minusSlots)
    try values.encode(baseline.policy, forKey: .minusPolicy)
    try values.encode(pairCount, forKey: .pairs)
    try values.encode(figures, forKey: .figures)
  }
}

extension LabDifference.Figure: Encodable {
  private enum CodingKeys: String, CodingKey {
    case pairs, mean, lower, upper
    case leftOut = "left_out"
    case excludesZero = "excludes_zero"
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(pairCount, forKey: .pairs)
    try values.encode(leftOutCount, forKey: .leftOut)
    try values.encode(mean, forKey: .mean)
    guard let interval else { return }
    try values.encode(interval.lower, forKey: .lower)
    try values.encode(interval.upper, forKey: .upper)
    try values.encode(interval.excludesZero, forKey: .excludesZero)
  }
}
