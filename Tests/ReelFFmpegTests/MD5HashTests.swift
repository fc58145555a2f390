import Testing

@testable import ReelFFmpeg

@Suite("MD5")
struct MD5HashTests {
  @Test("Bytes count however they come (RFC 1321 §A.5)")
  func digests() throws {
    let none = try MD5Hash()
    #expect(none.digest() == "d41d8cd98f00b204e9800998ecf8427e")
    let pieces = try MD5Hash()
    for piece in ["message", " ", "digest"] {
      Array(piece.utf8).withUnsafeBytes { pieces.update($0.baseAddress, count: $0.count) }
    }
    #expect(pieces.digest() == "f96b697d7cb7938d525a2f31aaf161d0")
  }
}
