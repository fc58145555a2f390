import Foundation
import NIOCore
import NIOPosix
import NIOSSL
package import ReelCore

/// The reason why the certificate of a server is not accepted.
enum CertificateFault: Sendable, Equatable {
  /// - issuer: The name of the expired certificate if it is an issuer's and not the server's own.
  case expired(since: WallTime, issuer: String?)
  case notYetValid(until: WallTime, issuer: String?)
  /// The certificate is accepted, but only for these hosts.
  case wrongHost(names: [String])
  case selfSigned
  case unknownIssuer(name: String)
  /// The reason is not known.
  case untrusted

  var reason: String {
    switch self {
    case .expired(let time, let issuer): "\(Self.subject(issuer)) expired on \(time)"
    case .notYetValid(let time, let issuer): "\(Self.subject(issuer)) is not valid until \(time)"
    case .wrongHost(let names):
      "the server's TLS certificate is for another host" + (names.isEmpty ? "" : ": \(Self.list(names))")
    case .selfSigned: "the server's TLS certificate is self-signed, and not trusted"
    case .unknownIssuer(let name):
      "the server's TLS certificate has an unknown issuer: no trusted authority vouches for '\(name)'"
    case .untrusted: "the server's TLS certificate can't be trusted"
    }
  }

  func advice(host: String) -> String? {
    switch self {
    case .expired:
      "it must be renewed on the server, unless this machine's clock is wrong; --cacert does not help"
    case .notYetValid: "check the clocks of the server and of this machine; --cacert does not help"
    case .wrongHost:
      "use a host name that the certificate is for, or a certificate for \(host); --cacert does not help"
    case .selfSigned: "if you trust it, pass it with --cacert FILE"
    case .unknownIssuer:
      "if you trust the authority that it leads to, pass its certificate with --cacert FILE"
    case .untrusted: nil
    }
  }

  /// Determines the fault of a rejected chain of certificates, the server's own first.
  init(of chain: [NIOSSLCertificate], at now: WallTime) {
    for (index, certificate) in chain.enumerated() {
      let issuer = index == 0 ? nil : Self.name(certificate.subjectName)
      let (first, last) = (WallTime(certificate.notValidBefore), WallTime(certificate.notValidAfter))
      if last < now {
        self = .expired(since: last, issuer: issuer)
        return
      }
      if first > now {
        self = .notYetValid(until: first, issuer: issuer)
        return
      }
    }
    guard let own = chain.first, let last = chain.last else {
      self = .untrusted
      return
    }
    self =
      own.subjectName == own.issuerName ? .selfSigned : .unknownIssuer(name: Self.name(last.issuerName))
  }

  static func hosts(of certificate: NIOSSLCertificate) -> [String] {
    certificate._subjectAlternativeNames().compactMap { name in
      switch name.nameType {
      case .dnsName: String(decoding: name.contents, as: UTF8.self)
      case .ipAddress: address(Array(name.contents))
      default: nil
      }
    }
  }

  // MARK: - Private

  /// The maximum number of hosts that an error names.
  private static let namedHostCount = 5

  private static func subject(_ issuer: String?) -> String {
    issuer.map { "the certificate of the issuer '\($0)'" } ?? "the server's TLS certificate"
  }

  private static func list(_ names: [String]) -> String {
    let rest = names.count - namedHostCount
    return names.prefix(namedHostCount).joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
  }

  private static func name(_ parts: [SSLCertificateName]) -> String {
    let named = parts.last { $0.type == .commonName } ?? parts.last { $0.type == .organization }
    return named?.value ?? parts.map(\.value).joined(separator: ", ")
  }

  private static func address(_ bytes: [UInt8]) -> String? {
    switch bytes.count {
    case 4: bytes.map(String.init).joined(separator: ".")
    case 16:
      stride(from: 0, to: 16, by: 2)
        .map { String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16) }
        .joined(separator: ":")
    default: nil
    }
  }
}

extension WallTime {
  fileprivate init(_ time: time_t) {
    let (nanoseconds, overflow) = Int64(time).multipliedReportingOverflow(by: 1_000_000_000)
    self.init(nanosecondsSince1970: overflow ? (time < 0 ? .min : .max) : nanoseconds)
  }
}

