/// What a decoder is given next.
enum NextPacket: Sendable {
  case packet(MediaPacket)
  /// Nothing yet: there may be more later.
  case none
  case end
  /// Packets are wanted from another place by now.
  case stale
}

/// Where the packets of a video track come from, in decoding order.
protocol PacketSource: AnyObject {
  /// The next packet, which stays the next.
  func peek() throws -> NextPacket
  /// Takes the next packet. If it belongs to another span than `span`, it stays, and the answer is `end`.
  func next(of span: StreamSpan?) throws -> NextPacket
}
