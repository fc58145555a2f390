import Foundation
import NIOCore
import NIOPosix

/// A server that answers the first request of every connection, and closes: for answers that an origin would not
/// give.
struct ScriptedServer {
  let url: URL
  private let listener: any Channel

  /// A server that sends the same bytes whatever it has heard.
  static func start(_ answer: String) async throws -> ScriptedServer { try await start { _ in answer } }

  /// - Parameter answer: Makes the answer to a request.
  static func start(_ answer: @escaping @Sendable (String) -> String) async throws -> ScriptedServer {
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

    private let answer: @Sendable (String) -> String

    init(answer: @escaping @Sendable (String) -> String) {
      self.answer = answer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      let bytes = ByteBuffer(string: answer(String(buffer: unwrapInboundIn(data))))
      context.writeAndFlush(wrapOutboundOut(bytes)).whenComplete { _ in
        bound.value.close(promise: nil)
      }
    }
  }
}
