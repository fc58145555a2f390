import Foundation
import ReelTestSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A TLS server on loopback with a certificate made by `openssl`. It answers each request with a page.
final class TLSServer: Sendable {
  /// What the server's certificate is like.
  enum Certificate: String, Sendable {
    /// Good, but signed by nobody else.
    case selfSigned
    /// From 2020 to 2021.
    case expired
    /// From 2095.
    case notYetValid
    /// For `other.example` and `*.more.example`.
    case otherHost
    /// Good, but signed by an authority of its own.
    case signed
  }

  let port: Int
  /// The path of the certificate that makes the server's own a trusted one.
  let authority: String
  /// The path for requests.
  var source: String { "https://localhost:\(port)/a.mp4" }
  private let process: Process
  private let folder: TemporaryFolder

  private init(port: Int, authority: String, process: Process, folder: TemporaryFolder) {
    self.port = port
    self.authority = authority
    self.process = process
    self.folder = folder
  }

  deinit { kill(process.processIdentifier, SIGKILL) }

  /// Nil where there is no `openssl`.
  static func start(_ certificate: Certificate = .selfSigned) async throws -> TLSServer? {
    let candidates = ["/usr/bin/openssl", "/opt/homebrew/bin/openssl", "/usr/local/bin/openssl"]
    guard let openssl = candidates.first(where: FileManager.default.isExecutableFile) else { return nil }
    let folder = try TemporaryFolder()
    let maker = CertificateMaker(openssl: openssl, folder: folder)
    let names = certificate == .otherHost ? "DNS:other.example,DNS:*.more.example" : "DNS:localhost"
    let years: (Int, Int) =
      switch certificate {
      case .expired: (2020, 2021)
      case .notYetValid: (2095, 2099)
      case .selfSigned, .otherHost, .signed: (2020, 2099)
      }
    let isSigned = certificate == .signed
    if isSigned, try await !maker.make("authority", named: "Reel Test Authority") { return nil }
    let made = try await maker.make(
      "server", named: "localhost", hosts: names, years: years, by: isSigned ? "authority" : nil)
    guard made else { return nil }

    let server = Process()
    server.executableURL = URL(filePath: openssl)
    server.arguments = [
      "s_server", "-accept", "localhost:0", "-cert", folder.path("server.pem"), "-key",
      folder.path("server.key"), "-www",
    ]
    let output = Pipe()
    server.standardOutput = output
    server.standardError = FileHandle.nullDevice
    server.standardInput = FileHandle.nullDevice
    try server.run()
    let (lines, line) = AsyncStream.makeStream(of: String.self)
    Thread {
      var text = ""
      // "ACCEPT 127.0.0.1:40000"
      while !text.contains("ACCEPT") || !text.contains("\n") {
        let data = output.fileHandleForReading.availableData
        if data.isEmpty { break }
        text += String(decoding: data, as: UTF8.self)
      }
      line.yield(text)
      line.finish()
    }.start()
    var text = ""
    for await part in lines { text += part }
    guard let digits = text.split(separator: ":").last?.prefix(while: \.isNumber), let port = Int(digits)
    else {
      kill(server.processIdentifier, SIGKILL)
      return nil
    }
    let authority = folder.path(isSigned ? "authority.pem" : "server.pem")
    return TLSServer(port: port, authority: authority, process: server, folder: folder)
  }
}

/// Makes keys and certificates with `openssl ca`, which takes the time of validity as dates.
private struct CertificateMaker {
  let openssl: String
  let folder: TemporaryFolder

  /// Writes `name.key` and `name.pem`; false where `openssl` can't.
  ///
  /// - Parameter authority: The name of the issuer's certificate; nil for a self-signed one.
  func make(
    _ name: String, named commonName: String, hosts: String = "DNS:authority.example",
    years: (Int, Int) = (2020, 2099), by authority: String? = nil
  ) async throws -> Bool {
    let configuration = """
      [ca]
      default_ca = own
      [own]
      database = \(folder.path("\(name).index"))
      serial = \(folder.path("\(name).serial"))
      new_certs_dir = \(folder.path)
      default_md = sha256
      policy = policy
      x509_extensions = extensions
      [policy]
      commonName = supplied
      [extensions]
      subjectAltName = \(hosts)
      basicConstraints = CA:\(authority == nil ? "TRUE" : "FALSE")
      """
    try folder.write(configuration, to: "\(name).cnf")
    try Data().write(to: folder.url.appending(path: "\(name).index"))
    let key = folder.path("\(name).key")
    guard
      try await run([
        "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
        "-out", folder.path("\(name).csr"), "-subj", "/CN=\(commonName)",
      ])
    else { return false }
    let issuer =
      authority.map { ["-cert", folder.path("\($0).pem"), "-keyfile", folder.path("\($0).key")] }
      ?? ["-selfsign", "-keyfile", key]
    return try await run(
      [
        "ca", "-batch", "-notext", "-create_serial", "-config", folder.path("\(name).cnf"), "-in",
        folder.path("\(name).csr"), "-out", folder.path("\(name).pem"), "-startdate",
        "\(years.0)0101000000Z", "-enddate", "\(years.1)0101000000Z",
      ] + issuer)
  }

  private func run(_ arguments: [String]) async throws -> Bool {
    let process = Process()
    process.executableURL = URL(filePath: openssl)
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
    process.terminationHandler = { _ in continuation.finish() }
    try process.run()
    for await _ in ended {}
    return process.terminationStatus == 0
  }
}
