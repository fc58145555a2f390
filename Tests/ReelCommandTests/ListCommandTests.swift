import Foundation
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@testable import ReelCommand

/// A command that takes lists.
enum ListCommand: String, CaseIterable, Sendable {
  case frames
  case poster

  /// Of the files that it writes.
  var fileExtension: String {
    switch self {
    case .frames: "ppm"
    case .poster: "jpg"
    }
  }
}

@Suite("reel frames and reel poster over a list", .hangLimit)
struct ListCommandTests {
  /// A file that serves at many URLs.
  private static func clip() throws -> Origin.Response {
    Origin.Response(try Fixtures.bytes("media/h264-faststart.mp4"))
  }

  /// The results of a run, in the order of the file.
  private func results(_ folder: TemporaryFolder) throws -> [[String: Any]] {
    try folder.objects("out/results.jsonl")
  }

  private func urls(_ results: [[String: Any]], _ status: String = "written") -> [String] {
    results.filter { $0["status"] as? String == status }.compactMap { $0["url"] as? String }.sorted()
  }

  private func run(
    of command: ListCommand = .frames, _ list: String, _ folder: TemporaryFolder, _ more: String...
  ) async throws -> CommandResult {
    try await Command.run(
      [command.rawValue, "--input", list, "-o", folder.path("out"), "--retries", "1"] + more)
  }

  private func images(_ folder: TemporaryFolder, _ command: ListCommand = .frames) -> [String] {
    folder.names("out").filter { $0.hasSuffix(".\(command.fileExtension)") }
  }

  // MARK: Lists and names

