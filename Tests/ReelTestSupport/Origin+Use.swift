import HTTPTypes
public import Logging
import ReelCore
public import ReelTesting

extension Origin {
  /// Runs `body` with an origin, and stops the origin at the end.
  public static func use<Result>(
    _ configuration: Configuration = Configuration(directory: Fixtures.folder), logger: Logger = silentLogger,
    _ body: (Origin) async throws -> Result
  ) async throws -> Result {
    let origin = try await start(configuration, logger: logger)
    do {
      let result = try await body(origin)
      await origin.stop()
      return result
    } catch {
      await origin.stop()
      throw error
    }
  }
}

extension Origin.Configuration {
  /// An origin that ignores ranges, although it says that it supports them.
  public static func ignoringRanges(of bytes: [UInt8], at path: String) -> Self {
    let response = Origin.Response(bytes, headers: [.acceptRanges: "bytes"])
    return Self(routes: [path: response], supportsRanges: false)
  }
}

/// Throws every log line away.
public let silentLogger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
