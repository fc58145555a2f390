import ArgumentParser
import Foundation
import ReelCore
import ReelTransport

/// How servers are reached: options, and variables of the environment.
struct NetworkOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Send this User-Agent header field with every request.", valueName: "text"))
  var userAgent: String?

  @Option(
    name: .customLong("cacert"),
    help: ArgumentHelp(
      "Trust only the certificate authorities in this PEM file. Default: SSL_CERT_FILE, or those of the system.",
      valueName: "file"))
  var authorities: String?

  @Flag(
    help:
      "Accept any server certificate. Anyone who controls the network can then read and change everything.")
  var insecure = false

  @Option(
    help: ArgumentHelp(
      "Send the cookies in this file to the sites they belong to. The format is that of Netscape and curl.",
      valueName: "file"))
  var cookieFile: String?

  func validate() throws {
    if insecure, authorities != nil { throw ValidationError("--insecure and --cacert can't be combined") }
    if let userAgent, userAgent.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) {
      throw ValidationError("--user-agent takes one line of text")
    }
    do throws(ReelError) {
      _ = try configuration()
    } catch {
      throw ValidationError(error.description)
    }
  }

  /// The configuration of a transport with these options and the proxies of the environment.
  func configuration() throws(ReelError) -> TransportConfiguration {
    var configuration = TransportConfiguration()
    let environment = ProcessInfo.processInfo.environment
    configuration.proxies = try HTTPProxies(environment: environment)
    if let userAgent { configuration.userAgent = userAgent }
    if let path = authorities ?? environment["SSL_CERT_FILE"], !path.isEmpty, !insecure {
      configuration.trust = .authorities(path: path)
    } else if insecure {
      configuration.trust = .any
    }
    try configuration.trust.check()
    if let cookieFile {
      let text = String(
        decoding: try OptionFiles.bytes(of: cookieFile, limit: CookieFile.byteLimit), as: UTF8.self)
      do {
        configuration.cookies = try CookieFile(text)
      } catch {
        throw error.located(at: cookieFile)
      }
    }
    return configuration
  }
}
