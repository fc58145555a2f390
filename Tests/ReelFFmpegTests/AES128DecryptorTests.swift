import ReelCore
import ReelFFmpeg
import Testing

@Suite struct AES128DecryptorTests {
  // openssl enc -aes-128-cbc -K 000102…0f -iv 0f0e0d…00 of the bytes 0, 1, … 39.
  private static let key: [UInt8] = Array(0...15)
  private static let vector: [UInt8] = Array((0...15).reversed())
  private static let plain: [UInt8] = Array(0..<40)
  private static let encrypted: [UInt8] = [
    0x03, 0xa9, 0xc8, 0xfe, 0x77, 0x8f, 0xb8, 0xa8, 0x66, 0x83, 0x59, 0x54, 0x2a, 0xd4, 0xd5, 0x84,
    0xbc, 0xe8, 0x73, 0xfe, 0x4b, 0xc2, 0xba, 0x36, 0xd6, 0xd8, 0x74, 0x2b, 0x27, 0xcd, 0xd4, 0x57,
    0x19, 0xe0, 0xe0, 0xe0, 0x59, 0x30, 0x00, 0x16, 0x0f, 0x1b, 0x30, 0x00, 0xd9, 0x97, 0xca, 0xd0,
  ]

  @Test(arguments: [1, 7, 15, 16, 17, 31, 32, 48])
  func decryptsInPiecesOfAnyLength(pieceCount: Int) throws {
    var decryptor = try AES128Decryptor(key: Self.key, initializationVector: Self.vector)
    var bytes: [UInt8] = []
    for start in stride(from: 0, to: Self.encrypted.count, by: pieceCount) {
      bytes += decryptor.update(Array(Self.encrypted[start..<min(start + pieceCount, Self.encrypted.count)]))
    }
    bytes += try decryptor.finish()
    #expect(bytes == Self.plain)
  }

  @Test func refusesKeysAndVectorsOfAnotherLength() {
    #expect(throws: ReelError(.badMedia, "the key has 15 bytes, not 16")) {
      _ = try AES128Decryptor(key: Array(0..<15), initializationVector: Self.vector)
    }
    #expect(throws: ReelError(.badMedia, "the IV has 0 bytes, not 16")) {
      _ = try AES128Decryptor(key: Self.key, initializationVector: [])
    }
  }

  @Test func namesAWrongKey() throws {
    var decryptor = try AES128Decryptor(key: Self.vector, initializationVector: Self.vector)
    _ = decryptor.update(Self.encrypted)
    let error = #expect(throws: ReelError.self) { _ = try decryptor.finish() }
    #expect(error?.kind == .badMedia)
    #expect(error?.reason.contains("padding") == true)
  }

  @Test(arguments: [0, 1, 47])
  func namesACutEnd(count: Int) throws {
    var decryptor = try AES128Decryptor(key: Self.key, initializationVector: Self.vector)
    _ = decryptor.update(Array(Self.encrypted.prefix(count)))
    let error = #expect(throws: ReelError.self) { _ = try decryptor.finish() }
    #expect(error?.reason.contains("multiple of 16") == true)
  }
}
