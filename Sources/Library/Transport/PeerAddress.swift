import Foundation
import NIOCore

/// The address of the other end of a connection.
package struct PeerAddress: Sendable, Hashable, CustomStringConvertible {
  /// Such as `192.0.2.1` or `2001:db8::1`.
  package let description: String
  /// True for an address of this machine, in a private network (RFC 1918, RFC 4193), of a carrier's NAT (RFC 6598), or
  /// of the local link (RFC 3927, RFC 4291 §2.5.6).
  package let isPrivate: Bool

  /// Nil if the connection is closed.
  init?(of connection: any Channel) {
    guard let address = connection.remoteAddress else { return nil }
    // A machine reaches its own addresses from the same address.
    self.init(address, isLocal: address.ipAddress == connection.localAddress?.ipAddress)
  }

  /// Nil for an address of another kind than IP.
  init?(_ address: SocketAddress, isLocal: Bool = false) {
    guard let text = address.ipAddress else { return nil }
    description = text
    isPrivate =
      switch address {
      case .v4(let address): isLocal || withUnsafeBytes(of: address.address.sin_addr) { Self.isPrivate($0) }
      case .v6(let address): isLocal || withUnsafeBytes(of: address.address.sin6_addr) { Self.isPrivate($0) }
      case .unixDomainSocket: true
      }
  }

  // MARK: - Private

  /// - Parameter bytes: The 4 or 16 bytes of an address, in network order.
  private static func isPrivate(_ bytes: some Collection<UInt8>) -> Bool {
    let bytes = Array(bytes)
    guard bytes.count == 16 else {
      return switch (bytes[0], bytes[1]) {
      case (127, _), (10, _), (172, 16...31), (192, 168), (169, 254), (100, 64...127): true
      default: false
      }
    }
    // An IPv4 address that is mapped into IPv6 (RFC 4291 §2.5.5.2).
    if bytes.starts(with: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]) { return isPrivate(bytes[12...]) }
    let isLoopback = bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
    return isLoopback || bytes[0] & 0xFE == 0xFC || bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
  }
}
