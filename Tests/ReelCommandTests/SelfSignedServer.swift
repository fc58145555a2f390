import Foundation
import ReelTestSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A TLS server on loopback whose certificate nobody has signed but itself; made with `openssl`.
final class SelfSignedServer: Sendable {
  let port: Int
  /// The path of its certificate.
  var certificate: String { "\(folder.path)/certificate.pem" }
  private let process: Process
  private let folder: TemporaryFolder

  private init(port: Int, process: Process, folder: TemporaryFolder) {
    self.port = port
    self.process = process
    self.folder = folder
  }

  deinit { kill(process.processIdentifier, SIGKILL) }

  /// Nil where there is no `openssl`.
  static func start() async throws -> SelfSignedServer? {
    let candidates = ["/usr/bin/openssl", "/opt/homebrew/bin/openssl", "/usr/local/bin/openssl"]
    guard let openssl = candidates.first(where: FileManager.default.isExecutableFile) else { return nil }
    let folder = try TemporaryFolder()
    let (key, certificate) = ("\(folder.path)/key.pem", "\(folder.path)/certificate.pem")
    let request = Process()
    request.executableURL = URL(filePath: openssl)
    request.arguments = [
      "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
      "-subj",
      "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
    ]
    request.standardError = FileHandle.nullDevice
    request.standardOutput = FileHandle.nullDevice
    let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
    request.terminationHandler = { _ in continuation.finish() }
    try request.run()
    for await _ in ended {}
    guard request.terminationStatus == 0 else { return nil }

    let server = Process()
    server.executableURL = URL(filePath: openssl)
    server.arguments = ["s_server", "-accept", "localhost:0", "-cert", certificate, "-key", key, "-www"]
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
    return SelfSignedServer(port: port, process: server, folder: folder)
  }
}
