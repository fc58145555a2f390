import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("Orientation")
struct OrientationTests {
  /// The display matrix that mirrors left to right, then turns clockwise.
  private func matrix(rotation: Int, isMirrored: Bool) -> [Int32] {
    // Where the unit vectors go, y pointing down: turning clockwise takes (1, 0) to (0, 1).
    var (x, y) = ((isMirrored ? -1 : 1, 0), (0, 1))
    for _ in 0..<(rotation / 90) { (x, y) = ((-x.1, x.0), (-y.1, y.0)) }
    let one: Int32 = 1 << 16
    return [
      Int32(x.0) * one, Int32(x.1) * one, 0, Int32(y.0) * one, Int32(y.1) * one, 0, 0, 0, 1 << 30,
    ]
  }

  @Test("All eight cases of a display matrix", arguments: [0, 90, 180, 270], [false, true])
  func cases(rotation: Int, isMirrored: Bool) {
    let found = matrix(rotation: rotation, isMirrored: isMirrored).withUnsafeBufferPointer {
      Orientation(matrix: $0.baseAddress)
    }
    #expect(found == Orientation(rotation: rotation, isMirrored: isMirrored))
    #expect(found.swapsAxes == (rotation == 90 || rotation == 270))
  }

  @Test("No matrix, and matrices that make no sense")
  func none() {
    #expect(Orientation(matrix: nil) == .upright)
    let zero = [Int32](repeating: 0, count: 9)
    #expect(zero.withUnsafeBufferPointer { Orientation(matrix: $0.baseAddress) } == .upright)
  }

  @Test("An odd angle is taken to the nearest quarter")
  func oddAngle() {
    // 80 degrees clockwise: cosine 0.17365, sine 0.98481.
    let matrix: [Int32] = [11380, 64540, 0, -64540, 11380, 0, 0, 0, 1 << 30]
    #expect(
      matrix.withUnsafeBufferPointer { Orientation(matrix: $0.baseAddress) }
        == Orientation(rotation: 90, isMirrored: false))
  }

  @Test("Planes are turned sample by sample", arguments: [1, 2, 3])
  func apply(pixelBytes: Int) {
    // abc
    // def, with two bytes of padding behind each row.
    let stored = PixelSize(width: 3, height: 2)
    let stride = 3 * pixelBytes + 2
    var plane = [UInt8](repeating: 0xff, count: stride * 2)
    for (index, letter) in "abcdef".utf8.enumerated() {
      for byte in 0..<pixelBytes {
        plane[index / 3 * stride + index % 3 * pixelBytes + byte] = letter + UInt8(byte) * 32
      }
    }
    let turn = { (rotation: Int, isMirrored: Bool) in
      let bytes = plane.withUnsafeBytes {
        Orientation(rotation: rotation, isMirrored: isMirrored).apply(
          to: $0.baseAddress!, stored: stored, stride: stride, pixelBytes: pixelBytes)
      }
      #expect(bytes.count == 6 * pixelBytes)
      for pixel in 0..<6 {
        for byte in 0..<pixelBytes {
          #expect(bytes[pixel * pixelBytes + byte] == bytes[pixel * pixelBytes] + UInt8(byte) * 32)
        }
      }
      return String(decoding: (0..<6).map { bytes[$0 * pixelBytes] }, as: UTF8.self)
    }
    #expect(turn(0, false) == "abcdef")
    #expect(turn(90, false) == "daebfc")
    #expect(turn(180, false) == "fedcba")
    #expect(turn(270, false) == "cfbead")
    #expect(turn(0, true) == "cbafed")
    #expect(turn(90, true) == "fcebda")
    #expect(turn(180, true) == "defabc")
    #expect(turn(270, true) == "adbecf")
  }
}
