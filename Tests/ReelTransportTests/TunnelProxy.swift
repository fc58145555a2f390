import Foundation
import NIOCore
import NIOPosix
import ReelCore

/// A proxy that opens tunnels to nowhere: it answers `CONNECT` itself, and then each request in the tunnel.
final class TunnelProxy: Sendable {
  let port: Int
  private let heads: Locked<[String]>
  private let listener: any Channel

  private init(port: Int, heads: Locked<[String]>, listener: any Channel) {
    self.port = port
    self.heads = heads
    self.listener = listener
  }

  /// - Parameter connectAnswer: The head of the answer to `CONNECT`.
  static func start(connectAnswer: String = "HTTP/1.1 200 OK\r\n\r\n") async throws -> TunnelProxy {
    let heads = Locked<[String]>([])
    let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Handler(connectAnswer: connectAnswer, heads: heads))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    guard let port = listener.localAddress?.port else { throw ChannelError.unknownLocalAddress }
    return TunnelProxy(port: port, heads: heads, listener: listener)
  }

  /// The heads of all requests so far, those in tunnels included.
  var requests: [String] { heads.withLock { $0 } }

  func stop() async throws { try await listener.close() }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let connectAnswer: String
    private let heads: Locked<[String]>
    private var text = ""

    init(connectAnswer: String, heads: Locked<[String]>) {
      self.connectAnswer = connectAnswer
      self.heads = heads
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      text += String(buffer: unwrapInboundIn(data))
      while let end = text.range(of: "\r\n\r\n") {
        let head = String(text[..<end.lowerBound])
        text = String(text[end.upperBound...])
        heads.withLock { $0.append(head) }
        let answer =
          head.hasPrefix("CONNECT ") ? connectAnswer : "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
      }
    }
  }
}
