import Foundation
import NIOCore
import NIOPosix

/// A server that answers the first request of every connection, and closes: for answers that an origin would not
/// give.
enum ScriptedServer {
  /// Runs `body` with a server that sends the same bytes whatever it has heard.
  static func use<Result>(_ answer: String, _ body: (URL) async throws -> Result) async throws -> Result {
    try await use({ _ in answer }, body)
  }

  /// Runs `body` with the URL of a server, and stops the server at the end.
  ///
  /// - Parameters:
  ///   - staysOpen: Whether connections stay open after the answer, until the client closes them.
  ///   - answer: Makes the answer to a request.
  static func use<Result>(
    staysOpen: Bool = false, _ answer: @escaping @Sendable (String) -> String,
    _ body: (URL) async throws -> Result
  ) async throws -> Result {
    let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Handler(staysOpen: staysOpen, answer: answer))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    do {
      guard let port = listener.localAddress?.port, let url = URL(string: "http://127.0.0.1:\(port)/a") else {
        throw ChannelError.unknownLocalAddress
      }
      let result = try await body(url)
      try await listener.close()
      return result
    } catch {
      try? await listener.close()
      throw error
    }
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let staysOpen: Bool
    private let answer: @Sendable (String) -> String

    init(staysOpen: Bool, answer: @escaping @Sendable (String) -> String) {
      self.staysOpen = staysOpen
      self.answer = answer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      let bytes = ByteBuffer(string: answer(String(buffer: unwrapInboundIn(data))))
      context.writeAndFlush(wrapOutboundOut(bytes)).whenComplete { [staysOpen] _ in
        if !staysOpen { bound.value.close(promise: nil) }
      }
    }
  }
}
