import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

/// What can't pass fails at once, with the same error whatever the command. What may pass is retried, and a time-out says what
/// it was.
@Suite("Failures while a source is opened", .hangLimit)
struct OpeningFaultTests {
  // MARK: What can't pass

  @Test(
    "A certificate that is not accepted: why, and what helps",
    arguments: [
      (
        TLSServer.Certificate.selfSigned, false,
        "the server's TLS certificate is self-signed, and not trusted; if",
        "with --cacert FILE"
      ),
      (
        .signed, false, "unknown issuer: no trusted authority vouches for 'Reel Test Authority'",
        "with --cacert FILE"
      ),
      (.expired, false, "certificate expired on 2021-01-01T00:00:00Z", "--cacert does not help"),
      (.expired, true, "certificate expired on 2021-01-01T00:00:00Z", "--cacert does not help"),
      (.notYetValid, true, "certificate is not valid until 2095-01-01T00:00:00Z", "--cacert does not help"),
      (
        .otherHost, true, "certificate is for another host: other.example, *.more.example; use a host name",
        "certificate for localhost; --cacert does not help"
      ),
    ])
  func certificates(
    kind: TLSServer.Certificate, isTrusted: Bool, reason: String, advice: String
  ) async throws {
    guard let server = try await TLSServer.start(kind) else { return }
    let options = isTrusted ? ["--cacert", server.authority] : []
    let text = try await expectFinal(server.source, options: options)
    #expect(text.contains(reason) && text.contains(advice), "\(text)")
  }

  @Test("A certificate is accepted if its authority is named, and any with --insecure")
  func acceptedCertificates() async throws {
    for kind in [TLSServer.Certificate.selfSigned, .signed, .expired, .otherHost] {
      guard let server = try await TLSServer.start(kind) else { return }
      let isGood = kind == .selfSigned || kind == .signed
      for options in isGood ? [["--cacert", server.authority], ["--insecure"]] : [["--insecure"]] {
        // The server answers with a page.
        let result = try await Command.run(["frames", server.source] + options)
        #expect(result.status == 65, "\(kind), \(options): \(result.errorText)")
      }
    }
  }

  @Test("A host that does not exist")
  func noSuchHost() async throws {
    // A label of more than 63 letters is no name, so nobody is asked for it.
    let host = String(repeating: "a", count: 70) + ".invalid"
    let text = try await expectFinal("http://\(host)/a.mp4")
    #expect(text.hasSuffix("no such host: no address for \(host); check the host name\n"), "\(text)")
  }

  @Test(
    "A status that can't pass takes one request, and another one with a range if that may help",
    arguments: [(401, 1), (403, 2), (404, 1), (410, 1), (451, 1), (501, 2)])
  func finalStatus(status: Int, requestCount: Int) async throws {
    try await withOrigin("h264.ts=status:\(status)") { origin in
      let text = try await expectFinal(origin.url("media/h264.ts").absoluteString)
      #expect(text.contains(": \(status) "), "\(text)")
      #expect(origin.requestLog.count == requestCount * Self.commands.count)
    }
  }

  @Test("What is no media takes no second look")
  func noMedia() async throws {
    try await withOrigin { origin in
      let text = try await expectFinal(origin.url("bad/html.m3u8").absoluteString, status: 65)
      #expect(text.contains("HTML"), "\(text)")
      #expect(origin.requestLog.count == Self.commands.count)
    }
  }

  // MARK: What may pass

  @Test("A server that recovers is played", arguments: ["status:503x2", "status:429x2", "reset:0x2"])
  func recovery(fault: String) async throws {
    try await withOrigin("h264.ts=\(fault)") { origin in
      let run = try await PlayEvents.play(
        origin.url("media/h264.ts").absoluteString, "--retries", "0", "--rate", "max")
      #expect(run.names.count { $0 == "retry" } == 2)
      #expect(run.summary?["ended"] as? String == "played_to_end")
    }
  }

