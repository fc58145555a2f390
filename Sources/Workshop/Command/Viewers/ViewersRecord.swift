import ReelCore
import ReelLab

// The objects that `reel viewers --json` prints.

extension ViewersRow: Encodable {
  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "event": "second", "time": (time / .seconds(1)).rounded(places: 3), "viewers": present.count,
      "starting": present.starting, "playing": present.playing, "waiting": present.waiting,
      "live_latency": LatencySummary(present.latencies),
      "rungs": present.rungs.sorted { $0.key < $1.key }.map { rung, count -> JSONFields in
        ["bit_rate": rung, "viewers": count]
      },
      "machine": machine,
    ])
    try encoder.encode(counts.fields)
  }
}

extension ViewersSummary: Encodable {
  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "event": "summary", "viewers": viewers, "sources": sources, "most_viewers": mostPresent,
      "duration_ms": duration, "interrupted": isInterrupted, "machine": machine,
      "bottleneck": machine.bottleneck, "live_latency": liveLatency,
      "rungs": counts.rungShares.map { rung -> JSONFields in
        ["bit_rate": rung.bitRate, "played_ms": rung.played]
      },
      "assertions": assertions.isEmpty ? nil : assertions,
    ])
    try encoder.encode(counts.fields)
  }
}

extension ViewersCounts {
  /// The fields of a second and of a run.
  fileprivate var fields: JSONFields {
    [
      "views": views, "failed": failedCount, "failures": Self.fields(failed),
      "starts": starts.count, "start": LatencySummary(starts), "stalls": stalls, "played_ms": played,
      "waited_ms": waited, "rebuffering": rebuffering?.rounded(places: 6), "bytes": bytes,
      "requests": requests, "errors": Self.fields(errors),
    ]
  }

  /// The most frequent first.
  static func sorted(_ faults: [Fault: Int]) -> [(fault: Fault, count: Int)] {
    faults.map { (fault: $0.key, count: $0.value) }.sorted {
      ($1.count, $0.fault.cause, $0.fault.host) < ($0.count, $1.fault.cause, $1.fault.host)
    }
  }

  private static func fields(_ faults: [Fault: Int]) -> [JSONFields] {
    sorted(faults).map { fault, count in
      ["cause": fault.cause, "host": fault.host.isEmpty ? nil : fault.host, "count": count]
    }
  }
}

extension MachineLoad: Encodable {
  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "cores": cores?.rounded(places: 4), "link": link?.rounded(places: 4), "late_ms": lateness,
    ])
  }
}

extension MachineUse: Encodable {
  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "cores": cores?.rounded(places: 4), "link": link?.rounded(places: 4), "late_ms": lateness,
      "full_cores": fullCores.rounded(places: 4), "full_link": fullLink.rounded(places: 4),
    ])
  }
}
