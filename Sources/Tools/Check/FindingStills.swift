internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelReading
internal import ReelSources

/// Takes stills where findings about pictures point.
struct FindingStills {
  let fetcher: any Fetching
  let configuration: LoadingConfiguration
  let logger: Logger

  /// The most findings that get stills, and the longer side of a still in pixels.
  private static let findingLimit = 8
  private static let side = 320

  /// Returns the findings with stills; none of what can't be decoded.
  func findings(_ findings: [Finding], with facts: StreamFacts, of source: MediaSource) async throws
    -> [Finding]
  {
    var findings = findings
    let pointing = findings.indices.filter {
      [.black, .frozen, .rungContentDiffers].contains(findings[$0].id) && findings[$0].time != nil
    }
    for index in pointing.prefix(Self.findingLimit) {
      let finding = findings[index]
      guard let range = finding.time else { continue }
      let (start, end) = (range.lowerBound, range.upperBound)
      var rungs = [finding.rung]
      var times = [start + 0.02, (start + end) / 2]
      if finding.id == .rungContentDiffers {
        times = [(start + end) / 2]
        for case ("reference", .text(let name)) in finding.evidence { rungs.append(name) }
      } else if finding.kind != "whole" {
        times = (start > 0.2 ? [start - 0.1] : []) + times + [end + 0.05]
      }
      for name in rungs {
        let rung =
          facts.rungs.first { $0.name == name } ?? facts.rungs.first { $0.kind == .video }
        for time in times {
          guard let jpeg = try await still(of: source, at: time, rung) else { continue }
          findings[index].stills.append(CheckStill(rung: name, time: time, jpeg: jpeg))
        }
      }
    }
    return findings
  }

  // MARK: - Private

  private func still(of source: MediaSource, at time: Double, _ rung: RungFacts?) async throws -> [UInt8]? {
    var configuration = configuration
    // The highest rung at or under its own bit rate is the rung itself.
    if let rate = rung?.declared?.bitsPerSecond { configuration.preferredPeakBitRate = rate }
    let extractor = FrameExtractor(fetcher: fetcher, configuration: configuration, logger: logger)
    let jpeg = Locked<[UInt8]?>(nil)
    do {
      try await extractor.extract(.times([MediaTime(seconds: max(0, time))]), from: source) { frame in
        let size = SizeLimit.square(Self.side).fitted(
          frame.presentationSize)
        let still = try StillRenderer().render(
          frame.decoded, geometry: frame.geometry(target: size, gravity: .resize),
          orientation: frame.orientation)
        let bytes = try StillEncoder.encode(still, as: .jpeg, quality: 80)
        jpeg.withLock { $0 = bytes }
      }
    } catch is ReelError {
      return nil
    }
    return jpeg.withLock { $0 }
  }
}
