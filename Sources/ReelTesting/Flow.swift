import NIOCore
import ReelCore

/// An answer on its way: gives its bytes, head first, and hands them to the connection when the link lets
/// them.
///
/// Belongs to the origin's event loop.
final class Flow {
  private let answer: Answer
  private let head: [UInt8]
  private let total: Int64
  /// Where in head and body the next byte to take lies.
  private var position: Int64 = 0
  /// Since when there are bytes that could be sent.
  private(set) var readyAt: NIODeadline
  /// False while the client does not read as fast as the link would allow.
  private var isWritable = true
  /// Sends bytes; with true after the last.
  private let deliver: (_ bytes: ByteBuffer, _ headByteCount: Int, _ isLast: Bool) -> Void

  init(
    _ answer: Answer, readyAt: NIODeadline,
    deliver: @escaping (_ bytes: ByteBuffer, _ headByteCount: Int, _ isLast: Bool) -> Void
  ) {
    self.answer = answer
    head = answer.headBytes
    total = Int64(head.count) + answer.byteCount
    self.readyAt = readyAt
    self.deliver = deliver
  }

  var hasEnded: Bool { position >= total }

  /// True where bytes can be taken.
  var isReady: Bool { isWritable && !hasEnded }

  func setWritable(_ writable: Bool, at now: NIODeadline) {
    if writable, !isWritable { readyAt = now }
    isWritable = writable
  }

  /// The next bytes, `limit` at most.
  func take(_ limit: Int) -> Parcel {
    let count = Int(min(Int64(limit), total - position))
    var buffer = ByteBufferAllocator().buffer(capacity: count)
    var headByteCount = 0
    if position < head.count {
      let part = head[Int(position)..<min(head.count, Int(position) + count)]
      headByteCount = part.count
      buffer.writeBytes(part)
    }
    let bodyCount = count - buffer.readableBytes
    if bodyCount > 0 {
      let bytes = answer.body(bodyCount, at: position + Int64(buffer.readableBytes) - Int64(head.count))
      buffer.writeBytes(bytes)
    }
    // A file that has become shorter can't be sent to its end; the rest is left out, and the client sees it.
    position = buffer.readableBytes < count ? total : position + Int64(count)
    return Parcel(flow: self, buffer: buffer, headByteCount: headByteCount, isLast: hasEnded)
  }

  /// Some bytes of a flow, taken and not yet delivered.
  struct Parcel {
    let flow: Flow
    let buffer: ByteBuffer
    let headByteCount: Int
    let isLast: Bool

    func deliver() {
      flow.deliver(buffer, headByteCount, isLast)
    }
  }
}
