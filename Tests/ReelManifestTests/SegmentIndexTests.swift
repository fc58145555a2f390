import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

@Suite struct SegmentIndexTests {
  /// A `sidx` whose subsegments are (type, byte count, duration).
  private func sidx(
    version: UInt64 = 0, timescale: UInt64 = 1000, earliest: UInt64 = 0, firstOffset: UInt64 = 0,
    _ entries: [(UInt64, UInt64, UInt64)]
  ) -> [UInt8] {
    let width = version == 0 ? 4 : 8
    var body = bigEndian(version << 24, bytes: 4) + bigEndian(1, bytes: 4) + bigEndian(timescale, bytes: 4)
    body +=
      bigEndian(earliest, bytes: width) + bigEndian(firstOffset, bytes: width)
      + bigEndian(UInt64(entries.count), bytes: 4)
    for (type, size, duration) in entries {
      body +=
        bigEndian(type << 31 | size, bytes: 4) + bigEndian(duration, bytes: 4)
        + bigEndian(0x9000_0000, bytes: 4)
    }
    return mp4Box("sidx", body)
  }

  private func reference(
    start: MediaTime = .zero, duration: MediaTime? = nil, offset: MediaTime? = .zero,
    initialization: InitializationReference? = nil
  ) -> SegmentIndexReference {
    SegmentIndexReference(
      url: manifestURL, indexRange: nil, initialization: initialization, start: start, duration: duration,
      timestampOffset: offset, discontinuity: 3)
  }

  private func read(
    _ bytes: [UInt8], at offset: Int64, _ reference: SegmentIndexReference
  ) throws(ReelError) -> SegmentList {
    try ManifestReader().segments(fromIndex: bytes, at: offset, of: reference)
  }

