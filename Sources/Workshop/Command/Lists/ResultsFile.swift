import ReelCore
import ReelPlayback

/// The results of a run as JSON Lines. Each line is written in one piece when its source is done, so a process that is
/// killed loses at most the line that it was writing. The file is locked while it is open.
final class ResultsFile: Sendable {
  /// The sources of earlier runs that are not tried again.
  struct Finished: Sendable {
    var written: Set<SourceHash> = []
    var failed: Set<SourceHash> = []
  }

  /// The longest line in bytes; a file with a longer one is not a results file.
  static let lineLimit = 1 << 28

  private let file: Locked<LockedFile>

  /// Locks a file, and reads its results.
  ///
  /// A cut last line is removed, and so are blank lines and those of sources that failed temporarily, which are tried again:
  /// each source has one line.
  ///
  /// - Parameters:
  ///   - resumes: True to continue an existing file; otherwise one with content is refused.
  ///   - overwrites: True to replace what an existing file has.
  ///
  /// Throws `ReelError.cannotCreateOutput` if the file can't be opened, belongs to a running process, or has other
  /// content than results; `cannotWriteOutput` if the disk is full.
  static func open(
    path: String, resumes: Bool, overwrites: Bool
  ) throws(ReelError) -> (file: ResultsFile, finished: Finished) {
    let file = try LockedFile(
      path: path,
      inUse: (
        "another run is writing to the file", "wait for it, or name another file with --results"
      ))
    var finished = Finished()
    if file.byteCount > 0 {
      guard resumes || overwrites else {
        throw ReelError(
          .cannotCreateOutput, "the file has results of an earlier run", at: path,
          advice: "use --resume to continue it, --overwrite to start over, or --results to name another file")
      }
      do throws(ReelError) {
        if resumes { finished = try readAndRepair(file, path: path) } else { try file.truncate(to: 0) }
      } catch {
        throw advised(error)
      }
    }
    return (ResultsFile(file), finished)
  }

  private init(_ file: sending LockedFile) { self.file = Locked(file, rank: .writer) }

  /// Appends a line, which ends with a newline. Throws `ReelError.cannotWriteOutput`.
  func append(_ line: [UInt8]) throws(ReelError) {
    let result = file.withLock { file in
      Result { () throws(ReelError) in try file.append(line) }
    }
    do throws(ReelError) { try result.get() } catch { throw Self.advised(error) }
  }

  // MARK: - Private

  private static func readAndRepair(_ file: LockedFile, path: String) throws(ReelError) -> Finished {
    var finished = Finished()
    var kept: [Range<Int64>] = []
    var removed = 0
    var number = 0
    func foreign() -> ReelError {
      ReelError(
        .cannotCreateOutput, "not a result of reel", at: path, place: .line(number),
        advice: "name another file with --results")
    }
    let end = try file.forEachLine(limit: lineLimit) { line, range throws(ReelError) in
      number += 1
      // Editors leave blank lines and byte order marks.
      if ResultLine.isBlank(line) {
        removed += 1
        return
      }
      guard let result = ResultLine(line) else { throw foreign() }
      // A list line without a source has no URL, so each run reports it again.
      guard let url = result.url, result.status == .written || !result.isTemporary else {
        removed += 1
        return
      }
      let hash = SourceHash(url)
      _ = result.status == .written ? finished.written.insert(hash) : finished.failed.insert(hash)
      if let last = kept.last, last.upperBound == range.lowerBound {
        kept[kept.count - 1] = last.lowerBound..<range.upperBound
      } else {
        kept.append(range)
      }
    }
    guard let end else {
      throw ReelError(
        .cannotCreateOutput, "not a results file: a line is too long", at: path,
        advice: "name another file with --results")
    }
    number += 1
    let rest = try file.read(end..<min(file.byteCount, end + Int64(ResultLine.longestBeginning)))
    guard ResultLine.canBegin(with: rest) else { throw foreign() }
    if removed > 0 {
      try file.replace(with: kept)
    } else if end < file.byteCount {
      try file.truncate(to: end)
    }
    return finished
  }

  /// The error with advice, if it is one of writing.
  private static func advised(_ error: ReelError) -> ReelError {
    guard error.kind == .cannotWriteOutput else { return error }
    var error = error
    error.advice = error.advice ?? "use --resume to continue the run"
    return error
  }
}
