import ArgumentParser
import ReelCore
import ReelPlayback

/// Works on the sources that the command line names, several at a time.
struct SourceRun: Sendable {
  struct Item: Sendable {
    let source: MediaSource
    /// The source as the user wrote it.
    let argument: String
    /// The name of its files without number and extension. No other source of the run has the same.
    let stem: String
  }

  let sources: [String]
  /// The number of sources that are open at once.
  var jobs = 1
  /// The folder to make; nil or `-` for none.
  var output: String?
  let options: SourceOptions

  /// Checks `-o` and `--jobs`.
  static func validate(output: String, sources: [String], jobs: Int, options: SourceOptions) throws {
    if !(1...4096).contains(jobs) { throw ValidationError("--jobs takes a number from 1 to 4096") }
    if output.isEmpty { throw ValidationError("-o takes a folder, or - for standard output") }
    if output == "-", sources.count > 1 { throw ValidationError("-o - takes one source") }
    if output == "-", options.json { throw ValidationError("-o - and --json both write to standard output") }
  }

  /// Calls `work` with each source; reports errors on standard error. Closed standard output ends the run.
  ///
  /// - Parameters:
  ///   - work: Prints the result, and with `--json` the record of an error that it throws.
  ///   - failed: The JSON record of a source that is no URL, or that was not reached before the process was interrupted.
  /// - Returns: The errors of the sources that failed.
  func run<Record: Encodable>(
    _ work: @escaping @Sendable (Item) async throws -> Void, failed: (String, ReelError) -> Record
  ) async -> [ReelError] {
    if let output, output != "-" {
      do {
        try OutputFolder.make(output)
      } catch {
        Console.report(error)
        return [error]
      }
    }
    let parsed = sources.map { argument in
      Result { () throws(ReelError) in try MediaSource(argument: argument) }
    }
    let stems = OutputNames.stems(of: parsed.map { (try? $0.get()) ?? .standardInput })
    let failures = FailureLog()
    let count = WorkCount(of: sources.count)
    let begun = await WorkProgress.showing(when: !options.quiet, { count.text(after: $0) }) {
      await withTaskGroup(of: Void.self) { group in
        var running = 0
        for (index, source) in parsed.enumerated() {
          if running >= jobs {
            await group.next()
            running -= 1
          }
          if Task.isCancelled || failures.isOutputClosed { return index }
          switch source {
          case .success(let source):
            running += 1
            let item = Item(source: source, argument: sources[index], stem: stems[index])
            group.addTask {
              do { try await work(item) } catch { failures.append(error.asReelError) }
              count.add()
            }
          case .failure(let error):
            printRecord(failed(sources[index], error))
            failures.append(error)
            count.add()
          }
        }
        return parsed.count
      }
    }
    guard Task.isCancelled else { return failures.all }
    // Every source has a line, including those that were not started.
    for argument in sources[begun...] { printRecord(failed(argument, .interrupted)) }
    return failures.all + [.interrupted]
  }

  // MARK: - Private

  private func printRecord(_ record: some Encodable) {
    if options.json { try? Console.print(JSONLine.string(record)) }
  }
}

/// The errors of the sources that failed, from any thread.
private final class FailureLog: Sendable {
  private let errors = Locked<[ReelError]>([])

  var all: [ReelError] { errors.withLock { $0 } }

  /// True if nothing more can be printed.
  var isOutputClosed: Bool {
    errors.withLock { errors in
      errors.contains { $0.kind == .cannotWriteOutput && $0.location == "standard output" }
    }
  }

  /// Adds an error, and reports it unless the user has caused it.
  func append(_ error: ReelError) {
    errors.withLock { $0.append(error) }
    if error.kind != .cancelled { Console.report(error) }
  }
}
