import Foundation
import ReelCore
import ReelSimulation
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelFFmpeg

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension Fixtures {
  /// The md5s of a golden file.
  static func golden(_ name: String) throws -> [String] {
    String(decoding: try bytes("golden/\(name).framemd5"), as: UTF8.self).split(separator: "\n")
      .filter { !$0.hasPrefix("#") }
      .compactMap { line in line.split(separator: ",").last.map { $0.filter { $0 != " " } } }
  }
}

/// The MD5 of bytes; golden files have that of ffmpeg.
func md5(_ bytes: some Collection<UInt8>) throws -> String {
  let hash = try MD5Hash()
  Array(bytes).withUnsafeBytes { hash.update($0.baseAddress, count: $0.count) }
  return hash.digest()
}

/// How a run of the tool ended.
struct CommandResult: Sendable {
  let status: Int32
  /// True where a signal ended it.
  let wasSignalled: Bool
  let output: [UInt8]
  let errorText: String
  let duration: Duration

  var outputText: String { String(decoding: output, as: UTF8.self) }
  var outputLines: [String] { outputText.split(separator: "\n").map(String.init) }
  var errorLines: [String] { errorText.split(separator: "\n").map(String.init) }

  /// The lines of output as JSON.
  var objects: [[String: Any]] { get throws { try outputLines.map { try jsonObject($0) } } }

