import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelGateway
import ReelGatewayKeys
import ReelLab
import ReelManifest
import ReelPool
import ReelReading
import ReelTesting
import ReelSimulation
import ReelSources

/// `reel serve`: serves a presentation as HLS, or a folder or feed over a modelled link.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Serve a presentation as HLS, or a folder or feed over a modelled link.",
    discussion: """
      Prints the URL to open, then serves until it is interrupted.

      A manifest (DASH or HLS, on demand or live) is served as HLS. Reel generates the playlists; requests for media are \
      redirected to its origin. With --direct, the playlists name the origin instead, so that a player keeps its \
      connection to it; with --proxy, media is relayed. Local media is always relayed. With --key or --key-file, encrypted \
      fragmented MP4 is decrypted and relayed; the playlists name no key. --timeout limits the reading of the manifest. \
      --bandwidth and --max-height leave out the video above them, but never the lowest rung.

      A folder is served as it is. Of a feed file (reel feed --help), the local items are served. --link models one \
      bottleneck for all connections. It takes a rate and a round-trip \
      time (10Mbit/50ms), a profile (\(LinkSpec.profileList)), or a recorded downlink, which repeats when it ends: a file \
      whose lines hold seconds and Mbit/s, or a time in ms at which 1500 bytes can pass (Mahimahi). The \
      options start=30s, scale=4 and rtt=50ms follow after commas.

      --fault breaks responses on purpose: PATTERN=KIND[:ARGUMENT][xCOUNT]. PATTERN is matched against the path without \
      its leading slash, or, if it contains no slash, against the last component; * matches any characters, ? exactly \
      one. With xCOUNT, the fault ends after that many matching requests. The first rule that matches and has not ended \
      applies. Kinds:
      \(HelpText.list(FaultRule.forms))

      The page /-/feed shows the items of a folder or feed in a browser, swipes by itself or by hand, and measures how \
      long the viewer waits after each swipe. It plays with the browser's own player, or with hls.js or Video.js if you \
      pass its file with --script. To measure a phone, listen on an address that it reaches: --host 0.0.0.0.

      --record writes each request and each swipe to a new file, as JSON Lines: without values of queries, cookies, \
      credentials and addresses. Any other player can report its swipes with POST /-/report.

      --json prints the URL as {"url": …}.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Serve a DASH presentation as HLS at http://127.0.0.1:8080/",
      "reel serve https://example.com/manifest.mpd --port 8080"
    ),
    ("Serve a folder over a slow link", "reel serve media --link 3g --port 8081"),
    (
      "Record how long a browser waits at http://127.0.0.1:8082/-/feed",
      "reel serve media --port 8082 --link lte --record run.jsonl"
    ),
  ]

  @Argument(help: "The path or URL of a manifest, a folder, or a feed file.", completion: .file())
  var source: String

  @Option(help: "The address to listen on.")
  var host = "127.0.0.1"

  @Option(help: "The port to listen on; 0 for any free port.")
  var port = 8080

  @Flag(help: "For a manifest: relay media instead of redirecting to its origin.")
  var proxy = false

  @Flag(help: "For a manifest: write the URLs of the origin into the playlists instead of redirecting to it.")
  var direct = false

  @Option(help: ArgumentHelp("For a folder or feed: model this link.", valueName: "spec"), completion: .links)
  var link: String?

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "For a folder or feed: break responses, as in 'seg*.ts=status:503x2'. Can be repeated.",
      valueName: "spec"))
  var fault: [String] = []

  @Option(
    help: ArgumentHelp("For a folder or feed: record requests and swipes, in a new file.", valueName: "file"),
    completion: .file())
  var record: String?

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "For a folder or feed: offer the player of this script, hls.js or Video.js, on the page /-/feed. Can be repeated.",
      valueName: "file"), completion: .file())
  var script: [String] = []

  @OptionGroup var options: SourceOptions

  func validate() throws {
    try OptionValue.check(port, of: "--port", in: 0...65535)
    try WalkResultOptions.checkFile(record, of: "--record")
    if isServed {
      if !options.keys.isEmpty || !options.keyFiles.isEmpty {
        throw ValidationError("--key and --key-file require a manifest: \(source) is not one")
      }
      if proxy || direct {
        throw ValidationError("--proxy and --direct require a manifest: \(source) is not one")
      }
    } else if source == "-", options.bandwidth != nil || options.maxHeight != nil {
      throw ValidationError("--bandwidth and --max-height can't be used with standard input")
    } else if proxy, direct {
      throw ValidationError("--proxy and --direct can't be combined")
    } else if link != nil || !fault.isEmpty || record != nil || !script.isEmpty {
      throw ValidationError(
        "--link, --fault, --record and --script require a folder or a feed: \(source) is neither")
    }
  }

  func run() async throws {
    let logger = options.bootstrapLogging(level: options.quiet ? .critical : .warning)
    try await ExitStatus.run {
      try await Interruption.cancelling {
        if let feed = try served {
          try await serve(feed, logger)
        } else {
          try await servePresentation(logger)
        }
      }
      return ExitStatus.interrupted
    }
  }

  // MARK: - Private

  /// The files to serve; nil if the source is not a folder or feed.
  private var served: ServedFeed? {
    get throws(ReelError) {
      var isDirectory: ObjCBool = false
      guard FileManager.default.fileExists(atPath: source, isDirectory: &isDirectory) else { return nil }
      if isDirectory.boolValue { return ServedFeed(folder: URL(fileURLWithPath: source, isDirectory: true)) }
      return try ServedFeed(feedAt: source)
    }
  }

  private var isServed: Bool {
    // A feed without items to serve is an error of the run.
    do throws(ReelError) { return try served != nil } catch { return true }
  }

  private func serve(_ feed: ServedFeed, _ logger: Logger) async throws {
    var configuration = Origin.Configuration()
    configuration.host = host
    configuration.port = port
    configuration.link = try linkSpec()
    configuration.faults = try fault.flatMap { text throws(ReelError) in try FaultRule.parse(text) }
    let scripts = try script.map { path throws(ReelError) in try LocalText.bytes(path: path, limit: 16 << 20)
    }
    for omission in feed.omissions { Console.warn("not served: \(omission)") }
    let server = try RecordedServer(
      feed, of: source, recordingTo: record, link: configuration.link.map { (text: link ?? "", spec: $0) })
    try server.prepare(&configuration, scripts: scripts)
    let origin: Origin
    do {
      origin = try await Origin.start(configuration, logger: logger)
    } catch {
      server.recording?.discard()
      throw error
    }
    try printURL(origin.baseURL)
    if let record {
      Console.remark(
        "\(feed.items.count.counted("item")) at \(origin.url("-/feed").absoluteString), recorded in \(record)"
      )
    }
    await untilCancelled(or: { server.recording?.failure != nil })
    await origin.stop()
    try server.recording?.finish()
  }

  private func printURL(_ url: URL) throws {
    var json = JSONText()
    json.object { $0.field("url", url.absoluteString) }
    try Console.print(options.json ? String(decoding: json.bytes, as: UTF8.self) : url.absoluteString)
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
    guard let spec, spec.jitter == .zero, spec.features.isEmpty else {
      throw ReelError(
        .usage, "reel serve does not model jitter, tcp, tls and dns",
        advice: "leave them out; reel feed models them")
    }
    return spec
  }

  private func servePresentation(_ logger: Logger) async throws {
    let fetcher = try options.transport(logger: logger)
    let loading = try options.loading()
    let source = try MediaSource(argument: source)
    let decryption = loading.keyProvider.map { MediaDecryptor(keys: $0) }
    let maximumBitRate =
      options.bandwidth == nil || options.adaptsBitRate ? nil : loading.preferredPeakBitRate
    let hls = try await WorkProgress.showing(when: !options.quiet, \.progressText) {
      try await withLimit(seconds: options.timeout, source: source.name, fetcher: fetcher) { fetcher, _ in
        switch source {
        case .url(let url):
          return try await VirtualHLS(
            url: url, fetcher: fetcher, configuration: loading, decryption: decryption,
            maximumBitRate: maximumBitRate)
        case .standardInput:
          let opener = TrackOpener(fetcher: fetcher, configuration: loading, logger: logger)
          let loaded = try await opener.manifest(at: source)
          guard !loaded.presentation.isLive else {
            throw ReelError(
              .unsupported, "a live manifest on standard input can't be read again", at: source.name,
              advice: "pass its URL")
          }
          return try VirtualHLS(loaded, decryption: decryption)
        }
      }
    }
    let decrypts = hls.tracks.isEmpty ? decryption != nil : hls.tracks.contains(where: \.isDecrypted)
    if decrypts, !URL.isLoopback(host: host) {
      Console.warn(
        "media is decrypted, and everyone who reaches \(host) can play it: leave out --host if only this machine should"
      )
    }
    if decryption != nil, !decrypts {
      Console.warn("none of the keys is used: only fragmented MP4 with a key ID among them is decrypted")
    }
    hls.report(quietly: options.quiet)
    let delivery: Gateway.Delivery = proxy ? .relayed : direct ? .direct : .redirected
    let gateway = try await Gateway.start(
      hls, configuration: .init(host: host, port: port, delivery: delivery), fetcher: fetcher, logger: logger)
    try printURL(gateway.url)
    if !options.quiet, delivery != .relayed, source.url?.isFileURL == false,
      hls.tracks.contains(where: { !$0.isDecrypted })
    {
      Console.remark(
        "players load the media from the origin; a page needs crossorigin on its video element and CORS from there. --proxy relays the media"
      )
      if !options.headers.isEmpty || !options.secretHeaders.isEmpty || source.url?.user != nil {
        Console.warn(
          "players load the media without your header fields and password: use --proxy if it needs them")
      }
    }
    await untilCancelled()
    await gateway.stop()
  }

  /// Waits until the task is cancelled, or until a condition holds, which is checked each second.
  private func untilCancelled(or condition: () -> Bool = { false }) async {
    while !Task.isCancelled, !condition() { try? await Task.sleep(for: .seconds(1)) }
  }
}
