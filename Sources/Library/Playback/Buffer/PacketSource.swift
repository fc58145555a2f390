/// The answer of a packet source to a decoder.
enum NextPacket: Sendable {
  case packet(MediaPacket)
  /// No packet yet; more may follow.
  case none
  case end
  /// The source has moved to another position.
  case stale
}

/// A source of a video track's packets, in decoding order.
protocol PacketSource: AnyObject {
  /// Returns the next packet, without taking it.
  func peek() throws -> NextPacket
  /// Takes the next packet. If it belongs to a span other than `span`, it stays, and the answer is `end`.
  func next(of span: StreamSpan?) throws -> NextPacket
  /// Records that the last packet is decoded alone, so others may not be needed at all.
  func recordEnough()
}

extension PacketSource {
  func recordEnough() {}
}
