internal import Foundation
internal import NIOSSL
public import ReelCore

/// Which certificates of `https` servers are accepted.
public enum ServerTrust: Sendable, Hashable {
  /// Those that the system's certificate authorities have signed.
  case system
  /// Those that the authorities in a PEM file have signed, and no others.
  case authorities(path: String)
  /// All of them, for any host. Whoever controls the network can read and change everything, header fields and keys
  /// included.
  case any

  /// Checks that the authorities can be read.
  ///
  /// - Throws: `ReelError` of kind `noSuchFile` for a file that can't be read, and of kind `usage` for one without a
  ///   certificate.
  public func check() throws(ReelError) {
    guard case .authorities(let path) = self else { return }
    guard FileManager.default.isReadableFile(atPath: path) else {
      throw ReelError(.noSuchFile, "the certificate file can't be read", at: path)
    }
    let certificates = try? NIOSSLCertificate.fromPEMFile(path)
    guard certificates?.isEmpty == false else {
      throw ReelError(.usage, "the file has no certificate in the PEM format", at: path)
    }
  }

  /// Nil for AsyncHTTPClient's own, which is the system's.
  var tlsConfiguration: TLSConfiguration? {
    var configuration = TLSConfiguration.makeClientConfiguration()
    switch self {
    case .system: return nil
    case .authorities(let path): configuration.trustRoots = .file(path)
    case .any: configuration.certificateVerification = .none
    }
    return configuration
  }
}