  @Test("A refused connection is retried, and the time-out says so")
  func refused() async throws {
    let origin = try await Origin.start(.init())
    let source = origin.url("a.mp4").absoluteString
    await origin.stop()
    let result = try await Command.run(
      "play", source, "--json", "--timeout", "10", "--retries", "0", status: 69)
    #expect(
      result.errorText
        == "reel: \(source): no frame within 10 s: connection refused; check that the server is running and reachable\n"
    )
    #expect(try PlayEvents(result).names.contains("retry"))
    // It is not retried for as long.
    try await expectFailure(source, status: 69, words: ": connection refused; check")
  }

  @Test(
    "A time-out names the last answer, while a request is still to be repeated",
    arguments: [
      ["frames", "SOURCE"], ["play", "SOURCE"], ["probe", "SOURCE"], ["poster", "SOURCE"],
      ["storyboard", "SOURCE"], ["manifest", "SOURCE"], ["serve", "SOURCE"],
      ["memory", "SOURCE", "--players", "1"], ["feed", "SOURCE"],
      ["frames", "--input", "list.txt", "-o", "out"],
    ])
  func lateAnswers(arguments: [String]) async throws {
    let folder = try TemporaryFolder()
    try await withSource("hls-ts/master.m3u8", faults: "*=status:429;Retry-After: 20") { source in
      try folder.write("\(source)\n", to: "list.txt")
      let isList = arguments.contains("list.txt")
      let result = try await Command.run(
        arguments.map { $0.replacing("SOURCE", with: source) } + ["--timeout", "10"], directory: folder.path,
        status: isList ? 75 : 69)
      let text = isList ? try folder.text("out/results.jsonl") : result.errorText
      #expect(
        text.contains(
          "within 10 s: the server answered 429 Too Many Requests; the server asks to come back in 20 s"),
        "\(text)")
    }
  }

  @Test("A time-out names the resource that failed, unless it has been answered since")
  func lateSegment() async throws {
    let words = "within 8 s: the server answered 503 Service Unavailable"
    try await withOrigin("segment-0.ts=status:503;Retry-After: 20") { origin in
      let source = origin.url("hls-ts/high/index.m3u8").absoluteString
      let segment = origin.url("hls-ts/high/segment-0.ts").absoluteString
      for command in ["frames", "play"] {
        let result = try await Command.run(command, source, "--quiet", "--timeout", "8")
        expectErrorLine(result, names: source, words: "\(words) (\(segment))")
      }
    }
    for command in ["frames", "play"] {
      try await withOrigin("index.m3u8=status:503x1,segment-0.ts=silence") { origin in
        let source = origin.url("hls-ts/high/index.m3u8").absoluteString
        let result = try await Command.run(command, source, "--quiet", "--timeout", "8")
        expectErrorLine(result, names: source, words: "within 8 s; allow more time with --timeout")
      }
    }
  }

  // MARK: - Private

  private static let commands = ["frames", "play", "probe"]

  /// Expects the same error of all commands, without a retry. Returns its line.
  private func expectFinal(
    _ source: String, status: Int32 = 69, options: [String] = [],
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> String {
    let folder = try TemporaryFolder()
    var texts: [String] = []
    for command in Self.commands {
      let output = command == "frames" ? ["-o", folder.path] : []
      let result = try await Command.run(
        [command, source, "--json"] + output + options, sourceLocation: sourceLocation)
      #expect(result.status == status, "\(result.errorText)", sourceLocation: sourceLocation)
      expectErrorLine(result, names: source, words: "", sourceLocation: sourceLocation)
      if command == "play" {
        #expect(try !PlayEvents(result).names.contains("retry"), sourceLocation: sourceLocation)
      }
      texts.append(result.errorText)
    }
    #expect(Set(texts).count == 1, "\(texts)", sourceLocation: sourceLocation)
    return texts[0]
  }
}
