import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelRules
import ReelGateway
import ReelLab
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

      \(RunOptions.discussion)

      Lines of results have the presentation without its segments, only with their number, and with --strict the number of \
      violations. In list mode, presentations are not printed; --json prints the lines of results.

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
    ("Check the manifests of a list", "reel manifest --input list.txt --strict --results manifests.jsonl"),
  ]

  /// The form of the output.
  enum Output: String, ExpressibleByArgument, CaseIterable {
    case json
    case hls
  }

  @OptionGroup var runOptions: RunOptions

  @Option(help: ArgumentHelp("json prints the presentation, hls its playlists.", valueName: "json|hls"))
  var output: Output = .json

  @Option(
    name: .customShort("o"),
    help: ArgumentHelp("With --output hls: write the playlists to this folder.", valueName: "dir"),
    completion: .directory)
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
    help: ArgumentHelp(
      "Use this instead of the current time, such as 2026-01-31T12:00:00Z.", valueName: "time"))
  var now: String?

  @OptionGroup var options: SourceOptions

  func validate() throws {
    try runOptions.validate(style, options)
    if let folder, OutputFolder.isNamedLikeFile(folder) {
      throw ValidationError("-o takes a folder; for one of that name, write \(folder)/")
    }
    if follow || output == .hls, isList || runOptions.sources.count > 1 {
      throw ValidationError("\(follow ? "--follow" : "--output hls") takes one source")
    }
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
    try await Batch.run(style, runOptions, options) { setting in
      let loader = ManifestLoader(
        fetcher: setting.fetcher, configuration: try loading(), logger: setting.logger)
      return Batch.Worker { job in
        if follow {
          try await follow(job.source, loader)
          return Batch.Outcome(nil)
        }
        let loaded = try await job.limited(loader.fetcher) { fetcher, _ in
          var loader = loader
          loader.fetcher = fetcher
          return try await loader.load(
            job.source, readsSegments: !shallow, readsImages: output == .json || strict)
        }
        return try outcome(loaded, job)
      }
    }
  }

  // MARK: - Private

  private var style: RunStyle {
    RunStyle(record: ManifestRecord.self, printsRecords: output == .json && !follow)
  }

  private var isList: Bool { style.isList(runOptions) }

  private func loading() throws -> LoadingConfiguration {
    var configuration = try options.loading()
    if let now, let time = WallTime(iso8601: now) {
      configuration.clock = FixedStartClock(time)
      configuration.asksServersForTime = false
    }
    return configuration
  }

  private func outcome(_ loaded: LoadedManifest, _ job: Batch.Job) throws -> Batch.Outcome {
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
    } else {
      for warning in loaded.presentation.warnings { Console.warn("\(warning)") }
    }
    var error = faults.first
    if !loaded.hasSegments { error = error ?? loaded.failures.first?.error }
    var segments: [PrintedSegments]? = isList ? nil : []
    var record = ManifestRecord(source: job.text, loaded, segments: &segments)
    if let segments, output == .json {
      try PrintedSegments.print(record, with: segments)
    } else if isList {
      record.violations = strict ? faults.count : nil
      (record.manifestUrl, record.url) = (record.url, nil)
    } else {
      try HLSOutput(hls: VirtualHLS(reporting: loaded, quietly: options.quiet)).write(to: folder)
    }
    return Batch.Outcome(record, error: error, isPrinted: !isList, isReported: true)
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
          update.record,
          with: [PrintedSegments(newest, of: update.segments, withInitializations: false)])
      }
    }
    guard let duration else { return try await followed(loader.fetcher) }
    do {
      try await withLimit(seconds: duration, source: source.name, fetcher: loader.fetcher) { fetcher, _ in
        try await followed(fetcher)
      }
    } catch let error as ReelError where error.kind == .timedOut && error.advice != nil {
      // The user's time limit is not a failure if updates were received before.
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
