package import ReelCore
package import ReelPlayback
internal import ReelSources
import Testing

/// A presentation among the fixtures, and what its frames are by the golden files.
package struct PresentationCase: Sendable, CustomTestStringConvertible {
  /// A stretch of frames.
  package struct Part: Sendable {
    package enum Clock: Sendable {
      /// The first frame of the stretch stands at this time (HLS).
      case startsAt(MediaTime)
      /// Media time is presentation time (DASH).
      case media
    }

    package let golden: String
    package let range: Range<Int>?
    package let clock: Clock
    /// The golden file that has the timestamps, where it is another.
    package var timestamps: String?
  }

  package let path: String
  package var peakBitRate: Int?
  package let parts: [Part]

  package init(path: String, peakBitRate: Int? = nil, parts: [Part]) {
    self.path = path
    self.peakBitRate = peakBitRate
    self.parts = parts
  }

  package var testDescription: String { peakBitRate.map { "\(path) up to \($0)" } ?? path }

  /// A player configuration with the keys of the fixtures.
  package var configuration: PlayerConfiguration {
    var configuration = PlayerConfiguration()
    configure(&configuration)
    return configuration
  }

  package func configure(_ configuration: inout PlayerConfiguration) {
    if let peakBitRate { configuration.loading.preferredPeakBitRate = peakBitRate }
    configuration.loading.keyProvider = KeyList.fixtures
  }

  /// Every frame with its time.
  package func expected() throws -> [Shown] {
    try parts.flatMap { part in
      let golden = try Golden(part.golden)
      let clock = try part.timestamps.map { try Golden($0) } ?? golden
      let indices = part.range ?? golden.frames.indices
      let first = clock.time(clock.frames[indices.lowerBound].ticks)
      return indices.map { index in
        let media = clock.time(clock.frames[index].ticks)
        switch part.clock {
        case .startsAt(let start): return Shown(time: start + media - first, md5: golden.frames[index].md5)
        case .media: return Shown(time: media, md5: golden.frames[index].md5)
        }
      }
    }
  }

  private static func hls(_ path: String, _ golden: String, cap: Int? = nil) -> PresentationCase {
    PresentationCase(
      path: path, peakBitRate: cap, parts: [Part(golden: golden, range: nil, clock: .startsAt(.zero))])
  }

  private static func dash(
    _ path: String, _ golden: String, cap: Int? = nil, timestamps: String? = nil
  ) -> PresentationCase {
    PresentationCase(
      path: path, peakBitRate: cap,
      parts: [Part(golden: golden, range: nil, clock: .media, timestamps: timestamps)])
  }

  private static func discontinuity(_ kind: String, low: String, other: String) -> PresentationCase {
    PresentationCase(
      path: "hls-discontinuity/\(kind).m3u8",
      parts: [
        Part(golden: low, range: 0..<30, clock: .startsAt(.zero)),
        Part(golden: other, range: nil, clock: .startsAt(MediaTime(value: 1, timescale: 1))),
        Part(golden: low, range: 30..<60, clock: .startsAt(MediaTime(value: 2, timescale: 1))),
      ])
  }

  package static let all: [PresentationCase] = [
    hls("hls-ts/master.m3u8", "hls-ts-high"),
    hls("hls-ts/master.m3u8", "hls-ts-low", cap: 500_000),
    hls("hls-ts/low/index.m3u8", "hls-ts-low"),
    hls("hls-fmp4/master.m3u8", "hls-fmp4-high"),
    hls("hls-fmp4/master.m3u8", "hls-fmp4-low", cap: 899_999),
    hls("hls-byterange-ts/index.m3u8", "hls-byterange-ts"),
    hls("hls-byterange-fmp4/index.m3u8", "hls-byterange-fmp4"),
    hls("hls-hevc/index.m3u8", "hls-hevc"),
    hls("hls-aes128/index.m3u8", "hls-aes128"),
    hls("hls-aes128/rotating.m3u8", "hls-ts-low"),
    hls("hls-aes128/fmp4.m3u8", "hls-fmp4-low"),
    discontinuity("ts", low: "hls-ts-low", other: "hls-discontinuity-other-ts"),
    discontinuity("fmp4", low: "hls-fmp4-low", other: "hls-discontinuity-other-fmp4"),
    dash("dash-number/manifest.mpd", "dash-number-1"),
    dash("dash-number/manifest.mpd", "dash-number-0", cap: 300_000),
    dash("dash-timeline/manifest.mpd", "dash-number-1"),
    dash("dash-timeline/manifest.mpd", "dash-number-0", cap: 1),
    dash("dash-segmentlist/manifest.mpd", "dash-number-1"),
    dash("dash-segmentlist/manifest.mpd", "dash-number-0", cap: 699_999),
    dash("dash-ondemand/manifest.mpd", "dash-number-1", timestamps: "dash-ondemand-low"),
    dash("dash-ondemand/manifest.mpd", "dash-ondemand-low", cap: 300_000),
    dash("dash-webm/manifest.mpd", "dash-webm-high"),
    dash("dash-webm/manifest.mpd", "dash-webm-low", cap: 1),
    dash("dash-baseurl/manifest.mpd", "dash-number-1"),
    dash("dash-baseurl/fallback.mpd", "dash-number-1"),
    PresentationCase(
      path: "dash-periods/manifest.mpd",
      parts: [
        Part(golden: "dash-number-0", range: 0..<30, clock: .media),
        Part(golden: "dash-number-1", range: 30..<90, clock: .media),
      ]),
    // All three are above the default cap: the lowest.
    dash("dash-gpac/multirate.mpd", "dash-gpac-8000k"),
    dash("dash-gpac/multirate.mpd", "dash-gpac-10400k", cap: 9_000_000),
    dash("dash-gpac/multirate.mpd", "dash-gpac-13520k", cap: 20_000_000),
    // Encrypted samples.
    hls("encrypted/cbcs/master.m3u8", "encrypted-clear"),
    hls("encrypted/hls-ts/rotating.m3u8", "encrypted-clear"),
    dash("encrypted/clear-lead/manifest.mpd", "encrypted-clear"),
    dash("encrypted/rotation/manifest.mpd", "encrypted-clear"),
  ]
}
