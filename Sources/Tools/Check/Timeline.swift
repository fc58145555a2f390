internal import Foundation
internal import ReelCore
internal import ReelManifest

extension StreamFacts {
  /// The distance at which the timestamps of MPEG-TS begin again, in seconds (33 bits at 90 kHz, ISO/IEC 13818-1
  /// §2.4.3.7).
  static let wrap = Double(1 << 33) / 90_000

  /// Returns the difference of two timestamps, which may have begun again between them.
  static func difference(_ later: Double, _ earlier: Double) -> Double {
    let difference = later - earlier
    return abs(difference) > wrap / 2 ? difference - (difference / wrap).rounded() * wrap : difference
  }

  /// Moves the times of frames and sounds from the timelines of containers to that of the presentation.
  ///
  /// An MPD states the difference. In HLS, the first segment that was read of each discontinuity does, of the first
  /// rung: all rungs have the same timestamps (RFC 8216 §6.2.4).
  mutating func placeContent() {
    let offsets = mediaOffsets
    for rung in rungs.indices {
      let segments = rungs[rung].segments
      for run in rungs[rung].content.indices {
        let first = rungs[rung].content[run].segments.lowerBound
        guard segments.indices.contains(first) else { continue }
        let hasTimestamps = rungs[rung].samples[first]?.hasTimestamps ?? true
        let offset =
          hasTimestamps
          ? segments[first].timestampOffset?.seconds ?? offsets[segments[first].discontinuity] ?? 0 : 0
        func placed(_ time: Double, near expected: Double) -> Double {
          expected + Self.difference(time + offset, expected)
        }
        func start(of index: Int) -> Double {
          segments.indices.contains(index) ? segments[index].start.seconds : 0
        }
        for frame in rungs[rung].content[run].frames.indices {
          let facts = rungs[rung].content[run].frames[frame]
          rungs[rung].content[run].frames[frame].time = placed(facts.time, near: start(of: facts.segment))
        }
        for part in rungs[rung].content[run].undecodable.indices {
          let facts = rungs[rung].content[run].undecodable[part]
          rungs[rung].content[run].undecodable[part].time = placed(
            facts.time, near: start(of: facts.segment))
        }
        let expected = segments[first].start.seconds
        for sound in rungs[rung].content[run].sound.indices {
          rungs[rung].content[run].sound[sound].time = placed(
            rungs[rung].content[run].sound[sound].time, near: expected)
        }
      }
    }
  }

  /// The difference from media time to presentation time in HLS, by discontinuity.
  var mediaOffsets: [Int: Double] {
    var offsets: [Int: Double] = [:]
    for rung in rungs.sorted(by: { $0.kind == .video && $1.kind != .video }) {
      for (index, sample) in rung.samples.sorted(by: { $0.key < $1.key })
      where rung.segments.indices.contains(index) {
        let segment = rung.segments[index]
        guard segment.timestampOffset == nil, sample.hasTimestamps, offsets[segment.discontinuity] == nil,
          let start = sample.video?.start ?? sample.audio?.start
        else { continue }
        offsets[segment.discontinuity] = segment.start.seconds - start
      }
    }
    return offsets
  }
}
