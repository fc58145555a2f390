import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import ReelCore

/// A server that sends given bytes, over HTTP/1.1 or, frame by frame, over HTTP/2: for answers that an origin would
/// not give, and for connections that no library would serve.
struct ScriptedServer {
  let url: URL
  private let openCount: Locked<Int>

  /// The number of connections that the client has not closed.
  var openConnectionCount: Int { openCount.withLock { $0 } }

  /// Runs `body` with the URL of a server that sends the same bytes whatever it has heard.
  static func use<Result>(_ answer: String, _ body: (URL) async throws -> Result) async throws -> Result {
    try await use({ _ in answer }, body)
  }

  /// Runs `body` with the URL of an HTTP/1.1 server without TLS.
  ///
  /// - Parameters:
  ///   - staysOpen: Whether connections stay open after an answer, until the client closes them.
  ///   - answer: Makes the answer to a request.
  static func use<Result>(
    staysOpen: Bool = false, _ answer: @escaping @Sendable (String) -> String,
    _ body: (URL) async throws -> Result
  ) async throws -> Result {
    let script = Script(staysOpen: staysOpen, text: answer)
    return try await run(script, protocols: nil) { try await body($0.url) }
  }

  /// Runs `body` with a server with TLS.
  ///
  /// - Parameters:
  ///   - protocols: The protocols that it offers on a connection, which are counted from 0.
  ///   - opening: What it sends on a new HTTP/2 connection: by default an empty SETTINGS frame.
  ///   - staysOpen: Whether connections stay open after an answer, until the client closes them.
  ///   - text: Makes the answer to a request over HTTP/1.1.
  ///   - answer: Makes the answer to the request on a stream of HTTP/2.
  static func useHTTP2<Result>(
    protocols: @escaping @Sendable (Int) -> [String] = { _ in ["h2"] },
    opening: [UInt8] = HTTP2Frame(.settings).bytes, staysOpen: Bool = true,
    text: @escaping @Sendable (String) -> String = { _ in "" },
    _ answer: @escaping @Sendable (_ stream: Int) -> [UInt8],
    _ body: (ScriptedServer) async throws -> Result
  ) async throws -> Result {
    let script = Script(staysOpen: staysOpen, text: text, opening: opening, frames: answer)
    return try await run(script, protocols: protocols, body)
  }

  // MARK: - Private

  private static func run<Result>(
    _ script: Script, protocols: (@Sendable (Int) -> [String])?,
    _ body: (ScriptedServer) async throws -> Result
  ) async throws -> Result {
    let (openCount, count) = (Locked(0), Locked(0))
    let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let number = count.withLock { count in
            defer { count += 1 }
            return count
          }
          openCount.withLock { $0 += 1 }
          channel.closeFuture.whenComplete { _ in openCount.withLock { $0 -= 1 } }
          if let protocols {
            let context = try Self.context(protocols: protocols(number))
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
          }
          try channel.pipeline.syncOperations.addHandler(Handler(script))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    do {
      let scheme = protocols == nil ? "http" : "https"
      guard let port = listener.localAddress?.port, let url = URL(string: "\(scheme)://127.0.0.1:\(port)/a")
      else {
        throw ChannelError.unknownLocalAddress
      }
      let result = try await body(ScriptedServer(url: url, openCount: openCount))
      try await listener.close()
      return result
    } catch {
      try? await listener.close()
      throw error
    }
  }

  private struct Script: Sendable {
    var staysOpen: Bool
    var text: @Sendable (String) -> String
    var opening: [UInt8] = []
    var frames: @Sendable (Int) -> [UInt8] = { _ in [] }
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private static let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    private let script: Script
    /// What has been heard over HTTP/2; nil before its preface.
    private var heard: ByteBuffer?

    init(_ script: Script) { self.script = script }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      var bytes = unwrapInboundIn(data)
      if heard != nil {
        heard?.writeBuffer(&bytes)
      } else if String(buffer: bytes).hasPrefix(Self.preface) {
        bytes.moveReaderIndex(forwardBy: Self.preface.utf8.count)
        heard = bytes
        send(script.opening, context)
      } else {
        send(Array(script.text(String(buffer: bytes)).utf8), context, isLast: !script.staysOpen)
      }
      while let head = heard?.getBytes(at: heard?.readerIndex ?? 0, length: 9) {
        let length = head.prefix(3).reduce(0) { $0 << 8 | Int($1) }
        guard heard?.readSlice(length: 9 + length) != nil else { return }
        let stream = head.suffix(4).reduce(0) { $0 << 8 | Int($1) }
        guard head[3] == HTTP2Frame.Kind.headers.rawValue else { continue }
        send(script.frames(stream), context, isLast: !script.staysOpen)
      }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext, isLast: Bool = false) {
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes))).whenComplete { _ in
        if isLast { bound.value.close(promise: nil) }
      }
    }
  }

  private static func context(protocols: [String]) throws -> NIOSSLContext {
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: [.certificate(try NIOSSLCertificate(bytes: certificate, format: .der))],
      privateKey: .privateKey(try NIOSSLPrivateKey(bytes: key, format: .der)))
    configuration.applicationProtocols = protocols
    return try NIOSSLContext(configuration: configuration)
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
