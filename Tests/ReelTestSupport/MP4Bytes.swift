/// A number in so many bytes, the most significant first.
public func bigEndian(_ value: UInt64, bytes count: Int) -> [UInt8] {
  (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }
}

/// A box of MP4.
public func mp4Box(_ type: String, _ body: [UInt8] = []) -> [UInt8] {
  bigEndian(UInt64(body.count + 8), bytes: 4) + Array(type.utf8) + body
}

/// The header of a box that gives its size in 64 bits.
public func longMP4Header(_ type: String, byteCount: UInt64) -> [UInt8] {
  bigEndian(1, bytes: 4) + Array(type.utf8) + bigEndian(byteCount, bytes: 8)
}
