import Foundation
import ReelCore
import ReelManifest

/// Reads one manifest over and over in one process, and prints how long it took:
///
///     read-manifest FILE RUNS open|segments
///
/// `open` makes a `Presentation` of the bytes. `segments` also reads the URL, start and duration of every segment of
/// every rung, once.
@main
enum ReadManifest {
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let runs = Int(arguments[2]), runs > 0 else { exit(64) }
    let file = URL(filePath: arguments[1])
    let bytes = Array(try Data(contentsOf: file))
    let format: ManifestFormat = arguments[1].hasSuffix(".mpd") ? .dash : .hls
    let url = URL(string: "https://origin.example/vod/\(file.lastPathComponent)") ?? file
    let readsSegments = arguments[3] == "segments"
    let peakBefore = peakMemory()
    var (times, checksum, segmentCount): ([Double], Int, Int) = ([], 0, 0)
    for _ in 0..<runs {
      segmentCount = 0
      let begin = coreTime()
      let presentation = try ManifestReader().presentation(from: bytes, format: format, url: url)
      if readsSegments { checksum &+= readAll(presentation, &segmentCount) }
      times.append(coreTime() - begin)
      checksum &+= presentation.periods.count
    }
    let peak = peakMemory()
    print(
      #"{"first_ms": \#(times[0]), "median_ms": \#(times.sorted()[runs / 2]), "segments": \#(segmentCount), "#
        + #""memory_bytes": \#(peak), "before_bytes": \#(peakBefore), "checksum": \#(checksum)}"#)
  }

  private static func readAll(_ presentation: Presentation, _ count: inout Int) -> Int {
    var checksum = 0
    for rung in presentation.periods.flatMap(\.trackGroups).flatMap(\.rungs) {
      guard case .segments(let list) = rung.media else { continue }
      for segment in list {
        count += 1
        checksum &+= segment.url.absoluteString.utf8.count
        checksum &+= Int(truncatingIfNeeded: segment.start.value &+ segment.duration.value)
      }
    }
    return checksum
  }
}
