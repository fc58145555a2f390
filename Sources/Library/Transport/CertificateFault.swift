import Foundation
import NIOSSL
import ReelCore

/// Why the certificate of a server is not accepted.
enum CertificateFault: Sendable, Equatable {
  /// - issuer: The name of the certificate if it is not the server's own, but that of an issuer.
  case expired(since: WallTime, issuer: String?)
  case notYetValid(until: WallTime, issuer: String?)
  /// It is accepted, but for these hosts only.
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

  /// The fault of a chain of certificates that was refused, the server's own first.
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

  /// The hosts that a certificate is for.
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

  /// The number of hosts that are named.
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
