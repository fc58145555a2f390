import Foundation
import ReelCore
import ReelPlayback

/// The files that `reel feed` writes beside its report.
///
/// They are begun before the walk: what can't be made is known then.
struct FeedOutputs: Sendable {
  let trace: TraceFile?
  let sheet: ContactSheet?

  /// Throws `ReelError.cannotCreateOutput`.
  init(trace: String?, contactSheet: String?) throws(ReelError) {
    self.trace = try trace.map { path throws(ReelError) in TraceFile(try Self.file(path)) }
    sheet = try contactSheet.map { path throws(ReelError) in ContactSheet(try Self.file(path)) }
  }

  /// Gives the files their names; why some can't be had, where that is so.
  func commit() -> [ReelError] {
    var failures: [ReelError] = []
    do throws(ReelError) { try trace?.commit() } catch { failures.append(error) }
    do throws(ReelError) { try sheet?.commit() } catch { failures.append(error) }
    return failures
  }

  // MARK: - Private

  private static func file(_ path: String) throws(ReelError) -> OutputFile {
    var isDirectory: ObjCBool = false
    let isThere = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
    // It would be noticed when the file takes its name, at the end of the walk.
    guard !path.hasSuffix("/"), !(isThere && isDirectory.boolValue) else {
      throw ReelError(.cannotCreateOutput, "is a directory", at: path, advice: "name a file in it")
    }
    return try OutputFile(path: path)
  }
}