  @Test func listsSegmentsFromTheEndOfTheIndex() throws {
    let index = sidx(earliest: 500, firstOffset: 10, [(0, 100, 2000), (0, 50, 1000)])
    let segments = try read(index, at: 700, reference(offset: MediaTime(value: 4, timescale: 1)))
    let first = 700 + Int64(index.count) + 10
    #expect(
      segments.map(\.byteRange) == [
        ByteRange(offset: first, length: 100), ByteRange(offset: first + 100, length: 50),
      ])
    #expect(segments.starts.map(\.seconds) == [4.5, 6.5])
    #expect(segments.durations.map(\.seconds) == [2, 1])
    #expect(segments.end == MediaTime(value: 15, timescale: 2))
    try #require(segments.map(\.number) == [1, 2])
    #expect(segments[0].initialization?.byteRange == ByteRange(offset: 0, length: 700))
    #expect(segments[0].timestampOffset == MediaTime(value: 4, timescale: 1))
    #expect(segments[0].discontinuity == 3)
  }

  @Test func findsTheIndexBehindOtherBoxes() throws {
    let head = mp4Box("ftyp", [1, 2, 3, 4]) + mp4Box("moov", Array(repeating: 0, count: 100))
    let index = sidx(version: 1, earliest: 1 << 33, [(0, 100, 2000)])
    let segments = try read(head + index + mp4Box("moof", []), at: 0, reference(offset: nil))
    try #require(!segments.isEmpty)
    #expect(segments[0].byteRange?.offset == Int64(head.count + index.count))
    #expect(segments[0].initialization?.byteRange == ByteRange(offset: 0, length: Int64(head.count)))
    #expect(segments[0].start == .zero)
    let before = try read(sidx([(0, 1, 1)]) + head, at: 0, reference())
    try #require(!before.isEmpty)
    #expect(before[0].initialization?.byteRange?.length == Int64(head.count + sidx([(0, 1, 1)]).count))
  }

  @Test func statedInitializationIsKept() throws {
    let stated = InitializationReference(url: manifestURL, byteRange: ByteRange(offset: 5, length: 6))
    #expect(try read(sidx([(0, 1, 1)]), at: 0, reference(initialization: stated))[0].initialization == stated)
  }

  @Test func onlySegmentsOfThePeriodAreListed() throws {
    let index = sidx(Array(repeating: (0, 10, 1000), count: 10))
    let segments = try read(
      index, at: 0,
      reference(
        start: MediaTime(value: 20, timescale: 1), duration: MediaTime(value: 5, timescale: 2),
        offset: MediaTime(value: 17, timescale: 1)))
    #expect(segments.map(\.number) == [4, 5, 6])
    #expect(segments.starts.map(\.seconds) == [20, 21, 22])
  }

  @Test func badIndexesAreErrors() {
    let index = sidx([(0, 100, 2000)])
    #expect(manifestError(.badMedia) { _ = try read([], at: 0, reference()) } != nil)
    #expect(manifestError(.badMedia) { _ = try read(Array(index.dropLast()), at: 0, reference()) } != nil)
    #expect(
      manifestError(.badMedia) { _ = try read(mp4Box("moof", [0]), at: 9, reference()) }?.place == .byte(9))
    #expect(
      manifestError(.badMedia) { _ = try read(sidx(timescale: 0, [(0, 1, 1)]), at: 0, reference()) }?.reason
        == "the sidx has a timescale of 0")
    #expect(manifestError(.badMedia) { _ = try read(sidx([]), at: 0, reference()) } != nil)
    #expect(manifestError(.unsupported) { _ = try read(sidx([(1, 1, 1)]), at: 0, reference()) } != nil)
    #expect(
      manifestError(.badMedia) {
        _ = try read(sidx(version: 1, earliest: .max, [(0, 1, 1)]), at: 0, reference())
      } != nil)
    #expect(
      manifestError(.badMedia) {
        _ = try read(sidx(version: 1, firstOffset: UInt64(Int64.max), [(0, 1, 1)]), at: 0, reference())
      }?.reason == "the sidx exceeds 63 bits")
    #expect(manifestError(.badMedia) { _ = try read(index, at: -1, reference()) } != nil)
    #expect(manifestError(.badMedia) { _ = try read(index, at: .max, reference()) } != nil)
    #expect(
      manifestError(.badMedia) { _ = try read([0, 0, 0, 2] + Array("sidx".utf8), at: 0, reference()) } != nil)
  }

  /// A reader that has read `index` at byte 0, and asks for the rest.
  private func reader(
    _ index: [UInt8], limits: ManifestLimits = ManifestLimits()
  ) throws(ReelError) -> SegmentIndexReader {
    var reader = SegmentIndexReader(reference: reference(), limits: limits)
    try reader.add(index, at: 0)
    return reader
  }

  @Test func aHierarchyIsReadRangeByRange() throws {
    let left = sidx(earliest: 0, [(0, 10, 1000), (0, 20, 1000)])
    let right = sidx(earliest: 2000, [(0, 30, 500)])
    let top = sidx([(1, UInt64(left.count) + 30, 2000), (1, UInt64(right.count) + 30, 500)])
    var reader = try reader(top)
    #expect(reader.missing == ByteRange(offset: Int64(top.count), length: Int64(left.count) + 30))
    #expect(manifestError(.badMedia) { _ = try reader.segments() } != nil)
    try reader.add(left, at: Int64(top.count))
    let second = top.count + left.count + 30
    #expect(reader.missing == ByteRange(offset: Int64(second), length: Int64(right.count) + 30))
    try reader.add(right, at: Int64(second))
    #expect(reader.missing == nil)
    let segments = try reader.segments()
    #expect(segments.map(\.number) == [1, 2, 3])
    #expect(segments.starts.map(\.seconds) == [0, 1, 2])
    let first = Int64(top.count + left.count)
    #expect(
      segments.map(\.byteRange) == [
        ByteRange(offset: first, length: 10), ByteRange(offset: first + 10, length: 20),
        ByteRange(offset: Int64(second + right.count), length: 30),
      ])
  }

  @Test func nestedIndexesAtHandAreNotAskedFor() throws {
    let last = sidx(earliest: 3000, [(0, 5, 1000)])
    let middle = sidx(earliest: 1000, [(0, 7, 2000), (1, UInt64(last.count) + 5, 1000)])
    let top = sidx([(0, 9, 1000), (1, UInt64(middle.count) + 7 + UInt64(last.count) + 5, 3000)])
    let file = top + [UInt8](repeating: 0, count: 9) + middle + [UInt8](repeating: 0, count: 7) + last
    let segments = try read(file, at: 0, reference())
    #expect(segments.starts.map(\.seconds) == [0, 1, 3])
    #expect(segments.map(\.byteRange?.length) == [9, 7, 5])
  }

  @Test func aChainMayBeLongAndAHierarchyDeepOnlyToALimit() throws {
    // Each index has one segment of 4 bytes, and leads to the next; all have the same size.
    let size = sidx([(0, 4, 1000), (1, 0, 0)]).count
    var chain = try reader(sidx([(0, 4, 1000), (1, 100, 1000)]))
    for step in 1..<100 {
      let missing = try #require(chain.missing)
      #expect(missing.offset == Int64(step * (size + 4)))
      let isLast = step == 99
      let start = UInt64(step * 1000)
      try chain.add(
        isLast
          ? sidx(earliest: start, [(0, 4, 1000)])
          : sidx(earliest: start, [(0, 4, 1000), (1, 100, 1000)]), at: missing.offset)
    }
    #expect(try chain.segments().count == 100)

    var deep = try reader(sidx([(1, 9000, 1000)]))
    let error = manifestError(.badMedia) {
      for _ in 0..<20 { try deep.add(sidx([(1, 9000, 1000)]), at: try #require(deep.missing).offset) }
    }
    #expect(error?.reason == "sidx boxes nested more than 8 deep")
  }

  @Test func aLoopIsAnError() {
    // Both references have no bytes, so that both lead to what stands behind the first index.
    let top = sidx([(1, 0, 1000), (1, 0, 1000)])
    let error = manifestError(.badMedia) { _ = try read(top + sidx([(0, 1, 1)]), at: 0, reference()) }
    #expect(error?.reason == "the sidx boxes lead to the same one twice")
    #expect(error?.place == .byte(Int64(top.count)))
  }

  @Test func aRangeThatIsTooShortIsAskedForAgainOnce() throws {
    let index = sidx([(0, 100, 2000), (0, 100, 2000)])
    var reader = try reader(Array(index.prefix(20)))
    #expect(reader.missing == ByteRange(offset: 0, length: Int64(index.count)))
    let error = manifestError(.badMedia) { try reader.add(Array(index.prefix(30)), at: 0) }
    #expect(error?.reason == "the sidx has \(index.count) bytes, of which 30 are there")
    try reader.add(index, at: 0)
    #expect(try reader.segments().count == 2)
  }

  @Test func whatIsAskedForMustCome() throws {
    var reader = try reader(sidx([(1, 50, 1000)]))
    #expect(manifestError(.badMedia) { try reader.add([], at: 0) }?.reason == "the sidx ends too early")
    let place = try #require(reader.missing).offset
    #expect(
      manifestError(.badMedia) { try reader.add(mp4Box("free", [0, 0]) + mp4Box("moof", []), at: place) }
        != nil)
  }

  @Test func segmentsOfAnIndexAreBounded() {
    let limits = ManifestLimits(segments: 2)
    #expect(
      manifestError(.badMedia) {
        _ = try reader(sidx(Array(repeating: (0, 1, 1), count: 3)), limits: limits)
      }?.reason == "more than 2 segments")
  }

  @Test func anIndexCutAnywhereIsAnError() {
    let index = sidx(version: 1, [(0, 100, 2000), (0, 100, 2000)])
    for count in 0..<index.count {
      #expect(
        manifestError(.badMedia) { _ = try read(Array(index.prefix(count)), at: 0, reference()) } != nil)
    }
  }
}
