internal import Foundation
internal import ReelCore
internal import ReelPlayback
internal import ReelPool

extension LabInputs {
  /// A number of all that determines the results: the same on every machine, and for the same files in another folder.
  ///
  /// It covers the contents of feed files, recordings and traces, and the sizes of the local files that the
  /// feeds name; but not the contents of media.
  package var fingerprint: String {
    var hash = FNV1a()
    hash.combine("lab 1")
    for feed in feeds {
      hash.combine("feed \(feed.name) \(feed.feed.name) \(feed.contentHash)")
      for item in feed.feed.items {
        if case .url(let url) = item.source, url.isFileURL {
          hash.combine("item \(Self.byteCount(url.path) ?? -1)")
        }
      }
    }
    for link in links { hash.combine("link \(link.name) \(link.group) \(Self.text(link.spec))") }
    for viewer in viewers {
      hash.combine("viewer \(viewer.name) \(viewer.spec.shares)")
      if case .trace(let trace) = viewer.spec.dwell {
        for entry in trace.entries { hash.combine("\(entry.dwell) \(entry.move)") }
      } else {
        hash.combine("\(viewer.spec.dwell)")
      }
    }
    for device in devices { hash.combine("device \(device.name)") }
    hash.combine("pools \(configuration.slotCounts)")
    hash.combine("policies \(configuration.policies.map(\.description))")
    hash.combine("seeds \(configuration.seeds)")
    hash.combine("swipes \(configuration.swipeCount ?? -1)")
    hash.combine("rungs \(configuration.bandwidth ?? -1) \(configuration.maximumHeight ?? -1)")
    hash.combine("first rung \(configuration.firstRung.rawValue)")
    let digits = String(hash.value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  // MARK: - Private

  private static func text(_ link: LinkSpec) -> String {
    let recording = link.recording.map { "\($0.fingerprint)" } ?? "-"
    let start = link.drawsStart ? "drawn" : "\(link.start)"
    return "\(link.bitsPerSecond) \(recording) \(link.roundTripTime) \(start) \(link.jitter) "
      + "\(link.modelsTCP) \(link.modelsTLS) \(link.modelsDNS)"
  }

  private static func byteCount(_ path: String) -> Int64? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    return (attributes?[.size] as? NSNumber)?.int64Value
  }
}
