public import Foundation

/// A folder of a test's own, removed with it.
public final class TemporaryFolder: Sendable {
  public let url: URL
  public var path: String { url.path }

  public init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "reel-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  public func path(_ name: String) -> String { url.appending(path: name).path }

  /// All names in it, hidden ones too, in alphabetical order; none if a subfolder does not exist.
  public func names(_ subfolder: String = "") -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: url.appending(path: subfolder).path)) ?? [])
      .sorted()
  }

  public func bytes(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: url.appending(path: name)))
  }
}
