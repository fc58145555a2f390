import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

/// A stream of fragments that is read forward gets another demuxer from time to time, because a demuxer keeps an index of
/// all samples.
@Suite("Continuing fragmented MP4 with other demuxers", .hangLimit)
struct FragmentRenewalTests {
  /// A packet as a reader returns it.
  private struct Unit: Hashable {
    let isVideo: Bool
    let pts: Int64?
    let dts: Int64?
    let duration: Int64
    let position: Int64?
    /// The flags, the side data and the bytes.
    let hash: Int

    init(_ packet: Packet, isVideo: Bool) {
      self.isVideo = isVideo
      (pts, dts, duration) = (packet.presentationTicks, packet.decodingTicks, packet.durationTicks)
      position = packet.position
      var hasher = Hasher()
      packet.hash(into: &hasher)
      hash = hasher.finalize()
    }
  }

  private func reader(_ bytes: [UInt8], renewalSampleCount: Int, wantsVideo: Bool = true) throws
    -> ContainerReader
  {
    var options = ContainerReader.Options()
    options.isSeekable = false
    options.wantsVideo = wantsVideo
    options.wantsAudio = true
    options.keys = TestKeys.fixtures
    options.renewalSampleCount = renewalSampleCount
    return try ContainerReader(
      source: MemorySource(bytes, isSeekable: false), format: .mp4, options: options, name: "t",
      logger: silentLogger)
  }

  /// The packets until the end or an error.
  private struct Outcome: Hashable {
    var units: [Unit] = []
    var error: ReelError?
  }

  private func outcome(_ reader: ContainerReader) -> Outcome {
    var outcome = Outcome()
    do {
      while true {
        switch try reader.next() {
        case .video(let packet): outcome.units.append(Unit(packet, isVideo: true))
        case .audio(let packet): outcome.units.append(Unit(packet, isVideo: false))
        case .programChanged: Issue.record("the program changed")
        case .end: return outcome
        }
      }
    } catch {
      outcome.error = error as? ReelError
      return outcome
    }
  }

  /// The number of samples in the demuxer's index.
  private func indexCount(_ reader: ContainerReader) -> Int {
    var count = 0
    reader.forEachSample { _ in count += 1 }
    return count
  }

  private func expectSame(
    _ bytes: [UInt8], wantsVideo: Bool = true, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let one = try reader(bytes, renewalSampleCount: .max, wantsVideo: wantsVideo)
    let expected = outcome(one)
    let many = try reader(bytes, renewalSampleCount: 1, wantsVideo: wantsVideo)
    #expect(outcome(many) == expected, sourceLocation: sourceLocation)
    #expect(many.isTruncated == one.isTruncated, sourceLocation: sourceLocation)
    #expect(many.takeDamage() == one.takeDamage(), sourceLocation: sourceLocation)
    #expect(many.position == one.position, sourceLocation: sourceLocation)
    #expect(indexCount(many) < indexCount(one), sourceLocation: sourceLocation)
  }

  private static func joined(_ folder: String, _ names: [String]) throws -> [UInt8] {
    try names.flatMap { try Fixtures.bytes("\(folder)/\($0)") }
  }

  private static let segments = (0..<3).map { "segment-\($0).m4s" }

  @Test(
    "Packets are the same with a demuxer for each fragment",
    arguments: [
      ["hls-fmp4/high/init.mp4"] + segments.map { "hls-fmp4/high/\($0)" },
      ["hls-hevc/init.mp4", "hls-hevc/segment-0.m4s", "hls-hevc/segment-1.m4s"],
      ["media/h264-fragmented.mp4"], ["media/h264-fragmented-sidx.mp4"], ["media/h264-avc3-inband.mp4"],
      ["media/hevc-hev1-inband.mp4"], ["dash-ondemand/high.mp4"], ["dash-segmentlist/media-0.mp4"],
      ["hls-byterange-fmp4/media.mp4"], ["encrypted/clear-lead/video.mp4"], ["encrypted/cbcs/video.mp4"],
      ["encrypted/cenc/video.mp4"],
    ])
  func same(paths: [String]) throws {
    let bytes = try paths.flatMap { try Fixtures.bytes($0) }
    try expectSame(bytes)
    // Cut off in the middle, and with damage between fragments.
    try expectSame(Array(bytes.dropLast(bytes.count / 10)))
    let last = try #require(bytes.lastMoof)
    try expectSame(bytes[..<last] + [UInt8](repeating: 0xee, count: 500) + bytes[last...])
  }

  @Test("Sound keeps its samples, without a second priming")
  func sound() throws {
    let bytes = try Fixtures.bytes("media/audio-aac-fragmented.mp4")
    // The file has one fragment: it again, with a later time.
    let fragment = try #require(bytes.lastMoof)
    let end = try #require(bytes.lastPlace(of: "mfra"))
    var later = Array(bytes[fragment..<end])
    try later.setFragmentTime(48_000)
    try expectSame(bytes[..<end] + later, wantsVideo: false)
  }

  @Test("Fragments that overlap are marked as by one demuxer")
  func overlapping() throws {
    let folder = "hls-fmp4/high"
    let names = ["init.mp4"] + [0, 1, 1, 0, 2, 2, 1].map { Self.segments[$0] }
    try expectSame(Self.joined(folder, names))
  }

  @Test("Negative composition offsets move all later frames as with one demuxer")
  func negativeOffsets() throws {
    var bytes = try Self.joined("hls-fmp4/high", ["init.mp4"] + Self.segments + Self.segments)
    for (index, offset) in [-512, -3000, 0, -100, -4000, -1].enumerated() {
      try bytes.moveCompositionOffsets(ofFragment: index, by: Int32(offset))
    }
    try expectSame(bytes)
    let pts = outcome(try reader(bytes, renewalSampleCount: 1)).units.compactMap(\.pts)
    #expect(pts.count > 100)
  }

