import ArgumentParser
import Foundation
import Logging
import ReelCache
import ReelCore
import ReelPool

/// The option of commands that keep on disk what they fetch.
struct CacheOptions: ParsableArguments {
  @Option(
    name: .customLong("cache"),
    help: ArgumentHelp(
      """
      Keep manifests and media in this folder as far as servers allow it, and read from it what is still fresh. The \
      folder never holds more than SIZE. Default size: 1GB. reel cache says what is in it.
      """, valueName: "folder[,size]"), completion: .directory)
  var given: String?

  func validate() throws { _ = try OptionValue.read { () throws(ReelError) in try place() } }

  /// Puts the cache in front of a fetcher. Without the option, returns the fetcher itself.
  func applied(to fetcher: any Fetching, logger: Logger) throws(ReelError) -> any Fetching {
    guard let place = try place() else { return fetcher }
    // With --verbose, its lines are among those of all others.
    let log = logger.logLevel <= .warning ? logger : Logger(label: "reel.cache") { _ in WarningLog() }
    return MediaCache(
      at: URL(fileURLWithPath: place.folder, isDirectory: true), byteLimit: Int64(place.limit.byteCount),
      inFrontOf: fetcher, logger: log)
  }

  /// Keeps what has come until now, before the process ends.
  static func finish(_ fetcher: any Fetching) async { await (fetcher as? MediaCache)?.finish() }

  /// Nil without the option.
  private func place() throws(ReelError) -> CachePlace? {
    try given.map { text throws(ReelError) in try CachePlace(parsing: text) }
  }
}

/// The folder and the size of a cache, as in `media` or `media,200MB`.
struct CachePlace: Equatable {
  let folder: String
  let limit: ByteSize

  private static let usualLimit = ByteSize(byteCount: 1_000_000_000)
  /// Less than a first segment is of no use.
  private static let leastLimit = ByteSize(byteCount: 1_000_000)

  /// What follows the last comma belongs to the name of the folder, unless it is a size.
  init(parsing text: String) throws(ReelError) {
    var (folder, limit) = (text, Self.usualLimit)
    if let comma = text.lastIndex(of: ","),
      let size = try? ByteSize(parsing: String(text[text.index(after: comma)...]))
    {
      (folder, limit) = (String(text[..<comma]), size)
    }
    guard !folder.isEmpty else {
      throw ReelError(.usage, "--cache takes a folder, or a folder and its size, such as media,200MB")
    }
    guard limit.byteCount >= Self.leastLimit.byteCount else {
      throw ReelError(
        .usage, "--cache: a cache of \(limit) is too small",
        advice: "write 1MB or more; if the folder is named \(text), add its size")
    }
    (self.folder, self.limit) = (folder, limit)
  }
}

/// Prints what a cache reports as a warning of the command.
private struct WarningLog: LogHandler {
  var metadata = Logger.Metadata()
  var logLevel = Logger.Level.warning

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let details = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
    Console.warn(([event.message.description] + details).joined(separator: ", "))
  }
}
