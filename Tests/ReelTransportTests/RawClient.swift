import NIOCore
import NIOPosix

/// Sends bytes over one connection and gives what comes back: for what a fetcher would not send.
enum RawClient {
  /// All that the server sends until it closes.
  static func exchange(_ text: String, port: Int) async throws -> String {
    let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(ByteBuffer(string: text))
      var received = ByteBuffer()
      for try await part in inbound { received.writeImmutableBuffer(part) }
      return String(buffer: received)
    }
  }
}