  /// The output as JSON, or its last line if it has several.
  var object: [String: Any] { get throws { try jsonObject(try #require(outputLines.last, "\(errorText)")) } }
}

/// The `reel` that was built with the tests, as a process of its own.
final class Command: Sendable {
  /// A process that hangs is killed after this time, before the test itself is ended.
  static let limit = HangLimit.duration / 2

  private let process: Process
  private let output: Task<[UInt8], Never>
  private let errors: Task<[UInt8], Never>
  private let exit: Task<Void, Never>
  private let start = ContinuousClock.now
  private let description: String

  /// Starts `reel` with these arguments.
  ///
  /// - Parameters:
  ///   - input: what standard input gives; nil for nothing.
  ///   - shell: a script that runs `"$@"` in some way of its own, in place of running it at once.
  ///   - closesOutput: closes the reading end of standard output after so many bytes.
  init(
    _ arguments: [String], input: [UInt8]? = nil, directory: String? = nil, shell: String? = nil,
    closesOutputAfter: Int? = nil
  ) throws {
    let process = Process()
    let reel = try Self.executable()
    description = "reel " + arguments.joined(separator: " ")
    if let shell {
      process.executableURL = URL(filePath: "/bin/sh")
      process.arguments = ["-c", shell, "sh", reel.path] + arguments
    } else {
      process.executableURL = reel
      process.arguments = arguments
    }
    // A process that ends leaves what was in flight: leaks are looked for in the tests of the libraries.
    var environment = ProcessInfo.processInfo.environment
    if let options = environment["ASAN_OPTIONS"] { environment["ASAN_OPTIONS"] = options + ":detect_leaks=0" }
    process.environment = environment
    if let directory { process.currentDirectoryURL = URL(filePath: directory) }
    let (outputPipe, errorPipe) = (Pipe(), Pipe())
    process.standardOutput = outputPipe
    process.standardError = errorPipe
    let inputPipe = input.map { _ in Pipe() }
    process.standardInput = inputPipe ?? FileHandle.nullDevice
    let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
    process.terminationHandler = { _ in continuation.finish() }
    try process.run()
    if let input, let inputPipe {
      Self.onThread {
        // A reader that has seen enough closes its end.
        signal(SIGPIPE, SIG_IGN)
        try? inputPipe.fileHandleForWriting.write(contentsOf: Data(input))
        try? inputPipe.fileHandleForWriting.close()
      }
    }
    output = Self.read(outputPipe, limit: closesOutputAfter)
    errors = Self.read(errorPipe, limit: nil)
    exit = Task { for await _ in ended {} }
    self.process = process
  }

  /// Runs to the end.
  ///
  /// - Parameter status: The exit code that is expected; nil for any.
  @discardableResult
  static func run(
    _ arguments: String..., input: [UInt8]? = nil, directory: String? = nil, shell: String? = nil,
    closesOutputAfter: Int? = nil, status: Int32? = nil, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> CommandResult {
    try await run(
      arguments, input: input, directory: directory, shell: shell, closesOutputAfter: closesOutputAfter,
      status: status, sourceLocation: sourceLocation)
  }

  @discardableResult
  static func run(
    _ arguments: [String], input: [UInt8]? = nil, directory: String? = nil, shell: String? = nil,
    closesOutputAfter: Int? = nil, status: Int32? = nil, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> CommandResult {
    let result = try await Command(
      arguments, input: input, directory: directory, shell: shell, closesOutputAfter: closesOutputAfter
    ).result(sourceLocation: sourceLocation)
    if let status {
      #expect(result.status == status, "\(result.errorText)", sourceLocation: sourceLocation)
    }
    return result
  }

  var isRunning: Bool { process.isRunning }
  var processIdentifier: Int32 { process.processIdentifier }

  /// As Ctrl-C does.
  func interrupt() { send(SIGINT) }

  func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

  /// Waits for the end; kills the process and fails where that takes too long.
  func result(sourceLocation: SourceLocation = #_sourceLocation) async throws -> CommandResult {
    let watchdog = Task { [process, description] in
      try await Task.sleep(for: Self.limit)
      Issue.record("hangs: \(description)", sourceLocation: sourceLocation)
      kill(process.processIdentifier, SIGKILL)
    }
    await exit.value
    watchdog.cancel()
    let duration = ContinuousClock.now - start
    return CommandResult(
      status: process.terminationStatus, wasSignalled: process.terminationReason == .uncaughtSignal,
      output: await output.value, errorText: String(decoding: await errors.value, as: UTF8.self),
      duration: duration)
  }

  // MARK: - Private

  /// Beside the tests themselves, whatever the scratch path is.
  static func executable() throws -> URL {
    var folders = Bundle.allBundles.filter { $0.bundlePath.hasSuffix(".xctest") }.map {
      $0.bundleURL.deletingLastPathComponent()
    }
    if let path = Bundle.main.executablePath {
      folders.append(URL(filePath: path).deletingLastPathComponent())
    }
    folders.append(URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent())
    let found = folders.map { $0.appending(path: "reel") }.first {
      FileManager.default.isExecutableFile(atPath: $0.path)
    }
    return try #require(found, "no reel beside the tests, in \(folders.map(\.path))")
  }

  private static func read(_ pipe: Pipe, limit: Int?) -> Task<[UInt8], Never> {
    let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
    onThread {
      let handle = pipe.fileHandleForReading
      var bytes: [UInt8] = []
      while limit.map({ bytes.count < $0 }) ?? true,
        let data = try? handle.read(upToCount: min(1 << 16, limit ?? 1 << 16)), !data.isEmpty
      {
        bytes.append(contentsOf: data)
      }
      try? handle.close()
      continuation.yield(bytes)
      continuation.finish()
    }
    return Task {
      var all: [UInt8] = []
      for await bytes in stream { all += bytes }
      return all
    }
  }

  private static func onThread(_ body: @escaping @Sendable () -> Void) { Thread(block: body).start() }
}

/// Runs `body` with an origin, which is stopped at the end.
func withOrigin<Result>(
  _ faults: String = "", routes: [String: Origin.Response] = [:], link: LinkSpec? = nil,
  _ body: (Origin) async throws -> Result
) async throws -> Result {
  let configuration = Origin.Configuration(
    directory: Fixtures.folder, routes: routes, link: link, faults: try FaultRule.parse(faults))
  return try await Origin.use(configuration, body)
}

/// As `withOrigin`, with the URL of one of the fixtures.
func withSource<Result>(
  _ path: String, faults: String = "", link: LinkSpec? = nil,
  _ body: (_ source: String) async throws -> Result
) async throws -> Result {
  try await withOrigin(faults, link: link) { try await body($0.url(path).absoluteString) }
}

/// Runs `reel` on an HLS presentation, and interrupts it where this fault keeps it waiting, as `segment-0.ts=silence`.
///
/// - Parameter arguments: What to run, by the source's URL.
func interrupted(
  at fault: String, _ arguments: (_ source: String) -> [String]
) async throws -> CommandResult {
  try await withOrigin(fault) { origin in
    let command = try Command(arguments(origin.url("hls-ts/master.m3u8").absoluteString))
    let name = fault.prefix { $0 != "=" }
    await origin.wait { snapshot in
      snapshot.requests.contains { $0.path.hasSuffix(name) && ($0.status == nil || $0.bodyBytesSent > 0) }
    }
    command.interrupt()
    return try await command.result()
  }
}

extension TemporaryFolder {
  /// The lines of a file as JSON.
  func objects(_ name: String) throws -> [[String: Any]] {
    try text(name).split(separator: "\n").map { try jsonObject($0) }
  }

  /// Writes a feed of fixtures, named below Fixtures, and of other paths and URLs. Returns its path.
  func writeFeed(_ items: [String], to name: String = "feed.txt") throws -> String {
    let lines = items.map { $0.hasPrefix("/") || $0.contains("://") ? $0 : Fixtures.path($0) }
    return try write(lines.joined(separator: "\n"), to: name)
  }
}

/// A source that is always sound, to go beside one that is not.
let goodSource = Fixtures.path("media/h264-faststart.mp4")

/// Runs `reel frames` over a source that fails, alone and beside a sound one, and checks what the contract of failures
/// asks for: the exit code, one line that names the source and tells `words`, no file left, no trap, no hang.
///
/// - Parameter isBesideSound: False if `options` set a time limit that the intact source could miss on a slow
///   machine.
func expectFailure(
  _ source: String, status: Int32, words: String, names: String? = nil, options: [String] = [],
  isBesideSound: Bool = true, sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  let folder = try TemporaryFolder()
  let arguments = ["--retries", "1"] + options
  let alone = try await Command.run(
    ["frames", source, "-o", folder.path + "/alone"] + arguments, sourceLocation: sourceLocation)
  #expect(!alone.wasSignalled, sourceLocation: sourceLocation)
  #expect(alone.status == status, "\(alone.errorText)", sourceLocation: sourceLocation)
  #expect(alone.output.isEmpty, "\(alone.outputText)", sourceLocation: sourceLocation)
  #expect(folder.names("alone").isEmpty, sourceLocation: sourceLocation)
  expectErrorLine(alone, names: names ?? source, words: words, sourceLocation: sourceLocation)
  guard isBesideSound else { return }

  let both = try await Command.run(
    ["frames", source, goodSource, "-o", folder.path + "/both"] + arguments, sourceLocation: sourceLocation)
  #expect(!both.wasSignalled, sourceLocation: sourceLocation)
  #expect(both.status == 1, "\(both.errorText)", sourceLocation: sourceLocation)
  #expect(folder.names("both") == ["h264-faststart-000001.ppm"], sourceLocation: sourceLocation)
  #expect(both.outputLines.count == 1, "\(both.outputText)", sourceLocation: sourceLocation)
  expectErrorLine(both, names: names ?? source, words: words, sourceLocation: sourceLocation)
}

/// Expects one line of error text that names the source and holds `words`.
func expectErrorLine(
  _ result: CommandResult, names: String, words: String, sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(result.errorLines.count == 1, "\(result.errorText)", sourceLocation: sourceLocation)
  #expect(result.errorText.hasPrefix("reel: "), "\(result.errorText)", sourceLocation: sourceLocation)
  #expect(
    names.isEmpty || result.errorText.contains(names), "\(result.errorText)", sourceLocation: sourceLocation)
  #expect(
    words.isEmpty || result.errorText.lowercased().contains(words.lowercased()), "\(result.errorText)",
    sourceLocation: sourceLocation)
  // Neither a Swift value's dump nor a domain and number of Foundation's.
  #expect(!result.errorText.contains("NSCocoaErrorDomain"), sourceLocation: sourceLocation)
  #expect(!result.errorText.contains("Fatal error"), sourceLocation: sourceLocation)
}
