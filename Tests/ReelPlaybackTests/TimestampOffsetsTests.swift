import Foundation
import ReelCore
import ReelManifest
import Testing

@testable import ReelReading
@testable import ReelSources

@Suite("Timelines that readers share")
struct TimestampOffsetsTests {
  private func seconds(_ value: Int64) -> MediaTime { MediaTime(value: value, timescale: 1) }

  private func segment(
    _ number: Int64, start: Int64, discontinuity: Int = 0, offset: MediaTime? = nil
  ) -> SegmentReference {
    SegmentReference(
      number: number, url: URL(filePath: "/\(number).ts"), start: seconds(start), duration: seconds(4),
      discontinuity: discontinuity, timestampOffset: offset)
  }

  /// Segments of 4 s, of these numbers, from the beginning of a playlist.
  private func live(_ numbers: ClosedRange<Int64>) -> LiveSegments {
    let list = SegmentList(
      numbers.enumerated().map { index, number in segment(number, start: Int64(index) * 4) })
    return LiveSegments(
      LiveReading(segments: list, live: nil), identity: .number, clock: SystemWallClock(),
      stallLimit: .seconds(30)
    ) { throw ReelError(.network, "not to be read") }
  }

  @Test("Segments with one discontinuity number share a offset, whatever their rung")
  func discontinuities() {
    let table = TimestampOffsets()
    let first = table.offset(for: segment(1, start: 0), period: 0)
    #expect(table.offset(for: segment(9, start: 32), period: 0) === first)
    #expect(table.offset(for: segment(1, start: 0, discontinuity: 1), period: 0) !== first)
    #expect(table.offset(for: segment(1, start: 0), period: 1) !== first)
    first.begin(seconds(10), at: .zero)
    #expect(table.offset(for: segment(9, start: 32), period: 0).knownValue == seconds(-10))
  }

  @Test("An offset that the manifest states is a offset of its own")
  func stated() {
    let table = TimestampOffsets()
    let offset = table.offset(for: segment(1, start: 0, offset: seconds(-7)), period: 0)
    #expect(offset.knownValue == seconds(-7))
    #expect(table.offset(for: segment(1, start: 0), period: 0).knownValue == nil)
  }

  @Test("The offsets of long ago are forgotten")
  func limit() {
    let table = TimestampOffsets()
    let first = table.offset(for: segment(1, start: 0), period: 0)
    for number in 1..<256 { _ = table.offset(for: segment(1, start: 0, discontinuity: number), period: 0) }
    #expect(table.offset(for: segment(1, start: 0), period: 0) === first)
    _ = table.offset(for: segment(1, start: 0, discontinuity: 256), period: 0)
    #expect(table.offset(for: segment(1, start: 0), period: 0) !== first)
  }

  @Test("Live playlists are laid beside the first one by the numbers of their segments")
  func aligned() throws {
    let table = TimestampOffsets()
    let reference = live(10...15)
    #expect(table.aligned(reference).reference === reference)
    for (numbers, index, start) in [
      (12...17, 0, 8), (10...15, 0, 0), (7...12, 3, 0), (15...20, 1, 24),
    ] as [(ClosedRange<Int64>, Int, Int64)] {
      let moved = table.aligned(live(numbers))
      #expect(moved[index]?.start == seconds(start), "\(numbers)")
    }
  }

  @Test("Live playlists without a common segment end at the same time")
  func alignedWithoutOverlap() {
    let table = TimestampOffsets()
    _ = table.aligned(live(10...15))
    let moved = table.aligned(live(100...102))
    #expect(moved[2]?.start == seconds(20))
  }

  @Test("Segments that are moved are found at their new times")
  func moved() async throws {
    let moved = SegmentSupply.live(live(10...12), shift: seconds(100))
    #expect(moved.firstIndex == 0)
    #expect(moved.knownIndexes == 0..<3)
    #expect(moved[1]?.start == seconds(104))
    #expect(moved[1]?.number == 11)
    #expect(moved[3] == nil)
    #expect(moved.index(at: seconds(103)) == 0)
    #expect(moved.index(at: seconds(104)) == 1)
    #expect(moved.index(at: seconds(4)) == 0)
    let found = try await moved.segment(from: 2)
    #expect(found?.index == 2)
    #expect(found?.segment.start == seconds(108))
    #expect(moved.reference == nil && moved.timing == nil && moved.missedCount == 0)
  }
}
