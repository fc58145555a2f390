import ArgumentParser
import ReelCore

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
    case .internalFault: 70
    case .cannotCreateOutput: 73
    case .cannotWriteOutput: 74
    case .cancelled: interrupted
    }
  }

  /// The exit code of a run over several sources, of which these failed; 0 without errors.
  static func code(of errors: [ReelError], sourceCount: Int) -> Int32 {
    guard let first = errors.first else { return 0 }
    if errors.contains(where: { $0.kind == .cancelled }) { return interrupted }
    if let closed = errors.first(where: \.concernsStandardOutput) { return code(of: closed) }
    return sourceCount == 1 ? code(of: first) : failedSource
  }

  /// Throws that exit code, unless there are no errors.
  static func check(_ errors: [ReelError], sourceCount: Int) throws {
    if !errors.isEmpty { throw ExitCode(code(of: errors, sourceCount: sourceCount)) }
  }
}

extension ReelError {
  /// True if standard output takes nothing more, which ends the run and not only one source.
  var concernsStandardOutput: Bool { kind == .cannotWriteOutput && location == "standard output" }
}
