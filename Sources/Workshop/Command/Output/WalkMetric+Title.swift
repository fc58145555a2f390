import ReelReplay

extension WalkMetric {
  /// A name for people: `second frame, p95`.
  var title: String {
    let parts = name.split(separator: ".").map(String.init)
    guard let first = parts.first else { return name }
    switch first {
    case "ttff": return Self.latency("first frame", parts.dropFirst())
    case "second_frame": return Self.latency("second frame", parts.dropFirst())
    case "hit" where parts.count > 2: return "hits with the stage \(parts[2])"
    default: return Self.titles[name] ?? name.replacing(".", with: " ").replacing("_", with: " ")
    }
  }

  // MARK: - Private

  private static func latency(_ frame: String, _ parts: ArraySlice<String>) -> String {
    switch parts.last {
    case "over100ms": return "\(frame) after more than 100 ms"
    case "over1s": return "\(frame) after more than 1 s"
    default: break
    }
    let groups = ["hit": " of hits", "miss": " of misses"]
    let group = parts.first.flatMap { groups[$0] } ?? ""
    let place = parts.last.map { $0 == "max" ? "longest" : $0 } ?? ""
    return "\(frame)\(group), \(place)"
  }

  private static let titles = [
    "hit.ratio": "hits", "stall.count": "stalls", "stall.total": "stalled in all",
    "stall.max": "longest stall", "rebuffer.ratio": "rebuffering", "rung.mean": "mean bit rate",
    "rung.switches": "changes of rung", "bytes.fetched": "bytes fetched", "bytes.wasted": "bytes never shown",
    "frames.decoded": "frames decoded", "frames.wasted": "frames never shown",
    "slot.memory": "peak memory of a player", "pool.memory": "peak memory in all", "failed": "failed items",
    "abandoned": "abandoned swipes",
  ]
}
