import ArgumentParser
import Foundation
import ReelCache
import ReelCore
import ReelLab
import ReelPool

/// `reel cache`: says what a cache folder has, and removes it.
struct CacheCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cache",
    abstract: "Say what the folder of --cache has, and remove it.",
    discussion: """
      Prints the number of entries (one for each resource), of their pieces, and the bytes on disk. Any number of other \
      commands may use the folder at the same time. With --clear or --older, what was removed is printed too. A folder \
      that no command made with --cache is an error, and nothing in it is removed.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    ("Keep what a source needs", "reel probe https://example.com/master.m3u8 --cache kept,200MB"),
    ("Say what was kept", "reel cache kept"),
    ("Remove what was not used for a week", "reel cache kept --older 7d"),
  ]

  @Argument(help: ArgumentHelp("The folder of --cache.", valueName: "folder"), completion: .directory)
  var folder: String

  @Flag(help: "Remove everything.")
  var clear = false

  @Option(
    help: ArgumentHelp("Remove what was not used for this time, such as 7d.", valueName: "time"),
    transform: TimeArgument.seconds)
  var older: Double?

  @OptionGroup var print: PrintOptions

  func validate() throws {
    if folder.isEmpty { throw ValidationError("name the folder of a cache") }
    if clear, older != nil { throw ValidationError("--clear and --older can't be combined") }
    if let older, !(older >= 0 && older <= 1e9) { throw ValidationError("--older takes a time of 0 or more") }
  }

  func run() async throws {
    print.apply()
    try await ExitStatus.run {
      let place = URL(fileURLWithPath: folder, isDirectory: true)
      var contents = try MediaCache.contents(of: place)
      var removed: CacheContents?
      if clear || older != nil {
        let before = contents
        if let older {
          _ = try MediaCache.remove(in: place, unusedFor: .seconds(older))
        } else {
          try MediaCache.removeAll(in: place)
        }
        contents = try MediaCache.contents(of: place)
        removed = before.beyond(contents)
      }
      if print.json {
        try Console.print(JSONLine.string(fields(contents, removed), of: "cache"))
      } else if !print.quiet {
        try Console.printText(Self.lines(contents, removed).joined(separator: "\n"))
      }
      return 0
    }
  }

  // MARK: - Private

  private static func lines(_ contents: CacheContents, _ removed: CacheContents?) -> [String] {
    var lines = ["contents  \(contents.text)"]
    if let limit = contents.byteLimit { lines.append("limit     \(ByteSize(byteCount: Int(limit)))") }
    if let oldest = contents.oldestUse, let newest = contents.newestUse {
      lines.append("last use  from \(text(of: oldest)) to \(text(of: newest))")
    }
    if let removed { lines.append("removed   \(removed.text)") }
    return lines
  }

  private func fields(_ contents: CacheContents, _ removed: CacheContents?) -> JSONFields {
    [
      "folder": folder, "entries": contents.entryCount, "pieces": contents.pieceCount,
      "bytes": contents.byteCount, "limit_bytes": contents.byteLimit,
      "oldest_use": contents.oldestUse.map(Self.text), "newest_use": contents.newestUse.map(Self.text),
      "removed": removed.map { removed -> JSONFields in
        ["entries": removed.entryCount, "pieces": removed.pieceCount, "bytes": removed.byteCount]
      },
    ]
  }

  /// In UTC, to the second.
  private static func text(of time: Date) -> String { time.ISO8601Format() }
}

extension CacheContents {
  fileprivate var text: String {
    "\(entryCount.counted("entry", "entries")), \(pieceCount.counted("piece")), "
      + "\(ByteSize(byteCount: Int(byteCount)))"
  }

  /// What is more than in `other`. Other processes may have added to that meanwhile.
  fileprivate func beyond(_ other: CacheContents) -> CacheContents {
    var contents = self
    contents.entryCount = max(0, entryCount - other.entryCount)
    contents.pieceCount = max(0, pieceCount - other.pieceCount)
    contents.byteCount = max(0, byteCount - other.byteCount)
    return contents
  }
}
