import Foundation
import ReelCore
import ReelLab
import ReelTestSupport
import Testing

@testable import ReelCommand

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Results of lists", .hangLimit)
struct ResultsFileTests {
  private func line(_ url: String?, _ error: ReelError? = nil, body: String = "{}") -> [UInt8] {
    ResultLine.text(
      url: url, index: 1, line: 1, host: "h", finishedAt: WallTime(nanosecondsSince1970: 0), seconds: 1.5,
      attempts: 1, error: error, body: RawJSON.members(of: Array(body.utf8)[...]) ?? [],
      fields: [.init(key: "id", value: Array("0.10".utf8))])
  }

  private let permanent = ReelError(.badMedia, "no frame")
  private let temporary = ReelError(.server, "503", status: 503)

  @Test("A line has the fields of the run, of the command, and of the list")
  func text() {
    #expect(
      String(decoding: line("u", body: #"{"frames":[]}"#), as: UTF8.self)
        == #"{"url":"u","status":"written","index":1,"host":"h","finished_at":"1970-01-01T00:00:00Z","#
        + #""seconds":1.5,"frames":[],"id":0.10}"# + "\n")
    #expect(
      String(decoding: line(nil, temporary), as: UTF8.self)
        == #"{"status":"failed","permanent":false,"index":1,"line":1,"host":"h","#
        + #""finished_at":"1970-01-01T00:00:00Z","seconds":1.5,"#
        + #""error":{"exit_code":69,"kind":"server","message":"503","status":503},"id":0.10}"# + "\n")
    #expect(ResultLine(line("u", temporary).dropLast())?.isTemporary == true)
    #expect(ResultLine(line("u", permanent).dropLast())?.isTemporary == false)
    #expect(ResultLine(Array(#"{"url":"u"}"#.utf8)[...]) == nil)
  }

  /// Writes a file, continues it, and returns its content and what counts as finished.
  private func continued(_ bytes: [UInt8]) throws -> (content: [UInt8], finished: ResultsFile.Finished) {
    let folder = try TemporaryFolder()
    let path = try folder.write(bytes, to: "r.jsonl")
    let (file, finished) = try ResultsFile.open(path: path, resumes: true, overwrites: false)
    try file.append(Array("last\n".utf8))
    #expect(folder.names() == ["r.jsonl"])
    return (try folder.bytes("r.jsonl"), finished)
  }

  @Test("A last line that is cut anywhere is removed")
  func cut() throws {
    let (first, second) = (line("a"), line("b", permanent))
    for length in stride(from: 0, to: second.count, by: 7) + [second.count - 1] {
      let (content, finished) = try continued(first + second.prefix(length))
      #expect(content == first + Array("last\n".utf8), "\(length)")
      #expect(finished.written == [SourceHash("a")])
      #expect(finished.failed.isEmpty)
    }
    let (content, finished) = try continued(first + second)
    #expect(content == first + second + Array("last\n".utf8))
    #expect(finished.failed == [SourceHash("b")])
  }

  @Test(
    "A last line without a newline that is none of a run is left as it is", arguments: ["notes", "{\"a\":1"])
  func foreignEnd(text: String) throws {
    for before in [[], line("a")] {
      let folder = try TemporaryFolder()
      let bytes = before + Array(text.utf8)
      try folder.write(bytes, to: "notes.txt")
      let error = #expect(throws: ReelError.self) {
        try ResultsFile.open(path: folder.path("notes.txt"), resumes: true, overwrites: false)
      }
      #expect(error?.reason == "not a result of reel")
      #expect(error?.place == .line(before.isEmpty ? 1 : 2))
      #expect(try folder.bytes("notes.txt") == bytes)
    }
  }

  @Test("Zeros after a loss of power, blank lines and a byte order mark do not matter")
  func whiteSpace() throws {
    let (content, _) = try continued(line("a") + [UInt8](repeating: 0, count: 4096))
    #expect(content == line("a") + Array("last\n".utf8))
    let mark: [UInt8] = [0xef, 0xbb, 0xbf]
    let (edited, finished) = try continued(
      mark + line("a") + Array("\r\n \n".utf8) + line("b", permanent) + [0x0a])
    #expect(edited == mark + line("a") + line("b", permanent) + Array("last\n".utf8))
    #expect(finished.written == [SourceHash("a")] && finished.failed == [SourceHash("b")])
    var report = ResultsReport()
    report.add((mark + line("a").dropLast())[...])
    #expect(report.writtenCount == 1 && report.unreadableCount == 0)
  }

  @Test("A file with something else is left as it is")
  func foreign() throws {
    let folder = try TemporaryFolder()
    let bytes = line("a") + Array("http://h/a.mp4\nhttp".utf8)
    let path = try folder.write(bytes, to: "list.txt")
    let error = #expect(throws: ReelError.self) {
      try ResultsFile.open(path: path, resumes: true, overwrites: true)
    }
    #expect(error?.kind == .cannotCreateOutput)
    #expect(error?.place == .line(2))
    #expect(try folder.bytes("list.txt") == bytes)
  }

