import NIOCore
import ReelCore

/// A response being sent: passes its bytes, head first, to the connection as the link allows.
///
/// Belongs to the origin's event loop.
final class Flow {
  private let answer: Answer
  private let head: [UInt8]
  private let total: Int64
  /// The position of the next byte in head and body.
  private var position: Int64 = 0
  /// Since when there are bytes to send.
  private(set) var readyAt: NIODeadline
  /// False while the client reads more slowly than the link would allow.
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

  /// True if bytes can be taken.
  var isReady: Bool { isWritable && !hasEnded }

  func setWritable(_ writable: Bool, at now: NIODeadline) {
    if writable, !isWritable { readyAt = now }
    isWritable = writable
  }

  /// The next bytes, at most `limit`.
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
      let start = position + Int64(buffer.readableBytes) - Int64(head.count)
      answer.body(bodyCount, at: start, into: &buffer)
    }
    // A file that became shorter can't be sent completely. The rest is left out, as the client notices.
    position = buffer.readableBytes < count ? total : position + Int64(count)
    return Parcel(flow: self, buffer: buffer, headByteCount: headByteCount, isLast: hasEnded)
  }

  /// Bytes of a flow that were taken but not delivered yet.
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
