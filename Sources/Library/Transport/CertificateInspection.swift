import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import ReelCore

/// Gets the certificates of a server by a TLS handshake that it then breaks off.
///
/// AsyncHTTPClient does not say why it refused a certificate, nor which one.
enum CertificateInspection {
  /// The certificates of the server of `url`, its own first; nil if they don't arrive in time. Sends no request to it.
  static func chain(
    of url: URL, through proxy: HTTPProxies.Proxy?, within limit: Duration
  ) async -> [NIOSSLCertificate]? {
    guard let host = url.host(), let tls = try? NIOSSLContext(configuration: configuration) else {
      return nil
    }
    let (loop, port) = (MultiThreadedEventLoopGroup.singleton.next(), url.port ?? 443)
    let found = loop.makePromise(of: [NIOSSLCertificate].self)
    let addTLS = { @Sendable (channel: any Channel) in
      try channel.pipeline.syncOperations.addHandler(handler(tls, host: host, found))
    }
    let connection = ClientBootstrap(group: loop)
      .connectTimeout(.nanoseconds(limit.nanoseconds))
      .channelInitializer { channel in
        channel.closeFuture.whenComplete { _ in found.fail(ChannelError.eof) }
        return channel.eventLoop.makeCompletedFuture {
          guard let proxy else { return try addTLS(channel) }
          try channel.pipeline.syncOperations.addHandler(
            ProxyTunnel(
              to: "\(host.contains(":") ? "[\(host)]" : host):\(port)", through: proxy, then: addTLS))
        }
      }
      .connect(host: proxy?.host ?? host, port: proxy?.port ?? port)
    connection.whenFailure { found.fail($0) }
    let timer = loop.scheduleTask(in: .nanoseconds(limit.nanoseconds)) { found.fail(ChannelError.eof) }
    found.futureResult.whenComplete { _ in
      timer.cancel()
      connection.whenSuccess { $0.close(promise: nil) }
    }
    return try? await withTaskCancellationHandler {
      try await found.futureResult.get()
    } onCancel: {
      found.fail(CancellationError())
    }
  }

  // MARK: - Private

  /// Nothing is verified by it, so it needs no authorities.
  private static var configuration: TLSConfiguration {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.trustRoots = .certificates([])
    return configuration
  }

  private static func handler(
    _ tls: NIOSSLContext, host: String, _ found: EventLoopPromise<[NIOSSLCertificate]>
  ) throws -> NIOSSLClientHandler {
    let verify = { (chain: [NIOSSLCertificate], isValid: EventLoopPromise<NIOSSLVerificationResult>) in
      found.succeed(chain)
      isValid.succeed(.failed)
    }
    do {
      return try NIOSSLClientHandler(context: tls, serverHostname: host, customVerificationCallback: verify)
    } catch {
      // An address is not named in the handshake.
      return try NIOSSLClientHandler(context: tls, serverHostname: nil, customVerificationCallback: verify)
    }
  }
}

/// Has a proxy open a tunnel (RFC 9110 §9.3.6), and then leaves the pipeline.
private final class ProxyTunnel: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The limit of the head of the proxy's answer.
  private static let headByteCount = 16 << 10

  private let request: String
  private let then: (any Channel) throws -> Void
  private var answer = ""

  /// - Parameter then: Called when the tunnel stands.
  init(
    to target: String, through proxy: HTTPProxies.Proxy, then: @escaping (any Channel) throws -> Void
  ) {
    let credentials = proxy.credentials.map {
      "Proxy-Authorization: Basic \(Data($0.utf8).base64EncodedString())\r\n"
    }
    request = "CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\(credentials ?? "")\r\n"
    self.then = then
  }

  func channelActive(context: ChannelHandlerContext) {
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    answer += String(buffer: unwrapInboundIn(data))
    guard answer.contains("\r\n\r\n") else {
      if answer.utf8.count > Self.headByteCount { context.close(promise: nil) }
      return
    }
    let status = answer.split(separator: " ", maxSplits: 2).dropFirst().first
    guard status?.hasPrefix("2") == true, (try? then(context.channel)) != nil else {
      return context.close(promise: nil)
    }
    context.pipeline.syncOperations.removeHandler(self, promise: nil)
  }
}
