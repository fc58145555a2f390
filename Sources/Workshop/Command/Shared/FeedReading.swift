import ArgumentParser
import Foundation
import HTTPTypes
import ReelCore
import ReelFFmpeg
import ReelPool
import ReelLab
internal import ReelPlayback
import ReelSimulation
import ReelSources

/// Reads the bytes of feed files: local ones, those of servers, and standard input.
struct FeedReading: Sendable {
  private let loading: LoadingConfiguration
  private let timeout: Double
  private let fetcher: any Fetching
  private let readsStandardInput: Bool

  init(_ options: SourceOptions, _ fetcher: any Fetching, readsStandardInput: Bool = false) throws {
    self.readsStandardInput = readsStandardInput
    loading = try options.loading()
    timeout = options.timeout
    self.fetcher = fetcher
  }

  /// - Parameter argument: A path, a URL, or `-` for standard input.
  /// - Returns: The bytes, and their final location.
  /// - Throws: `ReelError`, of kind `timedOut` if a server or a pipe takes longer than `--timeout` for all of it.
  func read(_ argument: String) async throws -> (bytes: [UInt8], location: MediaSource) {
    let source = try MediaSource(argument: argument)
    switch source {
    case .url(let url) where !url.isFileURL:
      var request = FetchRequest(url: url, purpose: .source)
      loading.headers(of: url).apply(to: &request)
      let sent = request
      // A server may send bytes for ever, each of them in time.
      return try await withLimit(seconds: timeout, source: source.name, fetcher: fetcher) { fetcher, _ in
        let response = try await fetcher.fetch(sent)
        return (try await response.body.collect(upTo: FeedLimits().byteCount), .url(response.url))
      }
    case .url(let url):
      return (try LocalText.bytes(path: url.path, limit: FeedLimits().byteCount), source)
    case .standardInput:
      guard readsStandardInput else {
        throw ReelError(.usage, "the feed of a lab must be a file or URL", at: "-")
      }
      return try await withLimit(seconds: timeout, source: source.name, fetcher: fetcher) { _, _ in
        (try await Self.standardInput(upTo: FeedLimits().byteCount), source)
      }
    }
  }

  // MARK: - Private

  /// Reads on a thread of its own, because a pipe may deliver nothing for any time.
  private static func standardInput(upTo limit: Int) async throws -> [UInt8] {
    let (pieces, continuation) = AsyncThrowingStream.makeStream(of: Data.self)
    Thread {
      do {
        while let piece = try FileHandle.standardInput.read(upToCount: 1 << 16), !piece.isEmpty {
          continuation.yield(piece)
        }
        continuation.finish()
      } catch {
        continuation.finish(throwing: ReelError(.noSuchFile, "can't be read", at: "standard input"))
      }
    }.start()
    var bytes: [UInt8] = []
    for try await piece in pieces {
      bytes += piece
      guard bytes.count <= limit else {
        throw ReelError(.badManifest, "larger than the limit of \(limit) bytes", at: "standard input")
      }
    }
    // The stream also ends when the task is cancelled.
    try Task.checkCancellation()
    return bytes
  }
}

extension LoadingConfiguration {
  /// Returns the configuration for the items of a feed: credentials for a feed on a server are not for the servers that it
  /// names.
  func playing(feed argument: String) -> LoadingConfiguration {
    var copy = self
    if let url = try? MediaSource(argument: argument).url, !url.isFileURL { copy.feed = url }
    return copy
  }
}

extension PoolConfiguration {
  /// The settings of a pool that a walk measures.
  init(
    walkingWith slotCount: Int, _ policy: any PreloadPolicy, firstRung: FirstRung,
    loading: LoadingConfiguration, adaptsBitRate: Bool
  ) {
    self.init()
    self.slotCount = slotCount
    self.policy = policy
    self.firstRung = firstRung
    player.loading = loading
    player.adaptsBitRate = adaptsBitRate
    // Bytes read from a file count like bytes received over a network.
    player.loading.fetchesFiles = true
  }
}

/// The files that `reel feed` and `reel lab` write besides their results.
struct WalkResultOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Write an HTML report.", valueName: "file"), completion: .file())
  var report: String?

  @Option(help: ArgumentHelp("Write the results as CSV.", valueName: "file"), completion: .file())
  var csv: String?

  func validate() throws {
    try Self.checkFile(report, of: "--report")
    try Self.checkFile(csv, of: "--csv")
  }

  /// Throws `ValidationError` for a path that is not a file. Standard output is for the results as text or
  /// JSON.
  static func checkFile(_ path: String?, of option: String) throws {
    if path == "-" { throw ValidationError("\(option) takes a file; write ./- for a file named -") }
    if path == "" { throw ValidationError("\(option) takes a file") }
  }
}

extension DeviceModel {
  /// The figures in one line.
  var summary: String {
    var limits: [String] = []
    if let decoderLimit { limits.append("\(decoderLimit) decoders") }
    limits.append(coreCount.counted("core"))
    if let memoryLimit { limits.append("\(ByteSize(byteCount: memoryLimit))") }
    if let transferLimit { limits.append("\(transferLimit) transfers") }
    var cost = "opening \(DurationText.readable(decodeCost.opening)), frame \(Self.text(decodeCost.others))"
    if let av1 = decodeCost.codecs[.av1], av1 != decodeCost.others { cost += " (AV1 \(Self.text(av1)))" }
    return "\(limits.joined(separator: ", ")); \(cost)"
  }

  private static func text(_ cost: DecodeCost.Frame) -> String {
    "\(DurationText.readable(cost.constant)) + \(cost.nanosecondsPerPixel.formatted(places: 3)) ns per pixel"
  }
}

extension LinkSpec {
  /// The named profiles with their values.
  static var profileList: String {
    profiles.map { "\($0.name) (\($0.link))" }.joined(separator: ", ")
  }
}
