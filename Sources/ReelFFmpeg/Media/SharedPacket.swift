internal import CFFmpegShims

/// A packet that can stand in an array: noncopyable values can't.
///
/// Ownership: the packet is freed with the last reference; nobody changes it. Where it is made for a `MemoryAccount`, the
/// packet's bytes are kept there.
package final class SharedPacket: Sendable {
  package let packet: Packet

  package init(_ packet: consuming Packet) {
    reel_packet_store(packet.pointer)
    self.packet = packet
  }
}
