internal import ReelCore

/// Mends the presentation time of the first sample of a fragment.
///
/// Where frames of a fragment are shown before its key frame (an open GOP), libavformat's muxer gives the key frame the time
/// of the earliest of them, so that the times of the segment index are right (ff_mov_write_packet, FFmpeg 5.1 to 8). Two
/// frames then have one time, and one time has no frame: that of the key frame.
enum FirstSampleTime {
  /// Changes a `moof` box whose first sample has the time of another one. No byte moves.
  static func mend(_ bytes: inout [UInt8]) {
    for fragment in TrackFragment.all(in: bytes[...]) where fragment.runs.count == 1 {
      let run = fragment.runs[0]
      guard let offset = rightOffset(of: run, duration: fragment.defaults.duration),
        let field = UInt32(exactly: offset)
      else { continue }
      let index = run.compositionOffsetIndex(of: 0)
      bytes.replaceSubrange(index..<index + 4, with: field.bigEndianBytes)
    }
  }

  // MARK: - Private

  /// Returns the first sample's composition offset, if it has the time of the earliest other sample: the first time at
  /// which there is no frame. Nil for samples of other than equal durations.
  ///
  /// - Parameter default: The duration of samples for which the run states none.
  private static func rightOffset(of run: SampleRun, duration default: Int64?) -> Int64? {
    guard run.statesCompositionOffsets, run.readableCount >= 3 else { return nil }
    let samples = (0..<run.readableCount).map { run[$0] }
    guard let duration = samples[0].duration ?? `default`, duration > 0,
      // The last one may be longer.
      samples.dropLast().allSatisfy({ $0.duration ?? duration == duration })
    else { return nil }
    // From the decoding time of the first sample.
    let times = samples.enumerated().map { Int64($0) * duration + ($1.compositionOffset ?? 0) }
    let others = times.dropFirst().sorted()
    // The fields of a frame may have one time.
    guard times[0] == others[0], zip(others, others.dropFirst()).allSatisfy(<) else { return nil }
    for (time, next) in zip(others, others.dropFirst()) where next != time + duration {
      return next == time + 2 * duration ? time + duration : nil
    }
    return others.last.map { $0 + duration }
  }
}
