import ArgumentParser
import Dispatch
import ReelCore
import ReelPlayback

extension Batch {
  /// Runs a command over its list. Throws the exit code unless that is 0.
  ///
  /// - Parameter prepare: Makes the closure that works on a source.
  static func run(
    _ configuration: Configuration,
    _ prepare: @escaping @Sendable (Batch) throws -> @Sendable (Item) async -> Outcome
  ) async throws {
    // Engines wait 5 s or longer after SIGTERM before they kill a process.
    let status = try await Interruption.cancelling(within: .seconds(4), isResumable: true) {
      let batch = Batch(configuration)
      return await batch.run(try prepare(batch))
    }
    PartialFiles.removeAll()
    if status != 0 { throw ExitCode(status) }
  }
}

extension Batch.Item {
  /// The line of one of its files, with the source at its end: on a terminal, as much of it as fits.
  func line(_ file: String) -> String {
    let source = text.printable
    guard let width = Terminal.layout.width else { return "\(file)\t\(source)" }
    // A tab leads to the next multiple of eight columns.
    let used = "\(file)\t".reduce(0) { column, character in
      character == "\t" ? (column / 8 + 1) * 8 : column + 1
    }
    return "\(file)\t\(TextLayout.shortened(source, to: max(24, width - used)))"
  }

  /// What becomes of existing files that have the names of its files. No other source of the list has these names.
  func existingFiles(overwrites: Bool) -> ExistingFiles {
    ExistingFiles(areReplaced: overwrites || mayHaveFiles, of: source)
  }
}