/// Gets the certificates of a server with a TLS handshake, which it then aborts.
///
/// AsyncHTTPClient does not report why it rejected a certificate, nor which one.
enum CertificateInspection {
  /// Returns the certificates of the server of `url`, its own first; nil if they don't arrive in time. Sends
  /// no request.
  static func chain(
    of url: URL, through proxy: HTTPProxies.Proxy?, within limit: Duration
  ) async -> [NIOSSLCertificate]? {
    guard let host = url.host(), let tls = try? NIOSSLContext(configuration: configuration) else {
      return nil
    }
    let (loop, port) = (
      MultiThreadedEventLoopGroup.singleton.next(),
      url.port ?? (url.scheme?.lowercased() == "http" ? 80 : 443)
    )
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

  /// It verifies nothing, so it needs no authorities.
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
      // The handshake does not name the server if its host is an IP address.
      return try NIOSSLClientHandler(context: tls, serverHostname: nil, customVerificationCallback: verify)
    }
  }
}

/// Asks a proxy to open a tunnel (RFC 9110 §9.3.6), and then leaves the pipeline.
private final class ProxyTunnel: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The maximum size of the head of the proxy's answer.
  private static let headByteCount = 16 << 10

  private let request: String
  private let then: (any Channel) throws -> Void
  private var answer = ""

  /// - Parameter then: Called when the tunnel is open.
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

/// The accepted certificates of `https` servers.
public enum ServerTrust: Sendable, Hashable {
  /// Certificates signed by the system's certificate authorities.
  case system
  /// Certificates signed by the authorities in a PEM file, and no others.
  case authorities(path: String)
  /// All certificates, for any host. Anyone who controls the network can read and change everything,
  /// including header fields and keys.
  case any

  /// Checks that the authorities can be read.
  ///
  /// - Throws: `ReelError` of kind `noSuchFile` for a file that can't be read, and of kind `usage` for one without a
  ///   certificate.
  package func check() throws(ReelError) {
    guard case .authorities(let path) = self else { return }
    guard let bytes = try? Data(contentsOf: URL(filePath: path)) else {
      throw ReelError(.noSuchFile, "the certificate file can't be read", at: path)
    }
    // The first one shows what the file is. All are read for the first connection that needs them.
    guard (try? NIOSSLCertificate(bytes: [UInt8](bytes), format: .pem)) != nil else {
      throw ReelError(.usage, "the file has no certificate in the PEM format", at: path)
    }
  }

  /// Nil for AsyncHTTPClient's default, the system's authorities.
  var tlsConfiguration: TLSConfiguration? {
    var configuration = TLSConfiguration.makeClientConfiguration()
    switch self {
    case .system:
      guard let certificates = Self.systemFile.flatMap(Self.certificates) else { return nil }
      // The folder is searched for what the file lacks.
      configuration.trustRoots = Self.systemFolder.map { .file($0) } ?? .certificates([])
      configuration.additionalTrustRoots = [.certificates(certificates)]
    case .authorities(let path):
      configuration.trustRoots = Self.certificates(at: path).map { .certificates($0) } ?? .file(path)
    case .any: configuration.certificateVerification = .none
    }
    return configuration
  }

  // MARK: - Private

  #if os(Linux)
    /// The places of the system's authorities, as NIOSSL has them (LinuxCABundle.swift).
    private static let systemFile = [
      "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
    ].first { FileManager.default.fileExists(atPath: $0) }
    private static let systemFolder = ["/etc/ssl/certs"].first { FileManager.default.fileExists(atPath: $0) }
  #else
    /// The system verifies certificates.
    private static let (systemFile, systemFolder): (String?, String?) = (nil, nil)
  #endif

  private static let parsed = Locked<[String: [NIOSSLCertificate]]>([:])

  /// Returns the certificates of a PEM file, which is read once: NIOSSL would parse it for each client, and the system's
  /// 140 certificates take 1 MB. Nil if the file can't be read.
  private static func certificates(at path: String) -> [NIOSSLCertificate]? {
    parsed.withLock { parsed in
      if let known = parsed[path] { return known }
      let certificates = try? NIOSSLCertificate.fromPEMFile(path)
      parsed[path] = certificates
      return certificates
    }
  }
}
