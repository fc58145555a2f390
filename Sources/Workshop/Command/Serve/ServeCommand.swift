import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelGateway
import ReelManifest
import ReelLab
import ReelReading
import ReelTesting
import ReelSimulation
import ReelSources

/// `reel serve`: serves a presentation as HLS, or a folder over a modelled link.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Serve a presentation as HLS, or a folder over a modelled link.",
    discussion: """
      Prints the URL to open, then serves until it is interrupted.

      A manifest (DASH or HLS, on demand) is served as HLS. Reel generates the playlists; requests for init and media \
      segments are redirected to their origin, or passed through with --proxy. Local media is always passed through. \
      --timeout limits the reading of the manifest.

      A folder is served as it is. --link models one bottleneck for all connections. It takes a rate and a round-trip \
      time (10Mbit/50ms), a profile (\(LinkSpec.profileList)), or a recorded downlink, which repeats when it ends: a file \
      whose lines hold seconds and Mbit/s, or a time in ms at which 1500 bytes can pass (Mahimahi). The \
      options start=30s, scale=4 and rtt=50ms follow after commas.

      --fault breaks responses on purpose: PATTERN=KIND[:ARGUMENT][xCOUNT]. PATTERN is matched against the path without \
      its leading slash, or, if it contains no slash, against the last component; * matches any characters, ? exactly \
      one. With xCOUNT, the fault ends after that many matching requests. The first rule that matches and has not ended \
      applies. Kinds:
      \(HelpText.list(FaultRule.forms))

      --json has no effect.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Serve a DASH presentation as HLS at http://127.0.0.1:8080/",
      "reel serve https://example.com/manifest.mpd --port 8080"
    ),
    ("Serve a folder over a slow link", "reel serve media --link 3g --port 8081"),
  ]

  @Argument(help: "The path or URL of a manifest, or a folder.", completion: .file())
  var source: String

  @Option(help: "The address to listen on.")
  var host = "127.0.0.1"

  @Option(help: "The port to listen on; 0 for any free port.")
  var port = 8080

  @Flag(help: "For a manifest: pass media through instead of redirecting to its origin.")
  var proxy = false

  @Option(help: ArgumentHelp("For a folder: model this link.", valueName: "spec"), completion: .links)
  var link: String?

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "For a folder: break responses, as in 'seg*.ts=status:503x2'. Can be repeated.",
      valueName: "spec"))
  var fault: [String] = []

  @OptionGroup var options: SourceOptions

  func validate() throws {
    try OptionValue.check(port, of: "--port", in: 0...65535)
    if isFolder {
      if proxy { throw ValidationError("--proxy requires a manifest: \(source) is a folder") }
    } else if link != nil || !fault.isEmpty {
      throw ValidationError("--link and --fault require a folder: \(source) is not one")
    }
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    try await ExitStatus.run {
      try await Interruption.cancelling {
        if isFolder { try await serveFolder(logger) } else { try await servePresentation(logger) }
      }
      return ExitStatus.interrupted
    }
  }

  // MARK: - Private

  private var isFolder: Bool {
    var isDirectory: ObjCBool = false
    return FileManager.default.fileExists(atPath: source, isDirectory: &isDirectory) && isDirectory.boolValue
  }

  private func serveFolder(_ logger: Logger) async throws {
    var configuration = Origin.Configuration()
    configuration.directory = URL(fileURLWithPath: source, isDirectory: true)
    configuration.host = host
    configuration.port = port
    configuration.link = try linkSpec()
    configuration.faults = try fault.flatMap { text throws(ReelError) in try FaultRule.parse(text) }
    let origin = try await Origin.start(configuration, logger: logger)
    try Console.print(origin.baseURL.absoluteString)
    await untilCancelled()
    await origin.stop()
  }

  private func linkSpec() throws(ReelError) -> LinkSpec? {
    guard let link else { return nil }
    let argument = try LinkArgument(parsing: link)
    guard !argument.isFolder else {
      throw ReelError(
        .usage, "reel serve takes one link, and \(link) is a folder", advice: "name a file in it")
    }
    guard !argument.drawsStart else {
      throw ReelError(
        .usage, "reel serve can't draw a start from a seed", advice: "write a time, as start=30s")
    }
    let spec = try argument.links(seed: 0).first?.spec
    guard let spec, spec.jitter == .zero, !spec.modelsTCP, !spec.modelsTLS, !spec.modelsDNS else {
      throw ReelError(
        .usage, "reel serve does not model jitter, tcp, tls and dns",
        advice: "leave them out; reel feed models them")
    }
    return spec
  }

  private func servePresentation(_ logger: Logger) async throws {
    let source = try MediaSource(argument: source)
    let opener = TrackOpener(
      fetcher: try options.transport(logger: logger), configuration: try options.loading(), logger: logger)
    let loaded = try await WorkProgress.showing(when: !options.quiet, \.progressText) {
      try await withLimit(seconds: options.timeout, source: source.name, opener: opener) { opener, _ in
        try await opener.manifest(at: source)
      }
    }
    let hls = try VirtualHLS(reporting: loaded, quietly: options.quiet)
    let gateway = try await Gateway.start(
      hls, configuration: .init(host: host, port: port, isProxy: proxy), fetcher: loaded.fetcher,
      logger: logger)
    try Console.print(gateway.url.absoluteString)
    await untilCancelled()
    await gateway.stop()
  }

  private func untilCancelled() async {
    while !Task.isCancelled { try? await Task.sleep(for: .seconds(3600)) }
  }
}
