import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

/// The first frame of a transport stream has the same samples however its bytes arrive.
@Suite("The first frame when bytes arrive in pieces", .hangLimit)
struct FirstFrameCutTests {
  /// True to try every position instead of a selection: `REEL_EXHAUSTIVE=1`, as set by `Scripts/fuzz --first-frames`.
  private static let isExhaustive = ProcessInfo.processInfo.environment["REEL_EXHAUSTIVE"] != nil

  static let names = Fixtures.names(in: "transport").filter { $0 != "h264-sets-late.ts" }

  @Test("It equals ffmpeg's, in two pieces cut anywhere, and byte by byte", arguments: names)
  func cuts(name: String) throws {
    let bytes = try Fixtures.bytes("transport/\(name)")
    let expected = try #require(try Golden("transport-\(name)").frames.first).md5
    let whole = try #require(try first(of: MemorySource(bytes, isSeekable: false)))
    try #require(whole.md5 == expected)
    #expect(!whole.isDamaged)
    #expect(try first(of: MemorySource(bytes, chunkByteCount: 1, isSeekable: false)) == whole)
    for position in Self.positions(in: bytes) {
      try #require(try first(of: CutSource(bytes, at: position)) == whole, "cut at \(position)")
    }
  }

  @Test("It is the first of all frames", arguments: names)
  func allFrames(name: String) throws {
    let bytes = try Fixtures.bytes("transport/\(name)")
    let golden = try Golden("transport-\(name)").frames.map(\.md5)
    let first = try first(of: MemorySource(bytes, isSeekable: false))
    let plain = try makeReader(bytes, .mpegTS, isSeekable: false).rest()
    #expect(first == plain.first)
    #expect(plain.map(\.md5) == golden)
    // The first frame is requested first, then the rest.
    let reader = try makeReader(bytes, .mpegTS, isSeekable: false)
    let both = try [reader.first()].compactMap { $0 } + reader.rest()
    #expect(both == plain)
  }

  private func first(of source: any ByteSource) throws -> Seen? {
    try ClipReader(
      source: source, format: .mpegTS, name: "test", logger: silentLogger
    ).first()
  }

  /// Positions around the transport packets, PES packets and NAL units of the first frames, and some others.
  private static func positions(in bytes: [UInt8]) -> [Int] {
    // The first access unit ends before the third PES packet begins.
    let begins = stride(from: 0, to: bytes.count, by: 188).filter {
      bytes[$0 + 1] & 0x5f == 0x41 && bytes[$0 + 2] == 0
    }
    let end = min(bytes.count - 1, (begins.count > 2 ? begins[2] : bytes.count) + 2 * 188)
    if isExhaustive { return Array(1..<end) }
    let units = (3..<end).filter { bytes[$0 - 3] == 0 && bytes[$0 - 2] == 0 && bytes[$0 - 1] == 1 }
    let near = (stride(from: 188, to: end, by: 188).map { $0 } + units).flatMap { $0 - 2...$0 + 2 }
    var random = SplitMix(seed: UInt64(bytes.count))
    let seeded = (0..<200).map { _ in Int.random(in: 1..<end, using: &random) }
    return Set(near + seeded).filter { (1..<end).contains($0) }.sorted()
  }
}

/// Bytes in two pieces.
private final class CutSource: ByteSource {
  let byteCount: Int64? = nil
  let isSeekable = false
  private let bytes: [UInt8]
  private let cut: Int
  private var offset = 0

  init(_ bytes: [UInt8], at cut: Int) {
    self.bytes = bytes
    self.cut = cut
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let end = offset < cut ? cut : bytes.count
    let count = min(buffer.count, end - offset)
    buffer.copyBytes(from: bytes[offset..<offset + count])
    offset += count
    return count
  }

  func seek(to offset: Int64) { self.offset = Int(offset) }
}
