internal import CFFmpegShims

/// A packet that can be stored in an array, unlike noncopyable values.
///
/// Ownership: the packet is freed with the last reference and never changed. If it is made for a
/// `MemoryAccount`, its bytes are stored there.
package final class SharedPacket: Sendable {
  package let packet: Packet

  package init(_ packet: consuming Packet) {
    reel_packet_store(packet.pointer)
    self.packet = packet
  }
}
