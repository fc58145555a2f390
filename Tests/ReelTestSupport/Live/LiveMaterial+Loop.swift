import ReelCore

extension LiveMaterial {
  /// A segment of the endless stream.
  struct Occurrence {
    /// Which pass of the loop it belongs to, from 0 on.
    var pass: Int64
    var segment: Segment
    /// From the start of the stream.
    var start: MediaTime
    var end: MediaTime
  }

  /// The segment of `track` at `index` in the endless stream, from 0 on.
  func occurrence(_ index: Int64, of track: Track) -> Occurrence {
    let (pass, local) = index.quotientAndRemainder(dividingBy: Int64(track.segments.count))
    let segment = track.segments[Int(local)]
    let start = duration * pass + segment.start
    return Occurrence(pass: pass, segment: segment, start: start, end: start + segment.duration)
  }

  /// How many segments of `track` end at or before `time`.
  func count(of track: Track, endingBy time: MediaTime) -> Int64 {
    guard time > .zero else { return 0 }
    let pass = time.quotient(by: duration)
    let rest = time - duration * pass
    let local = track.segments.prefix { $0.start + $0.duration <= rest }.count
    return pass * Int64(track.segments.count) + Int64(local)
  }

  /// How many segments of `track` begin before `time`.
  func count(of track: Track, beginningBefore time: MediaTime) -> Int64 {
    guard time > .zero else { return 0 }
    let pass = time.quotient(by: duration)
    let rest = time - duration * pass
    let local = track.segments.prefix { $0.start < rest }.count
    return pass * Int64(track.segments.count) + Int64(local)
  }
}
