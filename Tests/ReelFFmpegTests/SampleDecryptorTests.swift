import ReelCore
import Testing

@testable import ReelFFmpeg

/// Test vectors from NIST SP 800-38A, F.2.1 and F.5.1.
private enum Vectors {
  static let key = ContentKey("2b7e151628aed2a6abf7158809cf4f3c")
  static let vector = hex("000102030405060708090a0b0c0d0e0f")
  static let counter = hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
  static let plain = hex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
      + "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
  static let chained = hex(
    "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"
      + "73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7")
  static let counted = hex(
    "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
      + "5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee")

  static func hex(_ text: String) -> [UInt8] {
    stride(from: 0, to: text.count, by: 2).map { index in
      let start = text.index(text.startIndex, offsetBy: index)
      return UInt8(text[start..<text.index(start, offsetBy: 2)], radix: 16) ?? 0
    }
  }
}

@Suite("Decrypting samples")
struct SampleDecryptorTests {
  private typealias Subsample = SampleProtection.Subsample

  private func decrypt(
    _ bytes: [UInt8], _ scheme: FourCC, vector: [UInt8], pattern: (Int, Int) = (0, 0),
    _ subsamples: [(Int, Int)] = []
  ) throws -> [UInt8] {
    var bytes = bytes
    let key = try #require(Vectors.key)
    let id = try #require(KeyID(bytes: [UInt8](repeating: 1, count: 16)))
    let protection = SampleProtection(
      scheme: scheme, keyID: id, vector: vector, cryptBlocks: pattern.0, skipBlocks: pattern.1,
      subsamples: subsamples.map { Subsample(clearByteCount: $0.0, protectedByteCount: $0.1) })
    try bytes.withUnsafeMutableBytes {
      try SampleDecryptor().decrypt($0, protection, key: key)
    }
    return bytes
  }

  @Test func `Whole samples, by the vectors of NIST`() throws {
    #expect(try decrypt(Vectors.counted, .cenc, vector: Vectors.counter) == Vectors.plain)
    #expect(try decrypt(Vectors.chained, .cbc1, vector: Vectors.vector) == Vectors.plain)
    #expect(try decrypt(Vectors.chained, .cbcs, vector: Vectors.vector) == Vectors.plain)
    #expect(try decrypt([], .cbcs, vector: Vectors.vector) == [])
  }