  @Test(
    "URLs and paths, relative to the list; a URL that is named twice is done once",
    arguments: ListCommand.allCases)
  func list(command: ListCommand) async throws {
    let folder = try TemporaryFolder()
    try folder.write(Fixtures.bytes("media/h264.ts"), to: "a b.ts")
    let list = try folder.write("\u{feff}# clips\r\na b.ts\r\n\r\n\(goodSource)\r\na b.ts", to: "list.txt")
    let result = try await run(of: command, list, folder)
    #expect(result.status == 0, "\(result.errorText)")
    #expect(result.errorLines == ["2 written, 0 failed, 1 skipped", "  skipped: 1 listed more than once"])
    #expect(
      images(folder, command) == [
        "a b-\(SourceHash("a b.ts").text).\(command.fileExtension)",
        "h264-faststart-\(SourceHash(goodSource).text).\(command.fileExtension)",
      ])
    #expect(urls(try results(folder)) == [goodSource, "a b.ts"].sorted())
    #expect(result.outputLines.count == 2)
    // Each line names its source.
    for source in [goodSource, "a b.ts"] {
      #expect(result.outputLines.contains { $0.hasSuffix("\t\(source)") }, "\(result.outputText)")
    }
  }

  @Test("JSON Lines: other fields are copied, from standard input, with --json")
  func jsonLines() async throws {
    let folder = try TemporaryFolder()
    let lines = "{\"id\": 7, \"url\": \"\(goodSource)\", \"status\": \"x\", \"tags\": [1.50]}\n"
    let result = try await Command.run(
      "frames", "--input", "-", "-o", folder.path("out"), "--json", input: Array(lines.utf8),
      status: 0)
    #expect(result.output == (try folder.bytes("out/results.jsonl")))
    #expect(
      result.outputText.hasSuffix(",\"id\":7,\"tags\":[1.50],\"input\":{\"status\":\"x\"}}\n"),
      "\(result.outputText)")
    let record = try #require(try results(folder).first)
    #expect(record["url"] as? String == goodSource)
    #expect(record["status"] as? String == "written")
    #expect((record["startup"] as? [String: Any])?["total_ms"] is NSNumber)
    let frame = try #require((record["frames"] as? [[String: Any]])?.first)
    #expect(FileManager.default.fileExists(atPath: try #require(frame["path"] as? String)))
    #expect(record["source"] == nil)
  }

  @Test("Lines that are no source are told of, by line, and do not stop the run")
  func badLines() async throws {
    let folder = try TemporaryFolder()
    let text =
      "nowhere.mp4\n\(String(repeating: "a", count: 1 << 20))\n{\"url\":1}\nftp://h/x\n-\n\(goodSource)\n"
    let list = try folder.write(Array(text.utf8) + [0xff, 0x0a], to: "list.txt")
    let result = try await run(list, folder)
    #expect(result.status == 1, "\(result.errorText)")
    for words in [
      "line 2: longer", "line 3: the url", "line 4", "line 5", "line 7: not UTF-8", "no such file",
    ] {
      #expect(result.errorText.contains(words), "\(words): \(result.errorText)")
    }
    #expect(result.errorText.contains("1 written, 6 failed, 0 skipped"), "\(result.errorText)")
    // Lines of the list are not taken for broken manifests.
    #expect(result.errorText.contains("failed: 4 usage"), "\(result.errorText)")
    // Again: the failures of the list are told of again, and have one line each.
    let again = try await run(list, folder, "--resume")
    #expect(again.status == 1)
    #expect(again.errorText.contains("0 written, 3 failed, 4 skipped"), "\(again.errorText)")
    #expect(try results(folder).count == 7)
  }

  @Test(
    "What is no list",
    arguments: [("", 65, "no sources"), ("<html>\n", 65, "XML"), ("# x\n", 65, "no sources")])
  func noList(text: String, status: Int32, words: String) async throws {
    let folder = try TemporaryFolder()
    let result = try await run(try folder.write(text, to: "list.txt"), folder)
    #expect(result.status == status)
    #expect(result.errorText.contains(words), "\(result.errorText)")
    let missing = try await run(folder.path("missing"), folder, "--overwrite")
    #expect(missing.status == 66, "\(missing.errorText)")
  }

  @Test("Posters: a source without a good frame says so; the results name the files")
  func posters() async throws {
    let folder = try TemporaryFolder()
    let poor = Fixtures.path("stills/all-poor.mp4")
    let list = try folder.write("{\"url\":\"\(poor)\",\"file\":1,\"id\":7}\n\(goodSource)\n", to: "list.txt")
    let result = try await run(
      of: .poster, list, folder, "--name", "{host}/{stem}-{time}.{format}", "--size", "160")
    #expect(result.status == 0, "\(result.errorText)")
    #expect(folder.names("out/local").count == 2)
    let records = try results(folder)
    let record = try #require(records.first { $0["url"] as? String == poor })
    #expect(record["good"] as? Bool == false)
    #expect(record["why"] as? String == "least bad of 3, faded")
    #expect(record["id"] as? Int == 7)
    #expect(record["source"] == nil)
    #expect((record["startup"] as? [String: Any])?["total_ms"] is NSNumber)
    let file = try #require(record["file"] as? [String: Any])
    #expect(file["path"] as? String == folder.path("out/local/all-poor-2.000.jpg"))
    #expect(try folder.bytes("out/local/all-poor-2.000.jpg").count == file["bytes"] as? Int)
    #expect(records.first { $0["url"] as? String == goodSource }?["why"] is String)
  }

  @Test("Templates: equal names get the hash, in the order of the list; folders are made")
  func template() async throws {
    let folder = try TemporaryFolder()
    for name in ["x/clip.ts", "y/clip.ts", "z/CLIP.ts"] {
      try folder.write(Fixtures.bytes("media/h264.ts"), to: name)
    }
    let list = try folder.write("x/clip.ts\ny/clip.ts\nz/CLIP.ts\n", to: "list.txt")
    let result = try await run(list, folder, "--name", "{host}/{stem}.{format}")
    #expect(result.status == 0, "\(result.errorText)")
    let wanted = [
      "clip.ppm", "clip-\(SourceHash("y/clip.ts").text).ppm", "CLIP-\(SourceHash("z/CLIP.ts").text).ppm",
    ]
    #expect(folder.names("out/local") == wanted.sorted())
    // Another shard of the same list gives the same names.
    for shard in 0..<2 {
      try await Command.run(
        "frames", "--input", list, "-o", folder.path("shards"), "--name", "{host}/{stem}.{format}", "--shard",
        "\(shard)/2", status: 0)
    }
    #expect(folder.names("shards/local") == wanted.sorted())
  }

  @Test("Several frames of a source are numbered, or have their times")
  func severalFrames() async throws {
    let folder = try TemporaryFolder()
    let hash = SourceHash(goodSource).text
    let list = try folder.write(goodSource, to: "list.txt")
    #expect(try await run(list, folder, "--count", "2").status == 0)
    #expect(images(folder) == ["h264-faststart-\(hash)-000001.ppm", "h264-faststart-\(hash)-000002.ppm"])
    try await Command.run(
      "frames", goodSource, "--name", "{index}-{time}", "-o", folder.path("timed"), "--at", "0", "--at",
      "0.5", status: 0)
    #expect(folder.names("timed") == ["000001-0.000.ppm", "000001-0.500.ppm", "results.jsonl"])
  }

  @Test("A source without files gets no folder", arguments: ListCommand.allCases)
  func noFolder(command: ListCommand) async throws {
    let folder = try TemporaryFolder()
    let list = try folder.write("missing.mp4\n", to: "list.txt")
    let result = try await run(of: command, list, folder, "--name", "{host}/{stem}")
    #expect(result.status == 1, "\(result.errorText)")
    #expect(folder.names("out") == ["results.jsonl"])
  }

  @Test("The files of lists from a pipe are spread over folders", arguments: ListCommand.allCases)
  func fanOut(command: ListCommand) async throws {
    let folder = try TemporaryFolder()
    let hash = SourceHash(goodSource).text
    let path = "out/\(hash.prefix(2))/\(hash.dropFirst(2).prefix(2))"
    try await Command.run(
      command.rawValue, "--input", "-", "-o", folder.path("out"), input: Array(goodSource.utf8), status: 0)
    #expect(folder.names(path) == ["h264-faststart-\(hash).\(command.fileExtension)"])
    #expect(folder.names("out") == [String(hash.prefix(2)), "results.jsonl"])
  }

  @Test(
    "Shards from the environment cover the list, and their results merge", arguments: ListCommand.allCases)
  func shards(command: ListCommand) async throws {
    let folder = try TemporaryFolder()
    let clip = try Self.clip()
    let paths = (0..<12).map { "/c\($0).mp4" }
    try await withOrigin(routes: Dictionary(uniqueKeysWithValues: paths.map { ($0, clip) })) { origin in
      let urls = paths.map { origin.url(String($0.dropFirst())).absoluteString }
      let list = try folder.write(
        urls.joined(separator: "\n") + "\n" + origin.url("none.mp4").absoluteString, to: "list.txt")
      var files: [String] = []
      for index in 0..<3 {
        let result = try await Command.run(
          [command.rawValue, "--input", list, "-o", folder.path("out"), "--shard", "auto/3"],
          shell: "SLURM_ARRAY_TASK_ID=\(index) exec \"$@\"")
        #expect([0, 1].contains(result.status), "\(result.errorText)")
        files.append("out/results-\(index)-of-3.jsonl")
      }
      let all = try files.flatMap { try folder.objects($0) }
      #expect(self.urls(all) == urls.sorted())
      #expect(images(folder, command).count == 12)
      let report = try await Command.run(["report", "--json"] + files.map { folder.path($0) }, status: 0)
      #expect(report.outputText.contains("\"sources\":13"), "\(report.outputText)")
      #expect(report.outputText.contains("\"cause\":\"server 404\""), "\(report.outputText)")
      let page = folder.path("page.html")
      try await Command.run(
        ["report", "--html", page] + files.map { folder.path($0) }, status: 0)
      let html = try folder.text("page.html")
      #expect(html.contains("data:image/\(command == .frames ? "png" : "jpeg");base64,"))
      let text = try await Command.run(
        "report", "-", input: try files.flatMap { try folder.bytes($0) })
      #expect(text.outputText.hasPrefix("13 sources: 12 written, 1 failed\n"), "\(text.outputText)")
    }
  }

  // MARK: Runs that end early

  @Test("After kill -9, the next run does the rest, and nothing twice", arguments: ListCommand.allCases)
  func killed(tested: ListCommand) async throws {
    let folder = try TemporaryFolder()
    let clip = try Self.clip()
    let paths = (0..<40).map { "/c\($0).mp4" }
    try await withOrigin(
      "c2?.mp4=delay:20ms,late.mp4=silence",
      routes: Dictionary(uniqueKeysWithValues: (paths + ["/late.mp4"]).map { ($0, clip) })
    ) { origin in
      let urls = (["/late.mp4"] + paths).map { origin.url(String($0.dropFirst())).absoluteString }
      let list = try folder.write(urls.joined(separator: "\n"), to: "list.txt")
      let arguments = [
        tested.rawValue, "--input", list, "-o", folder.path("out"), "--jobs", "4", "--timeout", "1000",
        "--quiet",
      ]
      let command = try Command(arguments)
      try await until {
        let count = ((try? folder.bytes("out/results.jsonl")) ?? []).count { $0 == 10 }
        return count >= 10 && origin.requestLog.contains { $0.path == "/late.mp4" } || !command.isRunning
      }
      // Another run on the same results is refused meanwhile.
      let other = try await Command.run(arguments + ["--resume"], status: 73)
      #expect(other.errorText.contains("another run is writing"), "\(other.errorText)")
      command.send(SIGKILL)
      #expect(try await command.result().wasSignalled)
      // As if it had been killed while it wrote.
      let before = try folder.bytes("out/results.jsonl")
      let done = before.count { $0 == 10 }
      try folder.write(before + Array("{\"url\":\"http://h/cut".utf8), to: "out/results.jsonl")
      let leftover = ".c39-\(SourceHash(urls[40]).text).\(tested.fileExtension).part-1"
      let isLeft = done < 40 && !String(decoding: before, as: UTF8.self).contains("/c39.mp4")
      if isLeft { try folder.write([1], to: "out/\(leftover)") }
      origin.setFaults([])
      let next = try await Command.run(arguments.dropLast() + ["--resume"], status: 0)
      #expect(next.errorText.contains("\(41 - done) written, 0 failed, \(done) skipped"), "\(next.errorText)")
      let content = try folder.bytes("out/results.jsonl")
      #expect(content.starts(with: before))
      #expect(self.urls(try results(folder)) == urls.sorted())
      #expect(images(folder, tested).count == 41)
      #expect(folder.names("out").count == 42, "\(folder.names("out"))")
      let last = try await Command.run(arguments.dropLast() + ["--resume"], status: 0)
      #expect(last.errorText.contains("0 written, 0 failed, 41 skipped"), "\(last.errorText)")
      #expect(try folder.bytes("out/results.jsonl") == content)
      let anew = try await Command.run(Array(arguments), status: 73)
      #expect(anew.errorText.contains("--resume"), "\(anew.errorText)")
    }
  }

  @Test(
    "SIGTERM and Ctrl-C end a run, and the next continues",
    arguments: ListCommand.allCases, [(SIGTERM, Int32(75)), (SIGINT, Int32(130))])
  func terminated(tested: ListCommand, signal: (number: Int32, status: Int32)) async throws {
    let folder = try TemporaryFolder()
    let clip = try Self.clip()
    try await withOrigin("late.mp4=silence", routes: ["/a.mp4": clip, "/late.mp4": clip]) { origin in
      let list = try folder.write(
        ["a.mp4", "late.mp4"].map { origin.url($0).absoluteString }.joined(separator: "\n"), to: "list.txt")
      let arguments = [tested.rawValue, "--input", list, "-o", folder.path("out")]
      let command = try Command(arguments)
      try await until {
        let hasResult = ((try? folder.bytes("out/results.jsonl")) ?? []).contains(10)
        return hasResult && origin.requestLog.contains { $0.path == "/late.mp4" } || !command.isRunning
      }
      command.send(signal.number)
      let result = try await command.result()
      #expect(!result.wasSignalled)
      #expect(result.status == signal.status, "\(result.errorText)")
      #expect(result.errorText.contains("1 written, 0 failed"), "\(result.errorText)")
      let end = "interrupted: 1 of 2 sources done, results in \(folder.path("out/results.jsonl"));"
      #expect(result.errorText.contains("\(end) use --resume to continue"), "\(result.errorText)")
      #expect(folder.names("out").count == 2, "\(folder.names("out"))")
      origin.setFaults([])
      let next = try await Command.run(arguments + ["--resume"], status: 0)
      #expect(next.errorText.contains("1 written, 0 failed, 1 skipped"), "\(next.errorText)")
      #expect(try results(folder).count == 2)
    }
  }

  @Test("A full disk stops the run with 74, and the next continues")
  func fullDisk() async throws {
    guard FileManager.default.fileExists(atPath: "/dev/full") else { return }
    let folder = try TemporaryFolder()
    for name in ["a.ts", "b.ts", "c.ts"] {
      try folder.write(Fixtures.bytes("media/h264.ts"), to: name)
    }
    let list = try folder.write("a.ts\nb.ts\nc.ts", to: "list.txt")
    try FileManager.default.createDirectory(atPath: folder.path("out"), withIntermediateDirectories: true)
    let full = folder.path("out/b.ppm")
    try FileManager.default.createSymbolicLink(atPath: full, withDestinationPath: "/dev/full")
    let result = try await run(list, folder, "--name", "{stem}", "--overwrite", "--jobs", "1")
    #expect(result.status == 74, "\(result.errorText)")
    #expect(result.errorText.contains("No space left"), "\(result.errorText)")
    #expect(result.errorText.contains("use --resume to continue"), "\(result.errorText)")
    #expect(urls(try results(folder)) == ["a.ts"])
    try FileManager.default.removeItem(atPath: full)
    let next = try await run(list, folder, "--name", "{stem}", "--resume")
    #expect(next.status == 0, "\(next.errorText)")
    #expect(urls(try results(folder)) == ["a.ts", "b.ts", "c.ts"])
  }

  @Test("The results file can't grow: the run stops, and the next continues")
  func fullResults() async throws {
    let folder = try TemporaryFolder()
    for name in ["a.ts", "b.ts", "c.ts"] {
      try folder.write(Fixtures.bytes("media/h264.ts"), to: name)
    }
    let list = try folder.write("a.ts\nb.ts\nc.ts", to: "list.txt")
    // Files of at most 1024 bytes; the images are smaller.
    let arguments = ["frames", "--input", list, "-o", folder.path("out"), "--jobs", "1", "--size", "8x8"]
    let result = try await Command.run(arguments, shell: "trap '' XFSZ; ulimit -f 2; exec \"$@\"", status: 74)
    #expect(result.errorText.contains("results.jsonl"), "\(result.errorText)")
    try await Command.run(arguments + ["--resume"], status: 0)
    #expect(urls(try results(folder)) == ["a.ts", "b.ts", "c.ts"])
  }

  @Test(
    "Without room for a temporary file, one source fails for now, and the others do not",
    .enabled(if: ProcessInfo.processInfo.environment["REEL_SANITIZER"] == nil))
  func fullTemporaryFolder() async throws {
    let folder = try TemporaryFolder()
    try folder.write(Fixtures.bytes("media/h264.ts"), to: "b.ts")
    let kept = try Fixtures.bytes("stills/poor-start-moov-last.mp4")
    try await Origin.use(.ignoringRanges(of: kept, at: "/a.mp4")) { origin in
      let list = try folder.write("\(origin.url("a.mp4").absoluteString)\nb.ts", to: "list.txt")
      let result = try await Command.run(
        [
          "frames", "--input", list, "-o", folder.path("out"), "--jobs", "1", "--size", "8x8", "--retries",
          "0",
        ], shell: "trap '' XFSZ; ulimit -f 16; exec \"$@\"", status: 75)
      #expect(result.errorText.contains("TMPDIR"), "\(result.errorText)")
      #expect(urls(try results(folder), "failed") == [origin.url("a.mp4").absoluteString])
      #expect(urls(try results(folder)) == ["b.ts"])
    }
  }

  // MARK: Failures and hosts

  @Test(
    "Exit codes: 75 while a retry may help, then 1; permanent failures are not tried again",
    arguments: ListCommand.allCases)
  func exitCodes(command: ListCommand) async throws {
    let folder = try TemporaryFolder()
    let clip = try Self.clip()
    try await withOrigin(
      "busy.mp4=status:503x1,gone.mp4=status:410", routes: ["/busy.mp4": clip, "/gone.mp4": clip]
    ) {
      origin in
      let list = try folder.write(
        ["busy.mp4", "gone.mp4"].map { origin.url($0).absoluteString }.joined(separator: "\n"), to: "list.txt"
      )
      let first = try await run(of: command, list, folder, "--retries", "0")
      #expect(first.status == 75, "\(first.errorText)")
      #expect(first.errorText.contains("0 written, 2 failed, 0 skipped"), "\(first.errorText)")
      #expect(first.errorText.contains("  failed: 1 server 410\n"), "\(first.errorText)")
      #expect(
        first.errorText.contains("  failed: 1 server 503, may succeed on a retry"), "\(first.errorText)")
      let second = try await run(of: command, list, folder, "--resume")
      #expect(second.status == 1, "\(second.errorText)")
      #expect(second.errorText.contains("1 written, 0 failed, 1 skipped"), "\(second.errorText)")
      #expect(try results(folder).count == 2)
      #expect(origin.requestLog.count { $0.path == "/gone.mp4" } == 1)
    }
  }

  @Test("A host that keeps failing is left for a later run; others are done")
  func failingHost() async throws {
    let folder = try TemporaryFolder()
    let clip = try Self.clip()
    let routes = Dictionary(
      uniqueKeysWithValues: (0..<20).map { ("/c\($0).mp4", clip) } + [("/good.mp4", clip)])
    try await withOrigin("c*.mp4=status:503", routes: routes) { origin in
      let good = origin.url("good.mp4").absoluteString.replacingOccurrences(
        of: "127.0.0.1", with: "localhost")
      let list = try folder.write(
        ((0..<20).map { origin.url("c\($0).mp4").absoluteString } + [good]).joined(separator: "\n"),
        to: "list.txt")
      let result = try await Command.run(
        "frames", "--input", list, "-o", folder.path("out"), "--retries", "0", "--jobs", "2", status: 75)
      #expect(result.errorText.contains("1 written, 20 failed, 0 skipped"), "\(result.errorText)")
      #expect(result.errorText.contains("127.0.0.1: keeps failing"), "\(result.errorText)")
      // Three in a row, perhaps one more that was open, and three more.
      #expect((6...8).contains(origin.requestLog.count { $0.path.hasPrefix("/c") }))
      #expect(urls(try results(folder)) == [good])
    }
  }

  @Test("Retry-After holds back all sources of the host")
  func retryAfter() async throws {
    let folder = try TemporaryFolder()
    let clip = try Self.clip()
    let routes = Dictionary(uniqueKeysWithValues: (0..<6).map { ("/c\($0).mp4", clip) })
    try await withOrigin("c0.mp4=status:429;Retry-After: 2x1", routes: routes) { origin in
      let list = try folder.write(
        (0..<6).map { origin.url("c\($0).mp4").absoluteString }.joined(separator: "\n"), to: "list.txt")
      let result = try await Command.run(
        "frames", "--input", list, "-o", folder.path("out"), "--jobs", "1", "--retries", "0")
      // The source that was refused is tried once more.
      #expect(result.status == 0, "\(result.errorText)")
      let log = origin.requestLog.sorted { $0.arrival < $1.arrival }
      #expect(log.first?.path == "/c0.mp4")
      #expect(try results(folder).contains { $0["attempts"] as? Int == 2 })
      if log.count > 1 { #expect(log[1].arrival - log[0].arrival >= .seconds(2)) }
    }
  }

  @Test("Retry-After of a host that sources are redirected to holds back those, too")
  func retryAfterBehindRedirect() async throws {
    let folder = try TemporaryFolder()
    let clip = try Self.clip()
    let routes = Dictionary(uniqueKeysWithValues: (0..<4).map { ("/c\($0).mp4", clip) })
    try await withOrigin(routes: routes) { origin in
      let faults = (0..<4).map {
        "r\($0)=redirect:http://localhost:\(origin.port)/c\($0).mp4"
      }
      origin.setFaults(
        try (["c0.mp4=status:429;Retry-After: 2x1"] + faults).flatMap { try FaultRule.parse($0) })
      let list = try folder.write(
        (0..<4).map { origin.url("r\($0)").absoluteString }.joined(separator: "\n"), to: "list.txt")
      try await Command.run(
        "frames", "--input", list, "-o", folder.path("out"), "--jobs", "1", "--retries", "0", status: 0)
      let log = origin.requestLog.sorted { $0.arrival < $1.arrival }.filter { $0.path.hasPrefix("/c") }
      #expect(log.first?.path == "/c0.mp4" && log.count > 4)
      if log.count > 1 { #expect(log[1].arrival - log[0].arrival >= .seconds(2)) }
    }
  }

  @Test("The wait for a host's turn is told apart from the start-up time", arguments: ListCommand.allCases)
  func queuedForHost(command: ListCommand) async throws {
    let folder = try TemporaryFolder()
    let clip = try Self.clip()
    try await withOrigin("a.mp4=delay:4s", routes: ["/a.mp4": clip, "/b.mp4": clip]) { origin in
      let (first, second) = (origin.url("a.mp4").absoluteString, origin.url("b.mp4").absoluteString)
      let list = try folder.write("\(first)\n\(second)\n\(goodSource)\n", to: "list.txt")
      let result = try await run(of: command, list, folder, "--per-host", "1", "--rate-limit", "20/s")
      #expect(result.status == 0, "\(result.errorText)")
      var startups: [String: [String: Any]] = [:]
      for record in try results(folder) {
        startups[try #require(record["url"] as? String)] = record["startup"] as? [String: Any]
      }
      func time(_ url: String, _ key: String) throws -> Double {
        try #require(startups[url]?[key] as? Double)
      }
      #expect(try time(first, "total_ms") >= 1000)
      #expect(try time(second, "queued_ms") >= 1000)
      let total = try #require(
        (try results(folder).first { $0["url"] as? String == second })?["seconds"] as? Double)
      #expect(try time(second, "total_ms") <= total * 1000 + 1)
      // Local files have no host.
      #expect(try time(goodSource, "queued_ms") < time(second, "queued_ms"))
      let report = try await Command.run("report", folder.path("out/results.jsonl"))
      #expect(report.outputText.contains("queued before"), "\(report.outputText)")
    }
  }
}
