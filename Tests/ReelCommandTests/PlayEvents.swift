import Foundation
import Testing

/// The lines of a run of `reel play --json`.
struct PlayEvents {
  let all: [[String: Any]]

  init(_ result: CommandResult) throws {
    all = try result.objects
  }

  /// Of a run with these arguments, which is expected to go well.
  static func play(
    _ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> PlayEvents {
    let result = try await Command.run(["play", "--json"] + arguments, sourceLocation: sourceLocation)
    #expect(result.status == 0, "\(result.errorText)", sourceLocation: sourceLocation)
    #expect(result.errorText.isEmpty, "\(result.errorText)", sourceLocation: sourceLocation)
    return try PlayEvents(result)
  }

  /// Without the frames.
  var names: [String] { all.compactMap { $0["event"] as? String }.filter { $0 != "frame" } }
  var summary: [String: Any]? { all.last { $0["event"] as? String == "summary" } }
  var md5s: [String] { frames.compactMap { $0["md5"] as? String } }
  var times: [Double] { frames.compactMap { $0["time"] as? Double } }

  // MARK: - Private

  private var frames: [[String: Any]] { all.filter { $0["event"] as? String == "frame" } }
}
