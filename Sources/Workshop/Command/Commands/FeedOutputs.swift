import Foundation
import ReelCore
import ReelPlayback

/// The files that `reel feed` writes beside its report.
///
/// They are begun before the walk: what can't be made is known then.
struct FeedOutputs: Sendable {
  /// JSON Lines.
  let trace: TraceFile?
  /// The trace in Chrome's format.
  let chromeTrace: ResultFile?
  let page: ResultFile?
  let csv: ResultFile?
  let junit: ResultFile?

  /// Throws `ReelError.cannotCreateOutput`.
  init(_ command: FeedCommand) throws(ReelError) {
    func file(_ path: String?) throws(ReelError) -> ResultFile? {
      try path.map { path throws(ReelError) in try ResultFile(path) }
    }
    let isChrome = command.trace?.lowercased().hasSuffix(".json") ?? false
    trace =
      isChrome
      ? nil
      : try command.trace.map { path throws(ReelError) in
        TraceFile(try ResultFile.open(path))
      }
    chromeTrace = isChrome ? try file(command.trace) : nil
    page = try file(command.results.report)
    csv = try file(command.results.csv)
    junit = try file(command.junit)
  }
}

/// A file that is written at once, at the end of a run. It is begun before.
final class ResultFile: Sendable {
  private struct State: ~Copyable {
    let file: OutputFile
  }

  private let state: Locked<State>

  /// Throws `ReelError.cannotCreateOutput`.
  init(_ path: String) throws(ReelError) {
    state = Locked(State(file: try Self.open(path)), rank: .writer)
  }

  /// Writes the whole file and gives it its name.
  func write(_ bytes: [UInt8]) throws(ReelError) {
    let failure = state.withLock { state -> ReelError? in
      do throws(ReelError) {
        try state.file.write(bytes)
        try state.file.commit()
      } catch { return error }
      return nil
    }
    if let failure { throw failure }
  }

  func write(_ text: String) throws(ReelError) { try write(Array(text.utf8)) }

  /// Throws `ReelError.cannotCreateOutput`.
  static func open(_ path: String) throws(ReelError) -> sending OutputFile {
    var isDirectory: ObjCBool = false
    let isThere = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
    // It would be noticed when the file takes its name, at the end.
    guard !path.hasSuffix("/"), !(isThere && isDirectory.boolValue) else {
      throw ReelError(.cannotCreateOutput, "is a directory", at: path, advice: "name a file in it")
    }
    return try OutputFile(path: path)
  }
}
