import NIOCore
import NIOHTTP1
import ReelCore

/// One response of an `Origin`, planned completely before its first byte is sent.
struct Answer {
  /// The action after the last byte.
  enum Ending {
    case keepAlive
    case close
    case reset
    /// Keep the connection open and silent until the client closes it.
    case stall
  }

  /// The damaged bytes of the resource.
  enum Corruption {
    case range(Range<Int64>)
    case share(Double)
  }

  var status: HTTPResponseStatus
  var headers = HTTPHeaders()
  var resource: Resource?
  /// The position in the resource of the body's first byte.
  var offset: Int64 = 0
  /// The number of bytes of the body.
  var byteCount: Int64 = 0
  var ending = Ending.keepAlive
  var corruption: Corruption?
  /// The delay before the head, in addition to the link's.
  var delay = Duration.zero
  /// True if not even a head is sent.
  var isSilent = false

  init(status: HTTPResponseStatus) {
    self.status = status
  }

  /// The head as sent.
  var headBytes: [UInt8] {
    var text = "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n"
    for (name, value) in headers { text += "\(name): \(value)\r\n" }
    return Array((text + "\r\n").utf8)
  }

  /// Appends `count` bytes of the body from `position`, with the planned damage.
  func body(_ count: Int, at position: Int64, into buffer: inout ByteBuffer) {
    guard let resource else { return }
    let (start, heldCount) = (offset + position, buffer.readableBytes)
    resource.read(count, at: start, into: &buffer)
    guard let corruption else { return }
    buffer.withUnsafeMutableReadableBytes { readable in
      let bytes = UnsafeMutableRawBufferPointer(rebasing: readable.dropFirst(heldCount))
      switch corruption {
      case .range(let damaged):
        let part = damaged.clamped(to: start..<start + Int64(bytes.count))
        for index in part { bytes[Int(index - start)] ^= 0x55 }
      case .share(let share):
        let limit = UInt64(share * Double(UInt32.max))
        for index in bytes.indices where Self.scatter(UInt64(start) + UInt64(index)) < limit {
          bytes[index] ^= 0x55
        }
      }
    }
  }

  /// A 32-bit number that looks random but depends only on `value` (the finaliser of SplitMix64).
  private static func scatter(_ value: UInt64) -> UInt64 {
    var mixed = value &+ 0x9E37_79B9_7F4A_7C15
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return (mixed ^ (mixed >> 31)) >> 32
  }
}
