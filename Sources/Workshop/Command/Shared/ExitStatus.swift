import ArgumentParser
import ReelCore
import ReelFiles

/// The exit codes of the command line contract (sysexits.h).
enum ExitStatus {
  static let failedSource: Int32 = 1
  /// Sources of a list failed that may succeed on a retry, or were not reached (EX_TEMPFAIL of sysexits.h).
  static let mayPass: Int32 = 75
  static let interrupted: Int32 = 130

  /// Returns the exit code for a failure of one source.
  static func code(of error: ReelError) -> Int32 {
    switch error.kind {
    case .usage: 64
    case .badMedia, .badManifest, .unsupported: 65
    case .noSuchFile: 66
    case .server, .network, .timedOut: 69
    case .cannotCreateOutput: 73
    case .cannotWriteOutput: 74
    case .cancelled: interrupted
    default: 70
    }
  }

  /// The exit code of a run over several sources, of which these failed; 0 without errors.
  static func code(of errors: [ReelError], sourceCount: Int) -> Int32 {
    guard let first = errors.first else { return 0 }
    if errors.contains(where: { $0.kind == .cancelled }) { return interrupted }
    if let closed = errors.first(where: \.concernsStandardOutput) { return code(of: closed) }
    return sourceCount == 1 ? code(of: first) : failedSource
  }

  /// Runs the work of a command, and throws the exit code that it returns, unless that is 0. An error of the work is
  /// reported, except for that of Ctrl-C, and has a code of its own.
  static func run(_ work: @Sendable () async throws -> Int32) async throws {
    let status: Int32
    do {
      status = try await work()
    } catch {
      let error = error.asReelError
      if error.kind != .cancelled { Console.report(error) }
      status = code(of: error)
    }
    PartialFiles.removeAll()
    if status != 0 { throw ExitCode(status) }
  }
}

extension ReelError {
  /// True if standard output takes nothing more, which ends the run and not only one source.
  var concernsStandardOutput: Bool { kind == .cannotWriteOutput && location == "standard output" }
}
