import Foundation
package import ReelCore
package import ReelSources
import Testing

/// A source whose frames are known, and shared with no other clip.
package struct StressClip: Sendable, CustomTestStringConvertible {
  package enum Clock: Sendable {
    /// The first frame stands at 0.
    case fromZero
    /// Timestamps are times.
    case media
  }

  package let path: String
  package let expected: [Shown]
  /// Frames that look the same have several.
  private let indices: [String: [Int]]

  package var testDescription: String { path }

  package init(_ path: String, golden: String, clock: Clock) throws {
    self.path = path
    let golden = try Golden(golden)
    let first = golden.time(try #require(golden.frames.first).ticks)
    expected = golden.frames.map { frame in
      Shown(
        time: golden.time(frame.ticks) - (clock == .fromZero ? first : .zero), md5: frame.md5)
    }
    var indices: [String: [Int]] = [:]
    for (index, frame) in expected.enumerated() { indices[frame.md5, default: []].append(index) }
    self.indices = indices
  }

  /// Read through a fetcher, or as a local file.
  package func source(isLocal: Bool = false) throws -> MediaSource {
    try MediaSource(
      argument: isLocal ? Fixtures.folder.appending(path: path).path : "http://fixtures.test/\(path)")
  }

  /// Which frame of the clip it is; nil for one of another clip.
  package func index(of frame: Shown) -> Int? {
    let indices = indices[frame.md5]
    return indices?.first { expected[$0].time == frame.time } ?? indices?.first
  }

  package func indices(of shown: some Sequence<Shown>) -> [Int?] { shown.map { index(of: $0) } }

  /// The frame on show at `time`.
  package func index(at time: MediaTime) -> Int {
    expected.lastIndex { $0.time <= time + MediaTime(value: 1, timescale: 1_000_000) } ?? 0
  }

  package static func all() throws -> [StressClip] {
    [
      try StressClip("hls-ts/low/index.m3u8", golden: "hls-ts-low", clock: .fromZero),
      try StressClip("hls-fmp4/master.m3u8", golden: "hls-fmp4-high", clock: .fromZero),
      try StressClip("hls-hevc/index.m3u8", golden: "hls-hevc", clock: .fromZero),
      try StressClip("dash-gpac/multirate.mpd", golden: "dash-gpac-8000k", clock: .media),
      try StressClip("media/h264-gops.mp4", golden: "h264-gops.mp4", clock: .media),
      try StressClip("media/hevc-gops.mp4", golden: "hevc-gops.mp4", clock: .media),
      try StressClip("media/h264-bframes.ts", golden: "h264-bframes.ts", clock: .fromZero),
      try StressClip("media/h264.mkv", golden: "h264.mkv", clock: .media),
    ]
  }

  /// Sources that fail, at once or later, and one that is not there.
  package static let bad = [
    "bad/empty.mp4", "bad/cut-in-moov.mp4", "bad/audio-only.mp4", "bad/html.m3u8", "bad/missing-segment.m3u8",
    "bad/html-segment.m3u8", "bad/audio-only.mpd", "bad/unclosed.mpd", "bad/size-zero-in-header.mp4",
    "bad/encrypted.mpd", "nothing-here.mp4",
  ]
}
