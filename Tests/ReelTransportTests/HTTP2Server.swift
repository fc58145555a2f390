import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import ReelCore

/// A server that speaks HTTP/2 over TLS frame by frame, and sends what it is told: for connections that no HTTP/2
/// library would serve.
struct HTTP2Server {
  let url: URL
  private let openCount: Locked<Int>

  /// The number of connections that the client has not closed.
  var openConnectionCount: Int { openCount.withLock { $0 } }

  /// Runs `body` with a server on loopback.
  ///
  /// - Parameters:
  ///   - opening: What it sends on a new connection: by default an empty SETTINGS frame.
  ///   - staysOpen: Whether connections stay open after an answer, until the client closes them.
  ///   - answer: Makes the answer to the request on a stream.
  static func use<Result>(
    opening: [UInt8] = HTTP2Frame(.settings).bytes, staysOpen: Bool = true,
    _ answer: @escaping @Sendable (_ stream: Int) -> [UInt8],
    _ body: (HTTP2Server) async throws -> Result
  ) async throws -> Result {
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: [.certificate(try NIOSSLCertificate(bytes: Self.certificate, format: .der))],
      privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Self.key, format: .der)))
    configuration.applicationProtocols = ["h2"]
    let context = try NIOSSLContext(configuration: configuration)
    let openCount = Locked(0)
    let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          openCount.withLock { $0 += 1 }
          channel.closeFuture.whenComplete { _ in openCount.withLock { $0 -= 1 } }
          try channel.pipeline.syncOperations.addHandlers(
            NIOSSLServerHandler(context: context),
            Handler(opening: opening, staysOpen: staysOpen, answer: answer))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    do {
      guard let port = listener.localAddress?.port, let url = URL(string: "https://127.0.0.1:\(port)/a")
      else {
        throw ChannelError.unknownLocalAddress
      }
      let result = try await body(HTTP2Server(url: url, openCount: openCount))
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

    private static let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8.count

    private let opening: [UInt8]
    private let staysOpen: Bool
    private let answer: @Sendable (Int) -> [UInt8]
    private var heard = ByteBuffer()
    private var isOpen = false

    init(opening: [UInt8], staysOpen: Bool, answer: @escaping @Sendable (Int) -> [UInt8]) {
      self.opening = opening
      self.staysOpen = staysOpen
      self.answer = answer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      heard.writeImmutableBuffer(unwrapInboundIn(data))
      if !isOpen {
        guard heard.readSlice(length: Self.preface) != nil else { return }
        isOpen = true
        send(opening, context)
      }
      while let head = heard.getBytes(at: heard.readerIndex, length: 9) {
        let length = head.prefix(3).reduce(0) { $0 << 8 | Int($1) }
        guard heard.readSlice(length: 9 + length) != nil else { return }
        let stream = head.suffix(4).reduce(0) { $0 << 8 | Int($1) }
        guard head[3] == HTTP2Frame.Kind.headers.rawValue else { continue }
        send(answer(stream), context)
        if !staysOpen { context.close(promise: nil) }
      }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }
  }

  /// A self-signed certificate for this server alone, which clients accept with `ServerTrust.any`.
  private static let certificate = decoded(
    """
    MIIBfzCCASWgAwIBAgIUUsgLmn0K/eyBV2sYoDVDiZOG8m8wCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2
    MTEyNzIxMzcyN1oYDzIxMDAxMDMwMjEzNzI3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
    AASUt29DgJR5O0uJYAvCOJL/uVYCoJ0h9MiVp5xRND+8JMjhiHSkXQNs3kUeyLKAHaRupsT3EQzoRf8jn7w7in79o1MwUTAdBgNV
    HQ4EFgQU0IBP5wE87Gq6oGMlh5yDeGrr57IwHwYDVR0jBBgwFoAU0IBP5wE87Gq6oGMlh5yDeGrr57IwDwYDVR0TAQH/BAUwAwEB
    /zAKBggqhkjOPQQDAgNIADBFAiEAyYBtctEZpxJcsyfiGmjmAn7MjHQcp/jAsKbrsjSa6zwCIAV8tSG77PYbs2V6gsDRsFji4qtz
    JjxcHVjaCQrfrihg
    """)
  private static let key = decoded(
    """
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgtRO8/sPtXIxbfrGiWXqo7J+HydF04llXePkCk0msPQ6hRANCAASU
    t29DgJR5O0uJYAvCOJL/uVYCoJ0h9MiVp5xRND+8JMjhiHSkXQNs3kUeyLKAHaRupsT3EQzoRf8jn7w7in79
    """)

  private static func decoded(_ text: String) -> [UInt8] {
    Data(base64Encoded: text, options: .ignoreUnknownCharacters).map(Array.init) ?? []
  }
}

/// The bytes of a frame (RFC 9113 §4.1).
struct HTTP2Frame {
  enum Kind: UInt8 {
    case data, headers, priority, resetStream, settings, pushPromise, ping, goAway, windowUpdate, continuation
  }

  static let endStream: UInt8 = 1
  static let endHeaders: UInt8 = 4

  let bytes: [UInt8]

  init(_ kind: Kind, flags: UInt8 = 0, stream: Int = 0, _ payload: [UInt8] = []) {
    self.init(type: kind.rawValue, flags: flags, stream: stream, payload)
  }

  init(type: UInt8, flags: UInt8 = 0, stream: Int = 0, _ payload: [UInt8] = []) {
    let head = [payload.count >> 16, payload.count >> 8, payload.count].map { UInt8($0 & 0xFF) }
    let stream = (0..<4).map { UInt8(stream >> (24 - 8 * $0) & 0xFF) }
    bytes = head + [type, flags] + stream + payload
  }

  /// A head with a status, and fields if any.
  static func head(
    _ status: String, _ fields: [(String, String)] = [], stream: Int, isEnd: Bool = false
  ) -> [UInt8] {
    let block = Self.block([(":status", status)] + fields)
    return HTTP2Frame(.headers, flags: endHeaders | (isEnd ? endStream : 0), stream: stream, block).bytes
  }

  static func data(_ bytes: [UInt8], stream: Int, isEnd: Bool = true) -> [UInt8] {
    HTTP2Frame(.data, flags: isEnd ? endStream : 0, stream: stream, bytes).bytes
  }

  /// A promise of the stream `promised`.
  static func pushPromise(_ promised: UInt8, stream: Int) -> [UInt8] {
    let fields = [(":method", "GET"), (":scheme", "https"), (":path", "/b"), (":authority", "a")]
    let payload = [0, 0, 0, promised] + block(fields)
    return HTTP2Frame(.pushPromise, flags: endHeaders, stream: stream, payload).bytes
  }

  /// Literal fields that are not indexed (RFC 7541 §6.2.2), of names and values of less than 127 bytes.
  private static func block(_ fields: [(name: String, value: String)]) -> [UInt8] {
    var bytes: [UInt8] = []
    for field in fields {
      bytes.append(0)
      for text in [field.name, field.value] { bytes += [UInt8(text.utf8.count)] + Array(text.utf8) }
    }
    return bytes
  }
}