  @Test(
    "Fragments without their times go on where the last one has ended",
    arguments: [
      ["hls-fmp4/high/init.mp4"] + segments.map { "hls-fmp4/high/\($0)" },
      ["hls-hevc/init.mp4", "hls-hevc/segment-0.m4s", "hls-hevc/segment-1.m4s"],
      ["media/h264-fragmented.mp4"], ["dash-segmentlist/media-0.mp4"], ["encrypted/cenc/video.mp4"],
      ["encrypted/cbcs/video.mp4"],
    ])
  func noTimes(paths: [String]) throws {
    var bytes = try paths.flatMap { try Fixtures.bytes($0) }
    let times = bytes.places(of: "tfdt")
    try #require(times.count > 1)
    // An index of segments would state the times.
    for place in bytes.places(of: "sidx") { bytes.rename(place, "free") }
    var none = bytes
    for place in times { none.rename(place, "free") }
    try expectSame(none)
    // Some of them, and durations of samples that only the `moov` box states.
    var some = bytes
    for (index, place) in times.enumerated() where index % 3 != 0 { some.rename(place, "free") }
    try expectSame(some)
  }

  @Test("A fragment that has its time in an index of segments does not begin with another demuxer")
  func timeInIndex() throws {
    var bytes = try Fixtures.bytes("media/h264-fragmented-sidx.mp4")
    for place in bytes.places(of: "tfdt") { bytes.rename(place, "free") }
    let one = try reader(bytes, renewalSampleCount: .max)
    let many = try reader(bytes, renewalSampleCount: 1)
    #expect(outcome(many) == outcome(one))
    #expect(indexCount(many) == indexCount(one))
  }

  @Test(
    "Boxes of unknown types change no packet, wherever they are",
    arguments: ["wide", "imda", "zzzz", "trun", "stsd", "tfhd"], [1, .max])
  func unknownBoxes(type: String, renewalSampleCount: Int) throws {
    let bytes = try Self.joined("hls-fmp4/high", ["init.mp4"] + Self.segments)
    let expected = outcome(try reader(bytes, renewalSampleCount: renewalSampleCount))
    var mixed: [UInt8] = []
    for box in MP4Box.all(in: bytes[...]) {
      // The samples of a fragment count from its `moof` box.
      if box.type != "mdat" { mixed += mp4Box(type, [UInt8](repeating: 1, count: 40)) }
      mixed += bytes[box.start..<box.end]
    }
    // The last one has no size.
    mixed += [0, 0, 0, 0] + Array(type.utf8) + [UInt8](repeating: 1, count: 40)
    let reader = try reader(mixed, renewalSampleCount: renewalSampleCount)
    let found = outcome(reader)
    #expect(found.error == nil && reader.takeDamage() == nil)
    #expect(found.units.map(\.hash) == expected.units.map(\.hash))
    #expect(found.units.map(\.pts) == expected.units.map(\.pts))
  }

  @Test("The index of a long stream does not grow", arguments: [true, false])
  func long(hasTimes: Bool) throws {
    let header = try Fixtures.bytes("hls-fmp4/high/init.mp4")
    var segment = try Fixtures.bytes("hls-fmp4/high/segment-0.m4s")
    if !hasTimes {
      for type in ["tfdt", "sidx"] { for place in segment.places(of: type) { segment.rename(place, "free") } }
    }
    var options = ContainerReader.Options()
    options.isSeekable = false
    let reader = try ContainerReader(
      source: RepeatingSource(header, then: segment, count: 400), format: .mp4, options: options, name: "t",
      logger: silentLogger)
    var (count, largest) = (0, 0)
    var last: Int64?
    while case .video(let packet) = try reader.next() {
      count += 1
      let ticks = packet.decodingTicks
      if !hasTimes, let ticks, let last { #expect(ticks == last + packet.durationTicks) }
      last = ticks
      if count % 100 == 0 { largest = max(largest, indexCount(reader)) }
    }
    #expect(count > 2 * options.renewalSampleCount)
    #expect(largest <= options.renewalSampleCount + 100)
  }
}

/// Bytes, and then others so many times.
private final class RepeatingSource: ByteSource {
  let byteCount: Int64? = nil
  let isSeekable = false
  private let repeated: [UInt8]
  private var count: Int
  private var rest: ArraySlice<UInt8>

  init(_ first: [UInt8], then repeated: [UInt8], count: Int) {
    (rest, self.repeated, self.count) = (first[...], repeated, count)
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    if rest.isEmpty, count > 0 {
      rest = repeated[...]
      count -= 1
    }
    let given = rest.prefix(buffer.count)
    buffer.copyBytes(from: given)
    rest = rest.dropFirst(given.count)
    return given.count
  }

  func seek(to offset: Int64) throws { throw ReelError(.internalFault, "not seekable") }
}

extension [UInt8] {
  /// The offset of the last `moof` box.
  fileprivate var lastMoof: Int? { lastPlace(of: "moof") }

  /// The offset of the last box of a type.
  fileprivate func lastPlace(of type: String) -> Int? { places(of: type).last }

  /// Sets the decoding time of a fragment with one track.
  fileprivate mutating func setFragmentTime(_ ticks: UInt32) throws {
    let body = try #require(lastPlace(of: "tfdt")) + 8
    let place = body + (self[body] == 0 ? 4 : 8)
    replaceSubrange(place..<place + 4, with: ticks.bigEndianBytes)
  }
}
