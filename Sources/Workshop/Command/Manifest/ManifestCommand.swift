import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelGateway
import ReelLab
import ReelManifest
import ReelReading
import ReelSources

/// `reel manifest`: prints a manifest as JSON or as HLS.
struct ManifestCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "manifest",
    abstract: "Print the presentation of a manifest as JSON, or as HLS playlists.",
    discussion: """
      Reads the media playlists and segment indexes that the manifest refers to, but no media. Those that can't be read are \
      reported with their rung. The presentation is JSON with or without --json. --timeout limits the reading of it all.

      \(RunOptions.discussion)

      Lines of results have the presentation without its segments, only with their number. In list mode, presentations are not printed; --json prints the lines of results.

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
    ("Read the manifests of a list", "reel manifest --input list.txt --results manifests.jsonl"),
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
    if output == .hls, isList || runOptions.sources.count > 1 {
      throw ValidationError("--output hls takes one source")
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
    try await SourceRun.run(style, runOptions, options) { setting in
      let opener = TrackOpener(
        fetcher: setting.fetcher, configuration: try loading(), logger: setting.logger)
      return SourceRun.Worker { job in
        let loaded = try await job.limited(opener) { opener, _ in
          try await opener.manifest(
            at: job.source, readsSegments: !shallow, readsImages: output == .json)
        }
        return try outcome(loaded, job)
      }
    }
  }

  // MARK: - Private

  private var style: RunStyle {
    RunStyle(record: ManifestRecord.self, printsRecords: output == .json)
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

  private func outcome(_ loaded: LoadedManifest, _ job: SourceRun.Job) throws -> SourceRun.Outcome {
    if output == .json { Console.report(loaded.failures.map(\.error)) }
    for warning in loaded.presentation.warnings { Console.warn("\(warning)") }
    let error = loaded.hasSegments ? nil : loaded.failures.first?.error
    var segments: [PrintedSegments]? = isList ? nil : []
    var record = ManifestRecord(source: job.text, loaded, segments: &segments)
    if let segments, output == .json {
      try PrintedSegments.print(record, with: segments)
    } else if isList {
      (record.manifestUrl, record.url) = (record.url, nil)
    } else {
      let hls = try VirtualHLS(loaded)
      guard !hls.tracks.isEmpty else {
        throw ReelError(
          .unsupported, "no segment of the live presentation is available yet", at: loaded.url.reelName,
          advice: "try again when it has begun")
      }
      hls.report(quietly: options.quiet)
      try HLSOutput(hls: hls).write(to: folder)
    }
    return SourceRun.Outcome(record, error: error, isPrinted: !isList, isReported: true)
  }
}

/// A clock that starts at a given time and continues from there.
private struct FixedStartClock: WallClock {
  private let offset: MediaTime

  init(_ start: WallTime) { offset = start - .now }

  var now: WallTime { .now + offset }

  func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration) }
}
