import Foundation
import ReelCheck
import ReelCore
import ReelManifest

@testable import ReelCommand

/// Results of checks made by hand.
enum CheckSample {
  static let url = "https://user:secret@cdn.example/show/master.m3u8?token=abc#t"

  /// A source with findings of all levels, two links, and secrets in its URLs.
  static func faulty(stills: [CheckStill] = []) -> CheckedSource {
    var result = CheckResult(source: url)
    result.facts.format = "hls"
    result.facts.duration = 12
    for (name, kind) in [("180p", TrackGroup.Kind.video), ("360p", .video), ("english", .audio)] {
      result.facts.rungs.append(RungFacts(name: name, kind: kind))
    }
    var missing = Finding(
      .segmentMissing, "status", .error, rung: "360p", segment: 3,
      url: "https://cdn.example/show/high/s3.m4s?sig=1",
      "segment 3 (4 s to 6 s): the server answers 404 <Not Found>",
      fix: "upload it again, mark it with EXT-X-GAP, or shorten the list")
    missing.byte = 4096
    missing.evidence = [("count", .number(1)), ("status", .number(404))]
    missing.costs = [FindingCost(.lost, 2000)]
    var gap = Finding(
      .timestampBreak, "gap", .error, rung: "english", segment: 3,
      url: "https://cdn.example/show/audio/s3.m4s",
      "between segments 3 and 4: 0.8 s without audio that the manifest does not declare",
      fix: "mend the packager's clock, or put EXT-X-DISCONTINUITY before segment 4")
    gap.costs = [FindingCost(.stall, 800)]
    var black = Finding(
      .black, "start", .warning, "all rungs: black for 3 s, then a picture",
      fix: "trim the black, or start after it with EXT-X-START:TIME-OFFSET=3")
    black.time = 0...3
    black.costs = [FindingCost(.start, 3000)]
    var redirects = Finding(
      .redirects, nil, .warning, url: url, "the server redirects the source (2 hops)",
      fix: "hand out the final URL")
    redirects.costs = [
      FindingCost(.start, 140, link: "lte", player: .reel, inTurn: 120), FindingCost(.start, 420, link: "3g"),
    ]
    var invalid = Finding(
      .manifestInvalid, nil, .note, url: url, "line 7: white space in an attribute list (RFC 8216 §4.2)",
      fix: "write it as RFC 8216 §4.2 says")
    invalid.line = 7
    result.findings = [missing, gap, black, redirects, invalid]
    result.starts = [start("lte", 387, 1), start("3g", 1250, 4)]
    result.notChecked = [NotChecked(.liveStale, "the presentation was not watched (--watch)")]
    result.coverage.rungCount = 3
    result.coverage.allRungCount = 3
    result.coverage.segmentCount = 17
    result.coverage.allSegmentCount = 18
    result.coverage.byteCount = 1_500_000
    result.coverage.frameCount = 660
    result.thresholds[.blackRun] = 5
    result.stills = stills
    var checked = CheckedSource(result)
    checked.waived = [3: "the login needs it & stays"]
    checked.known = [1]
    checked.unmet = ["start.lte<300ms: not met, 387 ms"]
    return checked
  }

  /// A source without findings.
  static func healthy(_ name: String = "clips/one clip.mp4") -> CheckedSource {
    CheckedSource(CheckResult(source: name))
  }

  private static func start(_ link: String, _ milliseconds: Double, _ scale: Double) -> StartResult {
    func course(_ total: Double, hops: Double) -> StartResult.Course {
      var course = StartResult.Course(milliseconds: total)
      (course.connecting, course.answering) = (70 * scale, 50 * scale + hops)
      (course.receiving, course.decoding) = (110 * scale, 12)
      func request(_ name: String, _ purpose: FetchPurpose, _ from: Double, _ to: Double, _ bytes: Int64) {
        course.requests.append(
          StartResult.Request(
            url: "https://cdn.example/show/\(name)?token=abc", purpose: purpose, began: from,
            firstByte: (from + to) / 2,
            end: to, byteCount: bytes))
      }
      request("master.m3u8", .source, 0, 0.4 * total, 900)
      request("low.m3u8", .manifest, 0.4 * total, 0.55 * total, 1_200)
      request("low/init.mp4", .initialization, 0.55 * total, 0.66 * total, 700)
      request("low/s1.m4s", .segment, 0.57 * total, 1.1 * total, 108_000)
      return course
    }
    var start = StartResult(
      link: link, now: course(milliseconds, hops: 120), floorMilliseconds: milliseconds * 0.5)
    start.wholeMilliseconds = milliseconds * 1.4
    (start.floorRequestCount, start.floorByteCount) = (4, 46_000)
    start.steps = [.init(finding: "redirects", milliseconds: milliseconds - 120 * scale)]
    start.mended = course(milliseconds - 120 * scale, hops: 0)
    return start
  }
}
