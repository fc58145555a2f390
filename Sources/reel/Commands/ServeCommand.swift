import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelTesting

/// `reel serve`: a static origin, on a modelled link and with faults if asked for.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Serve a folder over HTTP, on a modelled link.",
    discussion: """
      Prints the URL to open, then serves until it is interrupted. The link is one bottleneck for all connections: \
      downlink rate and round trip, as 10Mbit/50ms, or a profile: \(LinkSpec.profileList).
      """)

  @Argument(help: "The folder to serve.")
  var directory: String

  @Option(help: "The address to listen on.")
  var host = "127.0.0.1"

  @Option(help: "The port to listen on; 0 for any that is free.")
  var port = 8080

  @Option(help: ArgumentHelp("The modelled link.", valueName: "spec"))
  var link: String?

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "A fault, as 'seg*.ts=status:503x2': path pattern, kind, count. Can be repeated.", valueName: "spec"))
  var fault: [String] = []

  func validate() throws {
    guard (0...65535).contains(port) else { throw ValidationError("--port takes a number from 0 to 65535") }
  }

  func run() async throws {
    LoggingSystem.bootstrap { label in
      var handler = StreamLogHandler.standardError(label: label)
      handler.logLevel = .error
      return handler
    }
    do {
      var isDirectory: ObjCBool = false
      guard FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory) else {
        throw ReelError(.noSuchFile, "no such folder", at: directory)
      }
      guard isDirectory.boolValue else { throw ReelError(.usage, "is a file, not a folder", at: directory) }
      var configuration = Origin.Configuration()
      configuration.directory = URL(fileURLWithPath: directory, isDirectory: true)
      configuration.host = host
      configuration.port = port
      configuration.link = try link.map { text throws(ReelError) in try LinkSpec(parsing: text) }
      configuration.faults = try fault.flatMap { text throws(ReelError) in try FaultRule.parse(text) }
      let settings = configuration
      try await Interruption.cancelling {
        let origin = try await Origin.start(settings, logger: Logger(label: "reel.serve"))
        try Console.print(origin.baseURL.absoluteString)
        // Until the task is cancelled.
        do { try await Task.sleep(for: .seconds(1 << 30)) } catch {}
        await origin.stop()
      }
      throw ReelError(.cancelled, "interrupted")
    } catch {
      if error.asReelError.kind != .cancelled { Console.report(error.asReelError) }
      throw ExitCode(ExitStatus.code(of: error.asReelError))
    }
  }
}

extension LinkSpec {
  /// The named profiles with their figures.
  fileprivate static var profileList: String {
    profiles.map { "\($0.name) (\($0.link))" }.joined(separator: ", ")
  }
}
