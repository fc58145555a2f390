import Foundation
import ReelCore
import ReelPool
import ReelLab
import Testing

@Suite("Dwell times")
struct DwellSpecTests {
  @Test(
    "Written forms",
    arguments: [
      ("fixed:2s", "fixed:2s"), ("fixed:2", "fixed:2s"), ("FIXED: 500ms ", "fixed:500ms"),
      ("fixed:0s", "fixed:0s"),
      ("fixed:1.5", "fixed:1.5s"), ("fixed:250us", "fixed:250us"), ("exp:5s", "exp:5s"),
      ("exp:0.5min", "exp:30s"), ("retention", "retention"), (" Retention ", "retention"),
    ])
  func parsing(text: String, canonical: String) throws {
    let spec = try DwellSpec(parsing: text)
    #expect(spec.description == canonical)
    #expect(try DwellSpec(parsing: canonical) == spec)
  }

  @Test(
    "What is no dwell time",
    arguments: [
      "", "2s", "fixed", "fixed:", "fixed:-1s", "fixed:25h", "fixed:x", "fixed:1e3", "exp:0", "exp:0s",
      "exp:", "weibull:0.8,6s", "retention:", "retention:1", "trace:", "often:2s", "fixed:100000s",
      "fixed:2 s s",
    ])
  func malformed(text: String) {
    let error = #expect(throws: ReelError.self) { try DwellSpec(parsing: text) }
    #expect(error?.kind == .usage)
  }

  @Test("A trace's lines")
  func trace() throws {
    let trace = try DwellTrace(
      text: "# looks\r\n2\r\n\r\n 0.5 +1\r\n1s -3\r\n250ms\t7\r\n0\r\n", name: "t")
    #expect(
      trace.entries.map(\.dwell) == [
        .seconds(2), .milliseconds(500), .seconds(1), .milliseconds(250), .zero,
      ])
    #expect(trace.entries.map(\.move) == [.onward, .by(1), .by(-3), .to(7), .onward])
    #expect(trace.entries.map(\.line) == [2, 4, 5, 6, 7])
  }

  @Test(
    "A line that can't be read",
    arguments: ["x", "2 +0", "2 -0", "2 +", "2 +-1", "2 1.5", "2 x", "2 1 1", "-2", "2 99999999999999999999"])
  func badLine(line: String) {
    let error = #expect(throws: ReelError.self) {
      try DwellTrace(text: "1\n# c\n\(line)\n", name: "looks.txt")
    }
    #expect(error?.kind == .badManifest)
    #expect(error?.place == .line(3))
    #expect(error?.location == "looks.txt")
  }

  @Test("A trace's file")
  func file() throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("trace-\(UUID().uuidString)")
    try Data("\u{feff}1\n2\n".utf8).write(to: url)
    defer { try? FileManager.default.removeItem(at: url) }
    guard case .trace(let trace) = try DwellSpec(parsing: "trace:\(url.path)") else {
      Issue.record("no trace")
      return
    }
    #expect(trace.entries.map(\.dwell) == [.seconds(1), .seconds(2)])
    let error = #expect(throws: ReelError.self) { try DwellSpec(parsing: "trace:\(url.path).none") }
    #expect(error?.kind == .noSuchFile)
    #expect(throws: ReelError.self) { try DwellTrace(text: "# nothing\n", name: "t") }
  }
}
