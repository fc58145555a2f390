import ArgumentParser
import Foundation
import HTTPTypes
import Logging
import ReelCore
import ReelPool
import ReelSimulation
import ReelSources
import ReelTransport

/// The options of every command that reads sources.
struct SourceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      Open the highest rung at or below this bit rate, or else the lowest. With auto, players adapt to the measured \
      throughput; commands that do not play open the rung for 3Mbit. Default: 3Mbit (in lab and viewers: auto).
      """,
      valueName: "bps|auto"), completion: .list(["auto"]))
  var bandwidth: String?

  @Option(
    help: ArgumentHelp("Ignore rungs with more lines than this, such as 720 or 720p.", valueName: "lines"),
    transform: ImageOptions.lines)
  var maxHeight: Int?

  @Option(
    name: .customLong("header"), parsing: .singleValue,
    help: ArgumentHelp(
      """
      Add this header field to requests, such as 'Name: value'. Authorization, Proxy-Authorization, Cookie and names that \
      end in key, token, secret or password are credentials: they go to the scheme, host and port of the source alone, as \
      do the user name and password of its URL. Can be repeated.
      """,
      valueName: "K: V"))
  var headers: [String] = []

  @Option(
    name: .customLong("secret-header"), parsing: .singleValue,
    help: ArgumentHelp(
      "Like --header, for a field that is a credential although its name does not tell. Can be repeated.",
      valueName: "K: V"))
  var secretHeaders: [String] = []

  @Option(
    name: .customLong("header-host"), parsing: .singleValue,
    help: ArgumentHelp(
      """
      Send credentials to this host too, such as a CDN or a key server; without a port, to any port of it. Never over \
      http if the source is at https. Can be repeated.
      """,
      valueName: "host[:port]"))
  var headerHosts: [String] = []

  @Option(
    name: .customLong("key"), parsing: .singleValue,
    help: ArgumentHelp(
      """
      Decrypt samples with this key: key ID and key, or the key alone for media without key IDs, in hexadecimal or \
      base64url. Can be repeated. Other users of the machine can see arguments; --key-file hides keys.
      """,
      valueName: "KID:KEY"))
  var keys: [String] = []

  @Option(
    name: .customLong("key-file"), parsing: .singleValue,
    help: ArgumentHelp(
      "Read keys from a file: one per line as for --key, or a W3C Clear Key license (JSON). Can be repeated.",
      valueName: "file"), completion: .file())
  var keyFiles: [String] = []

  @Option(
    name: .customLong("timeout"),
    help: ArgumentHelp(
      "Give up after this time, as described above. Default: 30s (in check: 120s).",
      valueName: "time"),
    transform: TimeArgument.seconds)
  var givenTimeout: Double?

  @Option(help: ArgumentHelp("Retry a failed request this many times.", valueName: "n"))
  var retries = 3

  @OptionGroup var network: NetworkOptions

  @OptionGroup var print: PrintOptions

  @Flag(help: "Log debug messages to standard error.")
  var verbose = false

  /// `--timeout` in seconds.
  var timeout: Double { givenTimeout ?? 30 }
  var json: Bool { print.json }
  var quiet: Bool { print.quiet }

  func validate() throws {
    guard timeout >= 0.001, timeout <= 1e6 else {
      throw ValidationError("--timeout takes a time from 1ms to 1000000s")
    }
    try OptionValue.check(retries, of: "--retries", in: 0...100)
    if let maxHeight, maxHeight <= 0 {
      throw ValidationError("--max-height takes a positive number of lines")
    }
    if quiet, verbose { throw ValidationError("--quiet and --verbose can't be combined") }
    _ = try headerFields()
    _ = try credentialHosts()
    _ = try peakBitRate()
    _ = try keyList()
  }

  /// Sets the log level and the style of text from the flags. Call it once per process.
  ///
  /// - Parameter level: The level without `--verbose`.
  func bootstrapLogging(level: Logger.Level = .critical) -> Logger {
    print.apply()
    let level = verbose ? .debug : level
    LoggingSystem.bootstrap { label in
      var handler = StreamLogHandler(label: label, stream: Console.Log())
      handler.logLevel = level
      return handler
    }
    return Logger(label: "reel")
  }

  /// - Parameters:
  ///   - limitsWaits: True to limit each wait for a response or for bytes to `--timeout`.
  ///   - pauses: True to pause before a retry instead of retrying at once.
  ///   - recordRetryAfter: Called when a server asks for a pause.
  /// - Throws: The errors of the network options.
  func transport(
    logger: Logger, limitsWaits: Bool = false, pauses: Bool = true,
    recordRetryAfter: (@Sendable (URL, Duration) -> Void)? = nil
  ) throws(ReelError) -> TransportFetcher {
    TransportFetcher(
      configuration: try transportConfiguration(limitsWaits: limitsWaits, pauses: pauses),
      recordRetryAfter: recordRetryAfter, logger: logger)
  }

  /// The configuration of `transport`.
  func transportConfiguration(
    limitsWaits: Bool = false, pauses: Bool = true
  ) throws(ReelError) -> TransportConfiguration {
    var configuration = try network.configuration()
    configuration.retryPolicy.attempts = retries
    if !pauses { configuration.retryPolicy.baseDelay = .zero }
    if limitsWaits {
      let limit = Duration.seconds(timeout)
      configuration.connectTimeout = min(configuration.connectTimeout, limit)
      configuration.firstByteTimeout = min(configuration.firstByteTimeout, limit)
      configuration.idleTimeout = min(configuration.idleTimeout, limit)
    }
    configuration.retryPolicy.connectAttempts = min(retries, configuration.retryPolicy.connectAttempts)
    return configuration
  }

  /// The time to wait for an item that was left before its first frame, to distinguish a slow one from a dead
  /// one: three waits for a server, each as limited by `transport`.
  var patience: Duration { min(TransportConfiguration().firstByteTimeout, .seconds(timeout)) * 3 }

  func loading() throws -> LoadingConfiguration {
    var configuration = LoadingConfiguration()
    configuration.preferredPeakBitRate = try peakBitRate()
    configuration.maximumHeight = maxHeight
    configuration.headers = try headerFields()
    configuration.credentialHosts = try credentialHosts()
    configuration.keyProvider = try keyList()
    return configuration
  }

  /// True if measured transfers choose the rungs.
  var adaptsBitRate: Bool { bandwidth?.lowercased() == "auto" }

  // MARK: - Private

  private func peakBitRate() throws -> Int {
    if adaptsBitRate { return LoadingConfiguration().preferredPeakBitRate }
    return try OptionValue.read(of: "--bandwidth") { () throws(ReelError) in
      Int(clamping: try BitRate(parsing: bandwidth ?? "3Mbit").bitsPerSecond)
    }
  }

  /// Returns nil if no key is given.
  private func keyList() throws -> KeyList? {
    var list = KeyList()
    for path in keyFiles {
      do {
        try list.add(file: try OptionFiles.bytes(of: path, limit: KeyList.byteLimit))
      } catch {
        throw ValidationError("--key-file: \(error.located(at: path))")
      }
    }
    for text in keys {
      try OptionValue.read(of: "--key") { () throws(ReelError) in try list.add(parsing: text) }
    }
    return list.count > 0 ? list : nil
  }

  private func headerFields() throws -> HTTPFields {
    var fields = HTTPFields()
    for text in headers {
      let (name, value) = try Self.field(text, of: "--header")
      fields.append(HTTPField(name: name, value: value))
    }
    for text in secretHeaders {
      let (name, value) = try Self.field(text, of: "--secret-header")
      fields.append(.secret(name, value))
    }
    return fields
  }

  private static func field(_ text: String, of option: String) throws -> (HTTPField.Name, String) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    let value = parts.last?.trimmingCharacters(in: .whitespaces) ?? ""
    // The text is not repeated: it may be a secret.
    guard parts.count == 2, let name = HTTPField.Name(String(parts[0])), HTTPField.isValidValue(value) else {
      throw ValidationError("\(option) takes 'Name: value'")
    }
    return (name, value)
  }

  private func credentialHosts() throws -> Set<CredentialHost> {
    var hosts: Set<CredentialHost> = []
    for text in headerHosts {
      try OptionValue.read(of: "--header-host") { () throws(ReelError) in
        _ = hosts.insert(try CredentialHost(parsing: text))
      }
    }
    return hosts
  }
}

/// The connection to servers: options, and environment variables.
struct NetworkOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Send this User-Agent header field with every request.", valueName: "text"))
  var userAgent: String?

  @Option(
    name: .customLong("cacert"),
    help: ArgumentHelp(
      "Trust only the certificate authorities in this PEM file. Default: SSL_CERT_FILE, or those of the system.",
      valueName: "file"), completion: .file())
  var authorities: String?

  @Flag(
    help:
      "Accept any server certificate. Anyone who controls the network can then read and change everything.")
  var insecure = false

  @Option(
    help: ArgumentHelp(
      "Send the cookies in this file to the sites they belong to. The format is that of Netscape and curl.",
      valueName: "file"), completion: .file())
  var cookieFile: String?

  func validate() throws {
    if insecure, authorities != nil { throw ValidationError("--insecure and --cacert can't be combined") }
    if let userAgent, userAgent.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) {
      throw ValidationError("--user-agent takes one line of text")
    }
    do throws(ReelError) {
      _ = try configuration()
    } catch {
      throw ValidationError(error.description)
    }
  }

  /// Returns the configuration of a transport with these options and the proxies of the environment.
  func configuration() throws(ReelError) -> TransportConfiguration {
    var configuration = TransportConfiguration()
    let environment = ProcessInfo.processInfo.environment
    configuration.proxies = try HTTPProxies(environment: environment)
    if let userAgent { configuration.userAgent = userAgent }
    if let path = authorities ?? environment["SSL_CERT_FILE"], !path.isEmpty, !insecure {
      configuration.trust = .authorities(path: path)
    } else if insecure {
      configuration.trust = .any
    }
    try configuration.trust.check()
    if let cookieFile {
      let text = String(
        decoding: try OptionFiles.bytes(of: cookieFile, limit: CookieFile.byteLimit), as: UTF8.self)
      do {
        configuration.cookies = try CookieFile(text)
      } catch {
        throw error.located(at: cookieFile)
      }
    }
    return configuration
  }
}

/// The contents of files that options name. They are kept, because options are read more than once, and a
/// pipe can't be.
enum OptionFiles {
  private static let known = Locked<[String: [UInt8]]>([:])

  /// Returns the bytes of a file. Throws the same errors as `LocalText.bytes(path:limit:)`.
  static func bytes(of path: String, limit: Int) throws(ReelError) -> [UInt8] {
    if let bytes = known.withLock({ $0[path] }) { return bytes }
    let bytes = try LocalText.bytes(path: path, limit: limit)
    known.withLock { $0[path] = bytes }
    return bytes
  }
}

enum OptionValue {
  /// Returns the parts of a list between commas. A time belongs to the policy before it, as in `none,ahead:2,1s`.
  static func list(_ text: String) -> [String] {
    text.split(separator: ",", omittingEmptySubsequences: false).map(\.trimmed).reduce(into: []) {
      parts, part in
      if let last = parts.last, last.contains(where: \.isLetter),
        TimeText.seconds(part, needsUnit: true) != nil
      {
        parts[parts.count - 1] = "\(last),\(part)"
      } else {
        parts.append(part)
      }
    }
  }

  /// Throws `ValidationError` for a number outside of a range.
  static func check(_ number: Int?, of option: String, in range: ClosedRange<Int>) throws {
    guard let number, !range.contains(number) else { return }
    throw ValidationError("\(option) takes a number from \(range.lowerBound) to \(range.upperBound)")
  }

  /// Reads a value that may be in a file. Only errors of usage become a `ValidationError`: the file is read again when the
  /// command runs, and fails then.
  static func check(_ body: () throws(ReelError) -> Void) throws(ValidationError) {
    try read { () throws(ReelError) in
      do throws(ReelError) { try body() } catch { if error.kind == .usage { throw error } }
    }
  }

  /// Returns the value that `body` reads. Its `ReelError` becomes a `ValidationError`.
  ///
  /// - Parameter option: Put before the reason; nil for a reason that names the option, with its advice.
  static func read<Value>(
    of option: String? = nil, _ body: () throws(ReelError) -> Value
  ) throws(ValidationError) -> Value {
    do throws(ReelError) {
      return try body()
    } catch {
      if let option { throw ValidationError("\(option): \(error.reason)") }
      let reason = (error.location.map { "\($0): " } ?? "") + error.reason
      throw ValidationError(error.advice.map { "\(reason); \($0)" } ?? reason)
    }
  }
}

/// Reads option values that are times.
enum TimeArgument {
  /// Returns the seconds of `2`, `2.5s`, `500ms`, `1.5min`, `1:30` or `00:01:30.5`. An `ArgumentParser`
  /// transform.
  static func seconds(_ text: String) throws -> Double {
    guard let seconds = TimeText.seconds(text) else {
      throw ValidationError("'\(text)' is not a time: write 2, 2.5s, 500ms, 1:30 or 00:01:30")
    }
    return seconds
  }
}
