import Foundation
import ReelCore
@testable import ReelLab
import ReelTestSupport
import Testing

@Suite("Runs of a lab")
struct LabRunsTests {
  @Test("Each with each; pools and policies change first")
  func product() throws {
    let runs = LabRuns(
      feeds: ["f", "g"], links: [LabRuns.Link(name: "a", group: "x"), LabRuns.Link(name: "b", group: "x")],
      dwells: ["d"], devices: ["m"], slotCounts: [3, 5], policies: ["p", "q", "r"], seeds: [7, 8])
    #expect(runs.count == 48)
    #expect(Set(runs).count == 48)
    #expect(runs.prefix(7).map(\.policy) == ["p", "q", "r", "p", "q", "r", "p"])
    #expect(runs.prefix(7).map(\.slotCount) == [3, 3, 3, 5, 5, 5, 3])
    #expect(runs.prefix(7).map(\.seed) == [7, 7, 7, 7, 7, 7, 8])
    #expect(runs[12].link == "b")
    #expect(runs[12].linkGroup == "x")
    #expect(runs[24].feed == "g")
    let last = runs.places(at: 47)
    #expect(last.feed == 1 && last.link == 1 && last.dwell == 0 && last.device == 0)
    #expect(last.seed == 1 && last.slotCount == 1 && last.policy == 2)
  }
}

