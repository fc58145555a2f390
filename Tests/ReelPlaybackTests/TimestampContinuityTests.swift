import ReelCore
import ReelReading
import ReelTestSupport
import Testing

@Suite("Joining timestamps")
struct TimestampContinuityTests {
  private static let ticks = Rational(1, 90_000)
  private static let second: Int64 = 90_000
  private static let wrap: Int64 = 1 << 33
  private static let videoStep: Int64 = 3600
  private static let audioStep: Int64 = 1920

  private struct Packet {
    var stream: Int
    /// Where it is on the timeline without jumps.
    var time: Int64
    /// As the container has it.
    var raw: Int64
    var part: Int

    var step: Int64 { stream == 0 ? videoStep : audioStep }
  }

  /// Video is stream 0, with 25 frames a second; audio is stream 1, with frames of 1024 samples at 48 kHz.
  ///
  /// - Parameters:
  ///   - parts: The first raw timestamp and the length of each part.
  ///   - lag: By how much the audio is interleaved late, below zero for early.
  private func packets(_ parts: [(base: Int64, length: Int64)], lag: Int64) -> [Packet] {
    var packets: [Packet] = []
    var start: Int64 = 0
    for (index, part) in parts.enumerated() {
      for stream in [0, 1] {
        let step = stream == 0 ? Self.videoStep : Self.audioStep
        for offset in stride(from: 0, to: part.length, by: Int64.Stride(step)) {
          packets.append(
            Packet(stream: stream, time: start + offset, raw: part.base + offset, part: index))
        }
      }
      start += part.length
    }
    let order = { (packet: Packet) in packet.time + (packet.stream == 0 ? 0 : lag) }
    return packets.enumerated().sorted {
      (order($0.element), $0.offset) < (order($1.element), $1.offset)
    }.map(\.element)
  }

  private func shift(_ continuity: inout TimestampContinuity, _ packet: Packet) -> MediaTime {
    continuity.shift(
      stream: packet.stream, dts: packet.raw, pts: packet.raw + 2 * Self.videoStep, duration: packet.step,
      timeBase: Self.ticks)
  }

  private func time(_ ticks: Int64) -> MediaTime { MediaTime(value: ticks, timescale: 90_000) }

  @Test(
    "Packets without a time between key frames that have one are no jump", arguments: [0, 3600] as [Int64])
  func timesOfKeyFrames(duration: Int64) {
    var continuity = TimestampContinuity()
    for number: Int64 in 0..<400 {
      let time = number % 16 == 0 ? number * Self.videoStep : nil
      let shift = continuity.shift(
        stream: 0, dts: time, pts: time, duration: duration, timeBase: Self.ticks)
      #expect(shift == .zero)
    }
    #expect(continuity.jumpCount == 0)
  }

  @Test("A stream without jumps is never shifted", arguments: 0..<20)
  func monotonic(seed: UInt64) {
    var random = SplitMix(seed: seed)
    var continuity = TimestampContinuity()
    var dts = Int64.random(in: -1_000_000_000...1_000_000_000_000, using: &random)
    for _ in 0..<2_000 {
      let isSparse = Int.random(in: 0..<50, using: &random) == 0
      let gap = isSparse ? Int64.random(in: 0...10 * Self.second, using: &random) : 0
      let duration = Int64.random(in: 0...Self.second, using: &random)
      let timestamp = random.next() % 4 == 0 ? nil : dts
      let shift = continuity.shift(
        stream: 0, dts: timestamp, pts: timestamp == nil ? dts : dts + Self.second, duration: duration,
        timeBase: Self.ticks)
      #expect(shift == .zero)
      dts += duration + gap
    }
    #expect(continuity.jumpCount == 0)
  }

