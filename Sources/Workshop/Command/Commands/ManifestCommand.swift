import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelRules
import ReelGateway
import ReelManifest
import ReelPlayback

/// `reel manifest`: prints a manifest as JSON or as HLS.
struct ManifestCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "manifest",
    abstract: "Print the presentation of a manifest as JSON, or as HLS playlists.",
    discussion: """
      Reads the media playlists and segment indexes that the manifest refers to, but no media. Those that can't be read are \
      reported with their rung. The presentation is JSON with or without --json. --timeout limits the reading of it all.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Print the tracks and segments of a presentation as JSON",
      "reel manifest https://example.com/master.m3u8"
    ),
    (
      "Print a DASH presentation as HLS playlists",
      "reel manifest https://example.com/manifest.mpd --output hls"
    ),
  ]

  /// The form of the output.
  enum Output: String, ExpressibleByArgument, CaseIterable {
    case json
    case hls
  }

  @Argument(help: "A path, a URL, or - for standard input.")
  var source: String

  @Option(help: ArgumentHelp("json prints the presentation, hls its playlists.", valueName: "json|hls"))
  var output: Output = .json

  @Option(
    name: .customShort("o"),
    help: ArgumentHelp("With --output hls: write the playlists to this folder.", valueName: "dir"))
  var folder: String?

  @Flag(help: "Do not read media playlists and segment indexes.")
  var shallow = false

  @Flag(help: "Report violations of the standards, with line numbers, and fail if there are any.")
  var strict = false

  @Flag(help: "Follow a live presentation, and print a line of JSON for each change until it ends.")
  var follow = false

  @Option(
    help: ArgumentHelp("With --follow: stop after this time.", valueName: "time"),
    transform: TimeArgument.seconds)
  var duration: Double?

  @Option(
    help: ArgumentHelp("Use this instead of the current time, as 2026-01-31T12:00:00Z.", valueName: "time"))
  var now: String?

  @OptionGroup var options: SourceOptions

  func validate() throws {
    if follow, strict || shallow || folder != nil || output != .json {
      throw ValidationError("--follow can only be combined with --duration and --now")
    }
    if duration != nil, !follow { throw ValidationError("--duration requires --follow") }
    if let duration, !(duration > 0 && duration <= 1e9) {
      throw ValidationError("--duration takes a time above 0")
    }
    if folder != nil, output != .hls { throw ValidationError("-o requires --output hls") }
    if output == .hls, options.json { throw ValidationError("--json and --output hls can't be combined") }
    if output == .hls, shallow {
      throw ValidationError("--output hls needs the segments and can't be combined with --shallow")
    }
    if let now, WallTime(iso8601: now) == nil {
      throw ValidationError("--now takes a time as 2026-01-31T12:00:00Z, not '\(now)'")
    }
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    do {
      try await Interruption.cancelling {
        let source = try MediaSource(argument: source)
        let loader = ManifestLoader(
          fetcher: try options.transport(logger: logger), configuration: try loading(), logger: logger)
        if follow {
          try await follow(source, loader)
        } else {
          let loaded = try await WorkProgress.showing(when: !options.quiet, WorkCount(of: 1).text) {
            try await withDeadline(seconds: options.timeout, source: source.name, fetcher: loader.fetcher) {
              fetcher in
              var loader = loader
              loader.fetcher = fetcher
              return try await loader.load(
                source, readsSegments: !shallow, readsImages: output == .json || strict)
            }
          }
          try print(loaded)
        }
      }
    } catch let code as ExitCode {
      throw code
    } catch {
      let error = error.asReelError
      if output == .json, !follow, error.kind != .cancelled {
        try? Console.print(JSONLine.string(ManifestRecord(source: source, error: error)))
      }
      if error.kind != .cancelled { Console.report(error) }
      throw ExitCode(ExitStatus.code(of: error))
    }
  }

  // MARK: - Private

  private func loading() throws -> LoadingConfiguration {
    var configuration = try options.loading()
    if let now, let time = WallTime(iso8601: now) {
      configuration.clock = FixedStartClock(time)
      configuration.asksServersForTime = false
    }
    return configuration
  }

  private func print(_ loaded: LoadedManifest) throws {
    if output == .json { Console.report(loaded.failures.map(\.error)) }
    var faults: [ReelError] = []
    if strict {
      faults = loaded.documents.flatMap { document in
        RuleChecker().violations(in: document.bytes, format: document.format, url: document.url)
      }
      if let fault = loaded.presentation.live?.driftFault {
        faults.append(fault.located(at: loaded.url.isFileURL ? loaded.url.path : loaded.url.absoluteString))
      }
      for fault in faults { Console.report(fault) }
    } else if !options.quiet {
      for warning in loaded.presentation.warnings { Console.warn("\(warning)") }
    }
    switch output {
    case .json:
      var segments: [PrintedSegments] = []
      let record = ManifestRecord(source: source, loaded, segments: &segments)
      try PrintedSegments.print(record, with: segments)
    case .hls:
      let hls = try VirtualHLS(reporting: loaded, quietly: options.quiet)
      try HLSOutput(hls: hls).write(to: folder)
    }
    if !faults.isEmpty { throw ExitCode(ExitStatus.code(of: faults[0])) }
    if let failure = loaded.failures.first, !loaded.hasSegments {
      throw ExitCode(ExitStatus.code(of: failure.error))
    }
  }

  private func follow(_ source: MediaSource, _ loader: ManifestLoader) async throws {
    let hasBegun = Locked(false)
    let followed = { @Sendable (fetcher: any Fetching) in
      var loader = loader
      loader.fetcher = fetcher
      try await loader.follow(source) { update in
        hasBegun.withLock { $0 = true }
        let newest = update.segments.suffix(SegmentRecord.liveLimit)
        try PrintedSegments.print(
          LiveUpdateRecord(update),
          with: [PrintedSegments(newest, of: update.segments, withInitializations: false)])
      }
    }
    guard let duration else { return try await followed(loader.fetcher) }
    do {
      try await withDeadline(
        seconds: duration, source: source.name, fetcher: loader.fetcher, followed)
    } catch let error as ReelError where error.kind == .timedOut && error.advice != nil {
      // Reaching the user's time limit is no failure if something was followed before.
      guard hasBegun.withLock({ $0 }) else {
        var late = error
        late.reason = "nothing to follow: \(error.reason)"
        if error.advice == ReelError.moreTime { late.advice = "allow more time with --duration" }
        throw late
      }
    }
  }
}

/// A clock that starts at a given time and continues from there.
private struct FixedStartClock: WallClock {
  private let offset: MediaTime

  init(_ start: WallTime) { offset = start - .now }

  var now: WallTime { .now + offset }

  func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration) }
}
