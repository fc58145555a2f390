import ReelCore
import ReelTestSupport
import Testing

@Suite("Fragments of MP4 files")
struct MP4FragmentTests {
  private func full(_ type: String, flags: UInt64, _ fields: [UInt64]) -> [UInt8] {
    mp4Box(type, bigEndian(flags, bytes: 4) + fields.flatMap { bigEndian($0, bytes: 4) })
  }

  private func fragments(_ tracks: [[UInt8]]) -> [TrackFragment] {
    TrackFragment.all(in: mp4Box("moof", mp4Box("mfhd") + tracks.flatMap { mp4Box("traf", $0) })[...])
  }

  @Test("The base and the values of a header")
  func headers() throws {
    let found = fragments([
      full("tfhd", flags: 0x3b, [1, 0, 77, 2, 100, 200, 0x10000]), full("tfhd", flags: 0x2_0000, [2]),
      full("tfhd", flags: 0x18, [3, 5, 6]),
    ])
    #expect(found.map(\.track) == [1, 2, 3])
    #expect(found.map(\.base) == [.file(77), .fragment, .previous])
    #expect(found.map(\.defaults.description) == [2, nil, nil])
    #expect(found.map(\.defaults.duration) == [100, nil, 5])
    #expect(found.map(\.defaults.size) == [200, nil, 6])
    #expect(found.map(\.defaults.flags) == [0x10000, nil, nil])
    #expect(found.allSatisfy { $0.start == nil && $0.runs.isEmpty })
  }

  @Test("A track without a whole header is left out; the times of others stay")
  func damagedHeaders() {
    let header = full("tfhd", flags: 0, [9])
    let found = fragments([
      full("tfhd", flags: 0x8, [1]), full("tfdt", flags: 0, [5]), header + full("tfdt", flags: 0, [7]),
      header + full("tfdt", flags: 0x100_0000, [1, 2]), header + full("tfdt", flags: 0, []),
    ])
    #expect(found.map(\.start) == [7, 1 << 32 | 2, nil])
  }

  @Test("The samples of a run, with offsets below zero, as far as they are there")
  func samples() throws {
    let run = full(
      "trun", flags: 0xf05,
      [3, UInt64(UInt32(bitPattern: -8)), 1, 10, 20, 30, 0xffff_fffe, 11, 21, 31, 4, 12])
    let track = try #require(fragments([full("tfhd", flags: 0, [1]) + run]).first)
    let read = try #require(track.runs.first)
    #expect(read.count == 3 && read.readableCount == 2)
    #expect(read.dataOffset?.value == -8)
    #expect(read.statesDurations && read.statesCompositionOffsets)
    let samples = (0..<2).map { read[$0] }
    #expect(samples.map(\.duration) == [10, 11] && samples.map(\.size) == [20, 21])
    #expect(samples.map(\.flags) == [1, 31] && samples.map(\.compositionOffset) == [-2, 4])
    // A run without fields for its samples has as many as it states.
    let plain = try #require(fragments([full("tfhd", flags: 0, [1]) + full("trun", flags: 0, [9])]).first)
    #expect(plain.runs.first?.readableCount == 9)
    #expect(plain.runs.first?[3].size == nil)
  }

  @Test("Runs after one that can't be read are left out")
  func damagedRuns() {
    let good = full("trun", flags: 0x200, [1, 5])
    let found = fragments([full("tfhd", flags: 0, [1]) + good + full("trun", flags: 0x1, [1]) + good])
    #expect(found.map(\.runs.count) == [1])
  }

  @Test("The values of the header of the file, as far as they are there")
  func fileDefaults() {
    let whole = full("trex", flags: 0, [1, 2, 3, 4, 5])
    let movie = mp4Box("moov", mp4Box("mvex", whole + full("trex", flags: 0, [2, 1, 9])))
    let found = FragmentDefaults.all(inMovie: movie[...])
    #expect(found[1]?.description == 2 && found[1]?.duration == 3 && found[1]?.size == 4)
    #expect(found[2]?.duration == 9 && found[2]?.size == nil)
  }
}