  @Test(
    "After jumps all streams go on without a gap, and in step", arguments: 0..<12 as Range<UInt64>,
    [-60_000, 0, 60_000] as [Int64])
  func randomJumps(seed: UInt64, lag: Int64) {
    var random = SplitMix(seed: seed &* 977)
    // A common multiple of both steps, so that both streams end together.
    let unit: Int64 = 28_800
    var parts: [(base: Int64, length: Int64)] = []
    var next = Int64.random(in: 0...1 << 32, using: &random)
    for _ in 0..<30 {
      let length = unit * Int64.random(in: 1...(random.next() % 2 == 0 ? 2 : 60), using: &random)
      parts.append((next, length))
      let forward = Int64.random(in: 945_000...1 << 32, using: &random)
      let back = Int64.random(in: 135_000...1 << 32, using: &random)
      let short = Int64.random(in: 135_000...900_000, using: &random)
      next += length + [forward, -back, -short][Int.random(in: 0..<3, using: &random)]
    }
    var continuity = TimestampContinuity()
    for packet in packets(parts, lag: lag) {
      let shift = shift(&continuity, packet)
      if time(packet.raw) + shift != time(parts[0].base + packet.time) {
        Issue.record("part \(packet.part), stream \(packet.stream), \(packet.raw) shifted by \(shift)")
        return
      }
    }
    #expect(continuity.jumpCount == parts.count - 1)
  }

  @Test("Streams that end apart share the shift of the first that jumps", arguments: 0..<8 as Range<UInt64>)
  func uneven(seed: UInt64) {
    var random = SplitMix(seed: seed &* 31 &+ 5)
    let parts = (0..<20).map { index in
      // 100 s apart, in a row that neither rises nor falls.
      (
        base: Int64((index * 7) % 20) * 100 * Self.second,
        length: Int64.random(in: 200_000...900_000, using: &random)
      )
    }
    var continuity = TimestampContinuity()
    var shifts: [Int: Set<MediaTime>] = [:]
    var ends: [Int: MediaTime] = [:]
    for packet in packets(parts, lag: Int64.random(in: -45_000...45_000, using: &random)) {
      let shift = shift(&continuity, packet)
      shifts[packet.part, default: []].insert(shift)
      let start = time(packet.raw) + shift
      if let end = ends[packet.stream] {
        // A frame of the other stream is the most that is missing or doubled.
        #expect(start <= end + time(Self.videoStep) && end <= start + time(Self.videoStep))
      }
      ends[packet.stream] = start + time(packet.step)
    }
    #expect(shifts.count == parts.count)
    #expect(shifts.values.allSatisfy { $0.count == 1 })
    #expect(continuity.jumpCount == parts.count - 1)
  }

  @Test("Late packets of before a jump keep the old shift")
  func latePackets() {
    var continuity = TimestampContinuity()
    func shift(_ stream: Int, _ seconds: Int64) -> MediaTime {
      continuity.shift(
        stream: stream, dts: seconds * Self.second, pts: nil, duration: Self.second, timeBase: Self.ticks)
    }
    #expect(shift(0, 100) == .zero)
    #expect(shift(1, 100) == .zero)
    #expect(shift(0, 1000) == MediaTime(value: -899, timescale: 1))
    #expect(shift(1, 101) == .zero)
    #expect(shift(1, 102) == .zero)
    #expect(shift(0, 1001) == MediaTime(value: -899, timescale: 1))
    #expect(shift(1, 1000) == MediaTime(value: -899, timescale: 1))
    #expect(shift(0, 0) == MediaTime(value: 103, timescale: 1))
    #expect(continuity.jumpCount == 2)
    // A stream that comes late is put to the others that are near, before or after the jump.
    #expect(shift(2, 1001) == MediaTime(value: -899, timescale: 1))
    #expect(shift(3, 1) == MediaTime(value: 103, timescale: 1))
  }

  @Test("A stream that jumps by less than the thresholds follows the one that jumps by more")
  func narrowJump() {
    var continuity = TimestampContinuity()
    func shift(_ stream: Int, _ dts: Int64) -> MediaTime {
      continuity.shift(stream: stream, dts: dts, pts: nil, duration: Self.second, timeBase: Self.ticks)
    }
    #expect(shift(0, 0) == .zero)
    #expect(shift(1, 0) == .zero)
    #expect(shift(0, 23 * Self.second / 2) == time(-21 * Self.second / 2))
    #expect(shift(1, Self.second) == .zero)
    // 9.4 s after the end of its last packet.
    #expect(shift(1, 114 * Self.second / 10) == time(-21 * Self.second / 2))
    #expect(continuity.jumpCount == 1)
  }