  @Test(arguments: [1, 15, 16, 17, 31, 63])
  func `What is left of a block at the end is in the clear, but for a counter`(count: Int) throws {
    let whole = count / 16 * 16
    #expect(
      try decrypt(Array(Vectors.counted.prefix(count)), .cenc, vector: Vectors.counter)
        == Array(Vectors.plain.prefix(count)))
    let expected = join(Array(Vectors.plain.prefix(whole)), Array(Vectors.chained[whole..<count]))
    for scheme in [FourCC.cbc1, .cbcs] {
      #expect(
        try decrypt(Array(Vectors.chained.prefix(count)), scheme, vector: Vectors.vector) == expected)
    }
  }

  private func join(_ parts: [UInt8]...) -> [UInt8] { parts.flatMap { $0 } }

  /// Counters and chains continue across the clear bytes between subsamples. With `cbcs`, the chain starts again.
  @Test func `Subsamples`() throws {
    let clear: [UInt8] = Array(100..<107)
    let map = [(7, 16), (7, 48)]
    func mixed(_ bytes: [UInt8]) -> [UInt8] {
      join(clear, Array(bytes.prefix(16)), clear, Array(bytes.dropFirst(16)))
    }
    #expect(
      try decrypt(mixed(Vectors.counted), .cenc, vector: Vectors.counter, map) == mixed(Vectors.plain))
    #expect(
      try decrypt(mixed(Vectors.chained), .cbc1, vector: Vectors.vector, map) == mixed(Vectors.plain))
    let first = Array(Vectors.chained.prefix(16))
    let plain = Array(Vectors.plain.prefix(16))
    #expect(
      try decrypt(join(clear, first, clear, first), .cbcs, vector: Vectors.vector, [(7, 16), (7, 16)])
        == join(clear, plain, clear, plain))
    // With a counter and a range that is not a whole number of blocks, the key stream continues within a block.
    func split(_ bytes: [UInt8]) -> [UInt8] {
      join(Array(bytes.prefix(10)), clear, Array(bytes.dropFirst(10)))
    }
    #expect(
      try decrypt(split(Vectors.counted), .cenc, vector: Vectors.counter, [(0, 10), (7, 54)])
        == split(Vectors.plain))
  }

  /// One block of three is encrypted. The counter counts only encrypted blocks, and the chain skips the clear ones.
  @Test func `Patterns`() throws {
    let gap: [UInt8] = Array(0..<32)
    func mixed(_ bytes: [UInt8]) -> [UInt8] {
      join(Array(bytes[0..<16]), gap, Array(bytes[16..<32]), gap, Array(bytes[32..<48]), [1, 2, 3])
    }
    let map = [(0, 115)]
    #expect(
      try decrypt(mixed(Vectors.counted), .cens, vector: Vectors.counter, pattern: (1, 2), map)
        == mixed(Vectors.plain))
    #expect(
      try decrypt(mixed(Vectors.chained), .cbcs, vector: Vectors.vector, pattern: (1, 2), map)
        == mixed(Vectors.plain))
    // Two blocks of four are encrypted. The sample ends with one block and a part; only the whole block is encrypted.
    func cut(_ bytes: [UInt8]) -> [UInt8] {
      join(Array(bytes[0..<32]), gap, Array(bytes[32..<48]), Array(0..<15))
    }
    #expect(
      try decrypt(cut(Vectors.chained), .cbcs, vector: Vectors.vector, pattern: (2, 2), [(0, 95)])
        == cut(Vectors.plain))
    #expect(
      try decrypt(cut(Vectors.counted), .cens, vector: Vectors.counter, pattern: (2, 2), [(0, 95)])
        == cut(Vectors.plain))
    // Without a pattern, all blocks are encrypted.
    #expect(
      try decrypt(Vectors.chained, .cbcs, vector: Vectors.vector, pattern: (1, 0), [(0, 64)])
        == Vectors.plain)
  }

  /// Only the last 64 bits count (ISO/IEC 23001-7 §9.3).
  @Test func `A counter that wraps leaves the first half alone`() throws {
    let high: [UInt8] = Array(1...8)
    let zeros = [UInt8](repeating: 0, count: 32)
    let wrapped = try decrypt(zeros, .cenc, vector: join(high, [UInt8](repeating: 0xff, count: 8)))
    let begun = try decrypt(
      Array(zeros.prefix(16)), .cenc, vector: join(high, [UInt8](repeating: 0, count: 8)))
    #expect(Array(wrapped.suffix(16)) == begun)
  }

  @Test(arguments: [[(0, 65)], [(64, 1)], [(10, 10), (65535, 4_294_967_295)]])
  func `A map beyond the sample is an error`(map: [(Int, Int)]) {
    for scheme in [FourCC.cenc, .cens, .cbc1, .cbcs] {
      let error = #expect(throws: ReelError.self) {
        _ = try decrypt(Vectors.chained, scheme, vector: Vectors.vector, pattern: (1, 9), map)
      }
      #expect(error?.kind == .badMedia)
      #expect(error?.reason.contains("in a sample of 64") == true)
    }
  }

  @Test func `Another scheme is named`() {
    let error = #expect(throws: ReelError.self) {
      _ = try decrypt([0], "piff", vector: Vectors.vector)
    }
    #expect(error?.kind == .unsupported)
    #expect(error?.reason.contains("'piff'") == true)
  }

  // MARK: SAMPLE-AES

  private func makeTransport() throws -> TransportDecryptor {
    TransportDecryptor(
      cipher: SampleDecryptor(), key: try #require(Vectors.key), vector: Vectors.vector)
  }

  @Test func `A slice is unescaped, and one block of ten decrypted`() throws {
    // A header and 31 bytes, an encrypted block, nine clear blocks, an encrypted block, and the last bytes.
    let leader = join([0x65], Array(1...31))
    let gap = [UInt8](repeating: 0x55, count: 144)
    let plain = join(leader, Array(Vectors.plain[0..<16]), gap, Array(Vectors.plain[16..<32]), [0, 0, 1, 9])
    let unit = join(
      leader, Array(Vectors.chained[0..<16]), gap, Array(Vectors.chained[16..<32]), [0, 0, 3, 1, 9])
    let header: [UInt8] = [0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 1]
    let short = join([0, 0, 1, 0x41], [UInt8](repeating: 7, count: 47), [0, 0, 0, 1, 6, 5])
    let bytes = join(header, unit, short)
    let transport = try makeTransport()
    let result = try bytes.withUnsafeBytes { try transport.accessUnit($0) }
    #expect(result == join(header, plain, short))
  }

  @Test(arguments: [49, 64, 65, 66, 208, 209])
  func `The last block of a slice is in the clear`(count: Int) throws {
    let unit = join([0x41], [UInt8](repeating: 0x77, count: count - 1))
    let transport = try makeTransport()
    let result = try join([0, 0, 1], unit).withUnsafeBytes { try transport.accessUnit($0) }
    let changed = zip(result.dropFirst(3), unit).enumerated().filter { $0.element.0 != $0.element.1 }.map(
      \.offset)
    #expect(result.count == count + 3)
    // More than 16 bytes remain at byte 32 and at byte 192.
    #expect(changed.contains { (32..<48).contains($0) } == (count > 48))
    #expect(changed.contains { (192..<208).contains($0) } == (count > 208))
    #expect(changed.allSatisfy { (32..<48).contains($0) || (192..<208).contains($0) })
  }

  @Test(arguments: [7, 9])
  func `Whole blocks of an ADTS frame behind its header and 16 bytes`(headerByteCount: Int) throws {
    let count = headerByteCount + 16 + 35
    var header: [UInt8] = [0xff, headerByteCount == 7 ? 0xf1 : 0xf0, 0x50, 0x40, UInt8(count >> 3)]
    header += [UInt8(count & 7) << 5 | 0x1f, 0xfc]
    header += [UInt8](repeating: 0, count: headerByteCount - 7)
    let leader = [UInt8](repeating: 9, count: 16)
    var bytes = join(header, leader, Array(Vectors.chained[0..<32]), [4, 5, 6])
    let transport = try makeTransport()
    try bytes.withUnsafeMutableBytes { try transport.audioFrames($0, codec: .aac) }
    #expect(bytes == join(header, leader, Array(Vectors.plain[0..<32]), [4, 5, 6]))
  }
}
