import Foundation
import ReelCore

extension ClockSource {
  /// The sources named by UTCTiming elements, in order (ISO/IEC 23009-1 §5.8.5.7), at most 16. Sources without
  /// HTTP are ignored with a warning.
  static func sources(
    _ timings: [MPD.Descriptor], _ resolver: URLResolver, warnings: inout WarningLog
  ) -> [ClockSource] {
    var sources: [ClockSource] = []
    for timing in timings {
      let values = (timing.value ?? "").split { $0.isWhitespace }.map(String.init)
      switch timing.scheme.lowercased() {
      case "urn:mpeg:dash:utc:direct:2014", "urn:mpeg:dash:utc:direct:2012":
        if let time = WallTime(iso8601: (timing.value ?? "").trimmed) {
          sources.append(.direct(time))
        } else {
          warn("the value '\((timing.value ?? "").excerpt)' is not a date", &warnings)
        }
      case "urn:mpeg:dash:utc:http-head:2014", "urn:mpeg:dash:utc:http-head:2012":
        sources += urls(values, resolver, &warnings).map { .httpHead($0) }
      case "urn:mpeg:dash:utc:http-xsdate:2014", "urn:mpeg:dash:utc:http-xsdate:2012",
        "urn:mpeg:dash:utc:http-iso:2014", "urn:mpeg:dash:utc:http-iso:2012":
        sources += urls(values, resolver, &warnings).map { .httpBody($0) }
      default:
        warn("the scheme \(timing.scheme.excerpt) is not asked", &warnings)
      }
    }
    return Array(sources.prefix(16))
  }

  // MARK: - Private

  private static func urls(
    _ values: [String], _ resolver: URLResolver, _ warnings: inout WarningLog
  ) -> [URL] {
    values.prefix(16).compactMap { value in
      do throws(ReelError) {
        return try resolver.resolve(value)
      } catch {
        warn(error.reason, &warnings)
        return nil
      }
    }
  }

  private static func warn(_ reason: String, _ warnings: inout WarningLog) {
    warnings.add("\(reason): this UTCTiming is ignored", place: .element("MPD/UTCTiming"))
  }
}