  @Test("The thresholds: ten seconds forward, one second back")
  func thresholds() {
    func jumps(to ticks: Int64) -> Int {
      var continuity = TimestampContinuity()
      _ = continuity.shift(stream: 0, dts: 900_000, pts: nil, duration: 3600, timeBase: Self.ticks)
      let shift = continuity.shift(stream: 0, dts: ticks, pts: nil, duration: 3600, timeBase: Self.ticks)
      #expect((shift == .zero) == (continuity.jumpCount == 0))
      if continuity.jumpCount > 0 { #expect(time(ticks) + shift == time(903_600)) }
      return continuity.jumpCount
    }
    #expect(jumps(to: 903_600 + 900_000) == 0)
    #expect(jumps(to: 903_600 + 900_001) == 1)
    #expect(jumps(to: 810_000) == 0)
    #expect(jumps(to: 809_999) == 1)
  }

  @Test("A pause of one stream is no jump where another goes on")
  func pause() {
    var continuity = TimestampContinuity()
    for second in 0..<60 {
      for stream in [0, 1] where stream == 0 || !(20..<45).contains(second) {
        let shift = continuity.shift(
          stream: stream, dts: Int64(second) * Self.second, pts: nil, duration: Self.second,
          timeBase: Self.ticks)
        #expect(shift == .zero)
      }
    }
    #expect(continuity.jumpCount == 0)
  }

  @Test("A stream that pauses over a jump is put to the one that has gone on")
  func pauseOverJump() {
    var continuity = TimestampContinuity()
    func shift(_ stream: Int, _ seconds: Int64) -> MediaTime {
      continuity.shift(
        stream: stream, dts: seconds * Self.second, pts: nil, duration: Self.second, timeBase: Self.ticks)
    }
    #expect(shift(0, 0) == .zero)
    #expect(shift(1, 0) == .zero)
    for second in 1000..<1020 as Range<Int64> {
      #expect(shift(0, second) == MediaTime(value: -999, timescale: 1))
    }
    #expect(shift(1, 1020) == MediaTime(value: -999, timescale: 1))
    #expect(continuity.jumpCount == 1)
  }

  @Test(
    "A wrap of 33 bits is undone exactly, in both streams, and is no jump", arguments: [-60_000, 0, 60_000])
  func wrapping(lag: Int64) {
    let base = Self.wrap - 5 * Self.second - 1234
    var continuity = TimestampContinuity()
    for packet in packets([(base, 2_880_000)], lag: lag) {
      var wrapped = packet
      wrapped.raw = packet.raw % Self.wrap
      let shift = shift(&continuity, wrapped)
      #expect(time(wrapped.raw) + shift == time(packet.raw))
    }
    #expect(continuity.jumpCount == 0)
  }

  @Test("A wrap in between keeps the gap that is there, and is undone again on the way back")
  func wrapWithGap() {
    var continuity = TimestampContinuity()
    func shift(_ dts: Int64) -> MediaTime {
      continuity.shift(stream: 0, dts: dts, pts: nil, duration: 3600, timeBase: Self.ticks)
    }
    #expect(shift(Self.wrap - 3600) == .zero)
    #expect(shift(5 * Self.second) == time(Self.wrap))
    #expect(shift(Self.wrap + 6 * Self.second) == .zero)
    #expect(continuity.jumpCount == 0)
  }

  @Test("The other timestamp of a packet is brought to the same side of a wrap")
  func unwrapped() {
    func unwrapped(_ pts: Int64, _ dts: Int64) -> Int64 {
      TimestampContinuity.unwrapped(pts: pts, nextTo: dts, timeBase: Self.ticks)
    }
    #expect(unwrapped(50, Self.wrap - 100) == Self.wrap + 50)
    #expect(unwrapped(Self.wrap - 100, 50) == -100)
    #expect(unwrapped(7200, 3600) == 7200)
    #expect(unwrapped(.max, .min) == .max)
    #expect(unwrapped(50, 4 * Self.wrap) == 50)
    #expect(TimestampContinuity.unwrapped(pts: 5, nextTo: 1 << 40, timeBase: Rational(0, 0)) == 5)
    let milliseconds = Rational(1, 1000)
    #expect(
      TimestampContinuity.unwrapped(pts: 1, nextTo: 95_443_000, timeBase: milliseconds) == 95_443_718)
  }

