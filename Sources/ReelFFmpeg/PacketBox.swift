/// A packet that can stand in an array: noncopyable values can't.
///
/// Ownership: the packet is freed with the last reference; nobody changes it.
public final class PacketBox: Sendable {
  public let packet: Packet

  public init(_ packet: consuming Packet) { self.packet = packet }
}
