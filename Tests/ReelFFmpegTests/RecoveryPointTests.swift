import Testing

@testable import ReelFFmpeg

@Suite("Recovery points")
struct RecoveryPointTests {
  private func count(_ bytes: [UInt8]) -> Int? { bytes.withUnsafeBytes { RecoveryPoint.frameCount($0) } }

  @Test("The count behind other messages, with emulation prevention")
  func counts() {
    // ue(0) is 1, ue(9) is 0001010.
    #expect(count([6, 6, 1, 0b1100_0000, 0x80]) == 0)
    #expect(count([6, 6, 2, 0b0001_0101, 0x00, 0x80]) == 9)
    #expect(count([6, 4, 3, 0, 0, 3, 1, 6, 1, 0b1100_0000, 0x80]) == 0)
    let long = [6, 5, 255, 1] + [UInt8](repeating: 7, count: 256)
    #expect(count(long + [6, 1, 0b1100_0000, 0x80]) == 0)
  }

  @Test(
    "Units without one",
    arguments: [[], [6], [6, 5, 1, 0, 0x80], [1, 6, 1, 0xc0], [6, 6, 1], [6, 255, 255]])
  func none(bytes: [UInt8]) { #expect(count(bytes) == nil) }
}
