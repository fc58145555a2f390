internal import ReelPool

extension WalkSettings: Codable {
  private enum CodingKeys: String, CodingKey {
    case feed, policy, link, dwell, seed, device
    case shares = "swipe_shares"
    case itemCount = "items"
    case firstRung = "first_rung"
    case slotCount = "slots"
    case isVirtual = "virtual"
    case decodeCost = "decode_cost_ms"
    case notMeasured
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(feed, forKey: .feed)
    try values.encode(itemCount, forKey: .itemCount)
    try values.encode(slotCount, forKey: .slotCount)
    try values.encode(policy, forKey: .policy)
    try values.encodeIfPresent(link, forKey: .link)
    try values.encode(dwell, forKey: .dwell)
    try values.encodeIfPresent(shares, forKey: .shares)
    if firstRung != .adapted { try values.encode(firstRung.rawValue, forKey: .firstRung) }
    try values.encode(seed, forKey: .seed)
    try values.encode(isVirtual, forKey: .isVirtual)
    try values.encode(millisecondsIfPresent: decodeCost, forKey: .decodeCost)
    try values.encodeIfPresent(device, forKey: .device)
    if isVirtual { try values.encode(["damage", "resident_memory"], forKey: .notMeasured) }
  }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      feed: try values.decode(String.self, forKey: .feed),
      itemCount: try values.decode(Int.self, forKey: .itemCount),
      slotCount: try values.decode(Int.self, forKey: .slotCount),
      policy: try values.decode(String.self, forKey: .policy),
      link: try values.decodeIfPresent(String.self, forKey: .link),
      dwell: try values.decode(String.self, forKey: .dwell),
      shares: try values.decodeIfPresent(SwipeShares.self, forKey: .shares),
      seed: try values.decode(UInt64.self, forKey: .seed),
      isVirtual: try values.decode(Bool.self, forKey: .isVirtual),
      decodeCost: try values.decodeMillisecondsIfPresent(forKey: .decodeCost),
      device: try values.decodeIfPresent(String.self, forKey: .device))
    let rung = try values.decodeIfPresent(String.self, forKey: .firstRung)
    firstRung = rung.flatMap { FirstRung(rawValue: $0) } ?? .adapted
  }
}