@Suite("The results file of a lab")
struct LabStoreTests {
  private let folder: TemporaryFolder
  private let path: String
  private let runs = LabRuns(
    feeds: ["f"], links: [LabRuns.Link(name: "a", group: "a")], dwells: ["d"], devices: ["m"],
    slotCounts: [3], policies: ["p", "q"], seeds: [1, 2, 3])

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("results.jsonl")
  }

  private func open(
    _ fingerprint: String = "abc", reel: String = "1.0", restarts: Bool = false
  ) throws -> LabStore {
    try LabStore(
      path: path, header: LabStore.Header(reel: reel, fingerprint: fingerprint, runs: runs.count),
      restarts: restarts)
  }

  private func result(_ index: Int, error: String? = nil) -> LabResult {
    LabResult(
      run: runs[index],
      figures: error == nil ? ["second_frame.p95": Double(index) / 3, "stalls.count": 2] : [:],
      error: error)
  }

  private func text() throws -> String { try folder.text("results.jsonl") }

  private func reason(_ body: () throws -> Void) -> String {
    let error = #expect(throws: ReelError.self) { try body() }
    return error?.description.replacing(folder.path + "/", with: "") ?? ""
  }

  @Test("In any order and with any interruptions, the finished file is the same")
  func order() throws {
    do {
      let store = try open()
      for index in runs.indices { try store.append(result(index), at: index) }
      try store.finish()
    }
    let whole = try text()
    #expect(whole.split(separator: "\n").count == 7)
    do {
      let store = try open()
      #expect(store.endedCount == 6)
      #expect(try store.results(runs) == runs.indices.map { result($0) })
    }
    #expect(try text() == whole)

    try FileManager.default.removeItem(atPath: path)
    for indices in [[4, 1], [5, 0, 2], [3]] {
      let store = try open()
      for index in indices {
        #expect(!store.isDone(index))
        try store.append(result(index), at: index)
        #expect(store.isDone(index))
      }
      if store.endedCount == 6 {
        try store.finish()
        #expect(try store.results(runs) == runs.indices.map { result($0) })
      }
    }
    #expect(try text() == whole)
    #expect(folder.names() == ["results.jsonl"])
  }

  @Test("A line that was cut is dropped, wherever it was cut")
  func cutLine() throws {
    do {
      let store = try open()
      for index in [2, 0] { try store.append(result(index), at: index) }
    }
    let bytes = try folder.bytes("results.jsonl")
    let lines = bytes.split(separator: 0x0a)
    let (first, second) = (lines[0].count + lines[1].count + 2, bytes.count)
    for count in [
      first + 1, first + 9, second - 2, second - 1, first, lines[0].count + 1, lines[0].count, 5, 0,
    ] {
      try Data(bytes.prefix(count)).write(to: URL(filePath: path))
      do {
        let store = try open()
        #expect(store.endedCount == (count >= first ? 1 : 0), "\(count)")
        #expect(!store.isDone(0))
        if !store.isDone(2) { try store.append(result(2), at: 2) }
        try store.append(result(0), at: 0)
      }
      #expect(try folder.bytes("results.jsonl") == bytes)
    }
  }

  @Test("Runs that failed are repeated, and the last result counts")
  func failures() throws {
    do {
      let store = try open()
      try store.append(result(1, error: "lost"), at: 1)
      try store.append(result(0), at: 0)
      #expect(store.endedCount == 2)
      #expect(store.failedCount == 1)
      #expect(!store.isDone(1))
    }
    let store = try open()
    #expect(store.failedCount == 1)
    #expect(try store.results(runs) == [result(0), result(1, error: "lost")])
    try store.append(result(1), at: 1)
    #expect(store.failedCount == 0)
    #expect(try store.results(runs) == [result(0), result(1)])
    try store.finish()
    #expect(try text().split(separator: "\n").count == 3)
  }

  @Test("Results of another lab or version are refused, unless it begins anew")
  func others() throws {
    do { try open().append(result(0), at: 0) }
    let before = try text()
    #expect(
      reason { _ = try open("abd") }.hasPrefix(
        "results.jsonl: the results are from another configuration; use --restart"))
    #expect(
      reason { _ = try open(reel: "2.0") }.contains("the results are from reel 1.0, and this is reel 2.0"))
    #expect(try text() == before)
    let older = before.replacing(#""lab":3"#, with: #""lab":2"#)
    try older.write(toFile: path, atomically: true, encoding: .utf8)
    #expect(
      reason { _ = try open() }.contains("the results are from another version of reel lab; use --restart"))
    #expect(try text() == older)
    #expect(try open("abd", restarts: true).endedCount == 0)
    #expect(try text().hasPrefix("{\"fingerprint\":\"abd\""))
  }

  @Test(
    "A file that has no results is left alone, also if it is to begin anew",
    arguments: [
      "hello", "hello\n", "{}\n", "{\"fingerprint\":1}\n",
    ])
  func foreign(text: String) throws {
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    for restarts in [false, true] {
      #expect(
        reason { _ = try open(restarts: restarts) }.contains("the file exists and holds no lab results"))
    }
    #expect(try self.text() == text)
  }

  @Test("A damaged line, no file, and a folder")
  func damage() throws {
    do { try open().append(result(0), at: 0) }
    let sound = try text()
    for line in ["x", "{\"number\":6,}", "{\"number\":-1,}", "{\"number\":99999999999999999999,}"] {
      try (sound + line + "\n").write(toFile: path, atomically: true, encoding: .utf8)
      #expect(
        reason { _ = try open() } == "results.jsonl: line 3 is not a result; use --restart to start over")
    }
    #expect(throws: ReelError.self) {
      try LabStore(path: folder.path, header: LabStore.Header(reel: "", fingerprint: "", runs: 1))
    }
    #expect(throws: ReelError.self) {
      try LabStore(path: folder.path("no/such"), header: LabStore.Header(reel: "", fingerprint: "", runs: 1))
    }
  }

  @Test("Two labs do not share a file")
  func lock() throws {
    var store: LabStore? = try open()
    #expect(reason { _ = try open() }.contains("another reel lab is using it"))
    try store?.append(result(1), at: 1)
    try store?.append(result(0), at: 0)
    // The lock outlives the file's replacement by one in order.
    try store?.finish()
    #expect(reason { _ = try open() }.contains("another reel lab is using it"))
    store = nil
    #expect(try open().endedCount == 2)
  }

  @Test("Without a name, results are kept as well")
  func nameless() throws {
    let store = try LabStore(
      path: nil, header: LabStore.Header(reel: "1", fingerprint: "a", runs: runs.count))
    try store.append(result(3), at: 3)
    try store.finish()
    #expect(try store.results(runs) == [result(3)])
  }
}
