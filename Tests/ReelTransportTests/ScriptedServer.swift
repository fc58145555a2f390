import Foundation
import NIOCore
import NIOPosix

/// A server that sends the same bytes over every connection when it has heard something, and closes: for
/// answers that an origin would not give.
struct ScriptedServer {
  let url: URL
  private let listener: any Channel

  static func start(_ answer: String) async throws -> ScriptedServer {
    let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Handler(answer: answer))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    guard let port = listener.localAddress?.port, let url = URL(string: "http://127.0.0.1:\(port)/a") else {
      throw ChannelError.unknownLocalAddress
    }
    return ScriptedServer(url: url, listener: listener)
  }

  func stop() async throws {
    try await listener.close()
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let answer: String

    init(answer: String) {
      self.answer = answer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer))).whenComplete { _ in
        bound.value.close(promise: nil)
      }
    }
  }
}