  @Test("Two runs can't have one file, not even after it was rewritten", arguments: [false, true])
  func lock(isRewritten: Bool) throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(line("a", isRewritten ? temporary : permanent), to: "r.jsonl")
    var first: ResultsFile? = try ResultsFile.open(path: path, resumes: true, overwrites: false).file
    let error = #expect(throws: ReelError.self) {
      try ResultsFile.open(path: path, resumes: true, overwrites: true)
    }
    #expect(error?.reason.contains("another run") == true)
    #expect(error?.kind == .cannotCreateOutput)
    try first?.append(line("b"))
    first = nil
    #expect(try ResultsFile.open(path: path, resumes: true, overwrites: false).finished.written.count == 1)
  }

  @Test("No results without a regular file")
  func device() throws {
    #expect(throws: ReelError.self) {
      try ResultsFile.open(path: "/dev/null", resumes: true, overwrites: true)
    }
    #expect(throws: ReelError.self) {
      try ResultsFile.open(path: "/nowhere/r.jsonl", resumes: false, overwrites: false)
    }
  }

  // MARK: Reports

  @Test("A report: counts, start-up times, causes and hosts; the last line of a source counts")
  func report() {
    var report = ResultsReport()
    for (number, time) in [10, 20, 30, 40].enumerated() {
      report.add(line("w\(number)", body: #"{"startup":{"total_ms":\#(time),"init":{"ms":1}}}"#).dropLast())
    }
    report.add(line("x", temporary).dropLast())
    report.add(line("y", temporary).dropLast())
    report.add(line("y", permanent).dropLast())
    report.add(line("w0", permanent).prefix(30))
    #expect(report.sourceCount == 6)
    #expect(report.writtenCount == 4)
    #expect(report.temporaryCount == 1)
    #expect(report.permanentCount == 1)
    #expect(report.supersededCount == 1)
    #expect(report.unreadableCount == 1)
    #expect(report.startup?.p50 == .milliseconds(20))
    #expect(report.startup?.max == .milliseconds(40))
    #expect(report.causes.map(\.cause) == ["badMedia", "server 503"])
    #expect(report.hosts.map(\.host) == ["h"])
    #expect(report.hosts.first?.failed == 2)
    #expect(report.lines.first == "6 sources: 4 written, 2 failed")
  }

  @Test("In a pipe, reel report prints messages whole, and counts one source as one")
  func wholeMessages() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("r.jsonl")
    let message = (1...40).map { "word\($0)" }.joined(separator: " ")
    try Data(line("a", ReelError(.badMedia, message))).write(to: URL(filePath: path))
    let report = try await Command.run("report", path)
    #expect(report.outputLines.first == "1 source: 0 written, 1 failed")
    #expect(report.outputText.contains(message), "\(report.outputText)")
  }

  @Test("A line that is longer than the limit can't be read, and the others are")
  func longLines() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("r.jsonl")
    let long = [UInt8](repeating: 0, count: 1 << 20)
    let short = [UInt8](repeating: 0x20, count: 1000)
    for rest in [[], [0x0a], line("b")] {
      let isCut = rest.first != UInt8(ascii: "{")
      try Data(line("a") + short + [0x0a] + long + (isCut ? [] : [0x0a]) + rest).write(
        to: URL(filePath: path))
      var report = ResultsReport()
      try report.add(path: path, lineLimit: 1000)
      #expect(report.unreadableCount == 1 && report.writtenCount == (isCut ? 1 : 2))
      #expect(report.supersededCount == 0)
    }
  }

  @Test("A still that is a pipe is left out of the page, and not waited for")
  func pipe() async throws {
    let folder = try TemporaryFolder()
    #expect(mkfifo(folder.path("pipe.jpg"), 0o600) == 0)
    let body = #"{"startup":{"total_ms":1},"file":{"path":"\#(folder.path("pipe.jpg"))"}}"#
    try folder.write(line("a", body: body), to: "r.jsonl")
    try await Command.run(
      "report", folder.path("r.jsonl"), "--html", folder.path("page.html"), status: 0)
    #expect(try folder.text("page.html").contains("not a regular file"))
  }

  @Test("A page: counts, causes, hosts, and the stills of the worst streams, in one file")
  func page() throws {
    let folder = try TemporaryFolder()
    let jpeg: [UInt8] = [0xff, 0xd8, 0xff, 0xe0, 0, 1]
    try folder.write(jpeg, to: "slow.jpg")
    var report = ResultsReport(keepsWorst: true)
    for (number, time) in (1...100).enumerated() {
      report.add(
        line("http://h/w\(number)?key=1", body: #"{"startup":{"total_ms":\#(time)}}"#).dropLast(),
        folder: folder.path)
    }
    report.add(
      line(
        "http://h/slow<b>.mp4", body: #"{"startup":{"total_ms":5000},"file":{"path":"gone/out/slow.jpg"}}"#
      ).dropLast(), folder: folder.path)
    let poor =
      #"{"good":false,"why":"least bad of 3, black","chosen":0,"candidates":[{"score":0.1}],"#
      + #""startup":{"total_ms":0.5},"file":{"path":"../../etc/passwd"}}"#
    report.add(line("http://h/poor.mp4", body: poor).dropLast(), folder: folder.path)
    report.add(line("http://h/x", temporary).dropLast())
    // A later line replaces this one.
    report.add(
      line("http://h/again", body: #"{"damaged":2,"startup":{"total_ms":9000}}"#).dropLast(), folder: "."
    )
    report.add(line("http://h/again", permanent).dropLast())
    #expect(report.poorCount == 1)
    let html = ResultsPage(report: report, files: ["r.jsonl"]).html
    #expect(html.contains("Results of 104 sources"))
    #expect(html.contains("data:image/jpeg;base64,\(Data(jpeg).base64EncodedString())"))
    #expect(html.contains("http://h/slow&lt;b&gt;.mp4"))
    #expect(html.contains("least bad of 3, black"))
    #expect(html.contains("server 503"))
    #expect(!html.contains("http://h/again"))
    #expect(!html.contains("key=1"))
    #expect(!html.contains("src=\"http") && !html.contains("href="))
  }

  @Test("Progress tells what is done, the rate, the time left and the slowest source")
  func progress() {
    let progress = BatchProgress()
    progress.setTotal(1000)
    progress.begin(7, "http://h/slow.mp4")
    progress.add { ($0.written, $0.skippedWritten) = (90, 100) }
    for _ in 0..<10 { progress.addFailure(permanent) }
    let text = progress.text(after: .seconds(20))
    #expect(text.hasPrefix("200 of 1000 done, 10 failed, 5/s, 80 s left, slowest "), "\(text)")
    #expect(text.hasSuffix(": http://h/slow.mp4"), "\(text)")
  }
}
