internal import ReelCore

/// What no policy can go below: the delay to the second frame, over the swipes that count.
package struct DelayBound: Sendable, Hashable {
  package let mean: Duration
  package let p50: Duration
  package let p95: Duration

  package init(mean: Duration, p50: Duration, p95: Duration) {
    self.mean = mean
    self.p50 = p50
    self.p95 = p95
  }
}

extension DelayBound: Codable {
  private enum CodingKeys: String, CodingKey {
    case mean = "mean_ms"
    case p50 = "p50_ms"
    case p95 = "p95_ms"
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(milliseconds: mean, forKey: .mean)
    try values.encode(milliseconds: p50, forKey: .p50)
    try values.encode(milliseconds: p95, forKey: .p95)
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    mean = try values.decodeMilliseconds(forKey: .mean)
    p50 = try values.decodeMilliseconds(forKey: .p50)
    p95 = try values.decodeMilliseconds(forKey: .p95)
  }
}