  @Test("Without durations the last distance stands in, and without timestamps the place is counted on")
  func missing() {
    var continuity = TimestampContinuity()
    func shift(_ dts: Int64?, _ pts: Int64?, duration: Int64 = 0) -> MediaTime {
      continuity.shift(stream: 0, dts: dts, pts: pts, duration: duration, timeBase: Self.ticks)
    }
    #expect(shift(nil, nil) == .zero)
    #expect(shift(0, 3600) == .zero)
    #expect(shift(3000, nil) == .zero)
    #expect(shift(nil, 6000) == .zero)
    #expect(shift(9_000_000, nil) == time(9000 - 9_000_000))
    for _ in 0..<30 {
      #expect(shift(nil, nil, duration: Self.second) == time(9000 - 9_000_000))
    }
    #expect(shift(9_000_000 + 31 * Self.second, nil) == time(9000 - 9_000_000))
    #expect(continuity.jumpCount == 1)
  }

  @Test("Streams of different time bases are judged alike")
  func timeBases() {
    var continuity = TimestampContinuity()
    let samples = Rational(1, 48_000)
    func video(_ dts: Int64) -> MediaTime {
      continuity.shift(stream: 0, dts: dts, pts: nil, duration: 3600, timeBase: Self.ticks)
    }
    func audio(_ dts: Int64) -> MediaTime {
      continuity.shift(stream: 1, dts: dts, pts: nil, duration: 1024, timeBase: samples)
    }
    #expect(video(0) == .zero)
    #expect(audio(0) == .zero)
    #expect(video(9_000_000) == time(3600 - 9_000_000))
    #expect(audio(1024) == .zero)
    #expect(audio(4_800_000) == time(3600 - 9_000_000))
    #expect(continuity.jumpCount == 1)
  }

  @Test("Other streams in the place of those before never step back, however short they are")
  func beginning() {
    var continuity = TimestampContinuity()
    let shift = { (continuity: inout TimestampContinuity, stream: Int, dts: Int64, pts: Int64) in
      continuity.shift(stream: stream, dts: dts, pts: pts, duration: Self.videoStep, timeBase: Self.ticks)
    }
    for index in 0..<10 as Range<Int64> {
      let dts = index * Self.videoStep
      #expect(shift(&continuity, 0, dts, dts + 2 * Self.videoStep) == .zero)
      #expect(shift(&continuity, 1, dts, dts) == .zero)
    }
    continuity.beginStreams(frames: 0)
    // The last frame is presented two steps after the last was decoded: these are not held back.
    #expect(shift(&continuity, 0, 0, 0) == time(12 * Self.videoStep))
    #expect(shift(&continuity, 1, 0, 0) == time(12 * Self.videoStep))
    #expect(shift(&continuity, 0, Self.videoStep, Self.videoStep) == time(12 * Self.videoStep))
    continuity.beginStreams(frames: 0)
    // What goes on where it was is where it is.
    #expect(shift(&continuity, 0, 2 * Self.videoStep, 2 * Self.videoStep) == time(12 * Self.videoStep))
    #expect(continuity.jumpCount == 1)
  }

  @Test("Absurd numbers do no harm")
  func extremes() {
    var random = SplitMix(seed: 7)
    var continuity = TimestampContinuity()
    let odd: [Int64] = [.min, .max, 0, -1, 1 << 62]
    for _ in 0..<5_000 {
      _ = continuity.shift(
        stream: Int(random.next() % 3), dts: odd.randomElement(using: &random),
        pts: random.next() % 2 == 0 ? nil : Int64(truncatingIfNeeded: random.next()),
        duration: odd.randomElement(using: &random) ?? 0,
        timeBase: Rational(
          Int32(truncatingIfNeeded: random.next()), Int32(truncatingIfNeeded: random.next())))
    }
    #expect(continuity.jumpCount > 0)
    #expect(continuity.shift(stream: 9, dts: 0, pts: 0, duration: 0, timeBase: Rational(1, 0)).timescale > 0)
  }
}
