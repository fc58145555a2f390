import NIOCore
internal import ReelCore

/// The open connections of an origin, which are closed with it.
final class ConnectionList: Sendable {
  private let channels = Locked<[ObjectIdentifier: any Channel]>([:])

  func insert(_ channel: any Channel) {
    let id = ObjectIdentifier(channel)
    channels.withLock { $0[id] = channel }
    channel.closeFuture.whenComplete { _ in self.channels.withLock { $0[id] = nil } }
  }

  func closeAll() {
    for channel in channels.withLock({ Array($0.values) }) { channel.close(promise: nil) }
  }
}
