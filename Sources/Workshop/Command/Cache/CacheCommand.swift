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
  }
}
