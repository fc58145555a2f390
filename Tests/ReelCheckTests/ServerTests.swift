import Foundation
import Logging
@testable import ReelCheck
import ReelCore
import ReelSources
import ReelTestSupport
import ReelTesting
import Testing

/// Checks whole fixtures on servers with one fault each.
@Suite("Servers with one fault", .hangLimit)
struct ServerTests {
  /// Returns the findings about servers and manifests. A loaded machine answers late, so unless told no answer counts as slow.
  private func findings(
    of path: String, _ faults: [FaultRule] = [], hasRanges: Bool = true, slow: Double = 600_000
  ) async throws -> [Finding] {
    let configuration = Origin.Configuration(
      directory: Fixtures.folder, faults: faults, supportsRanges: hasRanges)
    return try await Origin.use(configuration) { try await findings(of: $0.url(path), slow: slow) }
  }

  private func findings(of url: URL, slow: Double) async throws -> [Finding] {
    let logger = Logger(label: "check") { _ in SwiftLogNoOpLogHandler() }
    var options = CheckOptions()
    options.thresholds[.ttfbSlow] = slow
    let checker = StreamChecker(
      fetcher: makeFetcher(), configuration: LoadingConfiguration(), options: options, logger: logger)
    let facts = try await checker.check(.url(url)).facts
    return TransportFindings.findings(in: facts, options.thresholds)
      + ManifestFindings.findings(in: facts, options.thresholds)
  }

  private func names(_ findings: [Finding]) -> Set<String> {
    Set(findings.filter { $0.level > .note }.map(\.name))
  }

  @Test(
    "A server that does all well has no findings",
    arguments: [
      "hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "hls-byterange-ts/index.m3u8",
      "hls-byterange-fmp4/index.m3u8",
      "hls-aes128/index.m3u8", "dash-number/manifest.mpd", "dash-timeline/manifest.mpd",
      "dash-ondemand/manifest.mpd", "dash-segmentlist/manifest.mpd", "media/h264-faststart.mp4",
    ])
  func whole(path: String) async throws {
    #expect(try await findings(of: path).map { "\($0.name): \($0.summary)" } == [])
  }

  @Test("Late answers")
  func late() async throws {
    let late = Fault.delay(.seconds(3))
    #expect(
      names(try await findings(of: "hls-ts/master.m3u8", [FaultRule("*.ts", late)], slow: 1500)) == [
        "ttfb-slow/segment"
      ])
    #expect(
      names(try await findings(of: "hls-ts/master.m3u8", [FaultRule("*.m3u8", late)], slow: 1500)) == [
        "ttfb-slow/manifest"
      ])
  }

  @Test("Redirects")
  func redirects() async throws {
    let rule = FaultRule("segment-1.ts", .redirectChain(1))
    let findings = try await findings(of: "hls-ts/master.m3u8", [rule])
    #expect(findings.map(\.name) == ["redirects"])
    #expect(findings.first?.level == .warning)
  }

  @Test("Ranges that are ignored")
  func ranges() async throws {
    #expect(names(try await findings(of: "hls-byterange-fmp4/index.m3u8", hasRanges: false)) == ["no-ranges"])
    #expect(names(try await findings(of: "media/h264-faststart.mp4", hasRanges: false)) == ["no-ranges"])
    #expect(names(try await findings(of: "hls-ts/master.m3u8", hasRanges: false)) == [])
  }

  @Test("Answers that break off and go on")
  func broken() async throws {
    let findings = try await findings(
      of: "hls-ts/high/index.m3u8", [FaultRule("segment-1.ts", .close(after: 5000), count: 1)])
    #expect(findings.map(\.name) == ["segment-truncated"])
    #expect(findings.first?.level == .warning && findings.first?.segment == 2)
    #expect(findings.first?.evidence.contains { $0.name == "resumed" } == true)
  }

  @Test("Compressed answers")
  func compressed() async throws {
    #expect(
      names(try await findings(of: "hls-ts/master.m3u8", [FaultRule("*.ts", .gzip)])) == [
        "response-headers/encoding"
      ])
    #expect(names(try await findings(of: "hls-ts/master.m3u8", [FaultRule("*.m3u8", .gzip)])) == [])
  }
}
