import Foundation
import ReelCore
import ReelPlayback
import ReelPool
import ReelSimulation
import ReelLab
import ReelTestSupport
import Testing

@Suite("Configurations of a lab")
struct LabConfigurationTests {
  private func configuration(_ json: String) throws -> LabConfiguration {
    try LabConfiguration(json: Array(json.utf8), from: .file("lab.json"))
  }

  /// The lines that tell what is wrong.
  private func faults(_ json: String) -> [String] {
    do {
      _ = try configuration(json)
      return []
    } catch {
      return (error as? LabFailures)?.errors.map(\.description) ?? ["\(error)"]
    }
  }

  @Test("What a configuration does not state")
  func defaults() throws {
    let lab = try configuration("{\"feeds\": [\"feed.json\"]}")
    #expect(lab.feeds.map(\.value.file) == ["feed.json"])
    #expect(lab.feeds.map(\.value.feed) == [nil])
    #expect(lab.links.map(\.value) == ["3g", "lte", "wifi"])
    #expect(lab.viewers.map(\.value.text) == ["exp:5s"])
    #expect(lab.devices.map(\.value) == ["mid"])
    #expect(lab.slotCounts == [3])
    #expect(lab.policies.map(\.description) == LabConfiguration.defaultPolicies)
    #expect(lab.seeds == [1])
    #expect(lab.swipeCount == nil)
    #expect(lab.bandwidth == nil)
    #expect(lab.firstRung == .adapted)
    #expect(lab.modelsTCP && lab.modelsTLS && lab.modelsDNS)
  }

  @Test("All that a configuration can state")
  func everything() throws {
    let lab = try configuration(
      """
      {
        "feeds": [{"file": "a.json", "feed": "following", "name": "f"}, "https://example.com/b"],
        "links": ["lte", "x/y,scale=2"], "tcp": false, "tls": false, "dns": true,
        "viewers": ["retention", {"name": "v", "dwell": "weibull:0.8,6s", "flicks": "10%", "bursts": "0%"}],
        "devices": ["low", "high"], "pools": [3, 5], "policies": ["ahead:2", "none"],
        "seeds": [18446744073709551615, 0], "swipes": 40, "bandwidth": "2Mbit", "max_height": 720,
        "first_rung": "auto"
      }
      """)
    #expect(lab.feeds.map(\.value.feed) == ["following", nil])
    #expect(lab.viewers.map(\.value.text) == ["retention", "weibull:0.8,6s,flicks=10%,bursts=0%"])
    #expect(lab.viewers.map(\.value.name) == [nil, "v"])
    #expect(lab.slotCounts == [3, 5])
    #expect(lab.policies.map(\.description) == ["ahead:2", "none"])
    #expect(lab.seeds == [.max, 0])
    #expect(lab.swipeCount == 40)
    #expect(lab.bandwidth == 2_000_000)
    #expect(lab.maximumHeight == 720)
    #expect(lab.firstRung == .auto)
    #expect(!lab.modelsTCP && !lab.modelsTLS && lab.modelsDNS)
    #expect(try configuration("{\"feeds\": [\"f\"], \"seeds\": 3}").seeds == [1, 2, 3])
  }

  @Test(
    "A fault names the file, the line and the field",
    arguments: [
      ("", "lab.json: line 1, column 1: the text ends where a value is expected"),
      ("[]", "lab.json: line 1: a configuration must be an object, not an array"),
      (
        "{\"feeds\": [\"f\"],\n\"feeds\": []}", "lab.json: line 2, column 1: the key \"feeds\" appears twice"
      ),
      ("{}", "lab.json: line 1: feeds: the field is missing"),
      ("{\"feeds\": []}", "lab.json: line 1: feeds: must have at least one element"),
      ("{\"feeds\": \"f\"}", "lab.json: line 1: feeds: must be an array, not a string"),
      ("{\"feeds\": [7]}", "lab.json: line 1: feeds[0]: must be an object, not a number"),
      ("{\"feeds\": [{\"name\": \"a\"}]}", "lab.json: line 1: feeds[0].file: the field is missing"),
      ("{\"feeds\": [{\"file\": \"f\",\n\"x\": 1}]}", "lab.json: line 2: feeds[0].x: unknown field"),
      ("{\"feeds\": [\"f\"],\n\"viewer\": []}", "lab.json: line 2: viewer: unknown field"),
      (
        "{\"feeds\": [\"f\"],\n\"policies\": [\"none\",\n\"most\"]}",
        "lab.json: line 3: policies[1]: \"most\" is not a preload policy"
      ),
      (
        "{\"feeds\": [\"f\"], \"policies\": [\"ahead:2\", \"ahead(2)\"]}",
        "lab.json: line 1: policies[1]: ahead:2 appears twice"
      ),
      (
        "{\"feeds\": [\"f\"], \"pools\": [0]}",
        "lab.json: line 1: pools[0]: must be a whole number from 1 to 1000, not 0"
      ),
      ("{\"feeds\": [\"f\"], \"pools\": [3, 3]}", "lab.json: line 1: pools[1]: 3 appears twice"),
      ("{\"feeds\": [\"f\"], \"pools\": 3}", "lab.json: line 1: pools: must be an array, not a number"),
      (
        "{\"feeds\": [\"f\"], \"seeds\": 10000000}",
        "lab.json: line 1: seeds: must be a whole number from 1 to 1000000, not 10000000"
      ),
      (
        "{\"feeds\": [\"f\"], \"seeds\": [-1]}", "lab.json: line 1: seeds[0]: must be a whole number from 0"
      ),
      (
        "{\"feeds\": [\"f\"], \"seeds\": [1e99]}",
        "lab.json: line 1: seeds[0]: must be a whole number from 0"
      ),
      (
        "{\"feeds\": [\"f\"], \"swipes\": 1e7}",
        "lab.json: line 1: swipes: must be a whole number from 0 to 100000, not 1e7"
      ),
      (
        "{\"feeds\": [\"f\"], \"viewers\": [{\"dwell\": \"exp:1s\",\n\"back\": \"200%\"}]}",
        "lab.json: line 2: viewers[0].back: back: \"200%\" is not a share"
      ),
      (
        "{\"feeds\": [\"f\"], \"first_rung\": \"high\"}",
        "lab.json: line 1: first_rung: \"high\" is not a first rung"
      ),
      (
        "{\"feeds\": [\"f\"], \"bandwidth\": \"much\"}",
        "lab.json: line 1: bandwidth: \"much\" is not a bit rate"
      ),
      (
        "{\"feeds\": [\"f\"], \"tcp\": \"no\"}",
        "lab.json: line 1: tcp: must be true or false, not a string"
      ),
      (String(repeating: "[", count: 1000), "lab.json: line 1, column 65: nested deeper than the limit"),
      ("{\"feeds\": [\"\0\"]}", "lab.json: binary data, not text"),
    ])
  func fault(json: String, line: String) {
    let faults = faults(json)
    #expect(faults.count == 1, "\(faults)")
    #expect(faults.first?.hasPrefix(line) == true, "\(faults)")
  }

  @Test("All faults are told, and each is one of the file")
  func several() {
    let json = "{\"pools\": [0], \"policies\": [\"a\"], \"links\": 3, \"seeds\": \"x\"}"
    let error = #expect(throws: LabFailures.self) { try configuration(json) }
    #expect(error?.errors.count == 5)
    #expect(error?.errors.allSatisfy { $0.kind == .badManifest } == true)
  }

  @Test("Bytes that are no text")
  func bytes() {
    func reason(_ bytes: [UInt8]) -> String? {
      let error = #expect(throws: LabFailures.self) {
        try LabConfiguration(json: bytes, from: .file("lab.json"))
      }
      return error?.errors.first?.description
    }
    #expect(reason(Array("{\n\"a\": \"".utf8) + [0xff] + Array("\"}".utf8)) == "lab.json: line 2: not UTF-8")
    #expect(reason([0xff, 0xfe, 0x7b, 0]) == "lab.json: UTF-16; save it as UTF-8")
  }

  @Test("From the command line, a fault names the option")
  func options() {
    let json = "{\"feeds\": [\"f\"], \"pools\": [3, \"x\"], \"policies\": [\"most\"]}"
    let error = #expect(throws: LabFailures.self) {
      try LabConfiguration(json: Array(json.utf8), from: .options)
    }
    #expect(error?.errors.map(\.kind) == [.usage, .usage])
    #expect(
      error?.errors.first?.description == "--pools: must be a whole number, not a string",
      "\(error?.errors ?? [])")
    #expect(error?.errors.last?.description.hasPrefix("--policies: \"most\" is not a preload policy") == true)
  }
}

@Suite("What a lab's configuration names")
struct LabInputsTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    try write("feed.txt", "a.mp4\nb.mp4\n")
    try write(
      "curves.json", "[{\"url\": \"a.mp4\", \"duration\": 9, \"retention\": [1, 0.5]}, {\"url\": \"b.mp4\"}]")
    try write("rec/train/one", "0 1\n1 2\n")
    try write("rec/train/two", "0 2\n1 1\n")
    try write("rec/bus", "0 3\n1 4\n")
    try write("other/train/one", "0 5\n1 4\n")
  }

  private func write(_ name: String, _ text: String) throws {
    let url = folder.url.appending(path: name)
    try FileManager.default.createDirectory(
      at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try text.write(to: url, atomically: true, encoding: .utf8)
  }

  private func inputs(_ json: String) async throws -> LabInputs {
    let lab = try LabConfiguration(json: Array(json.utf8), from: .file(folder.path + "/lab.json"))
    return try await LabInputs(lab) { path in
      (try LocalText.bytes(path: path, limit: 1 << 20), .url(URL(filePath: path)))
    }
  }

  private func faults(_ json: String) async -> [String] {
    do {
      _ = try await inputs(json)
      return []
    } catch {
      return (error as? LabFailures)?.errors.map { $0.description.replacing(folder.path + "/", with: "") }
        ?? ["\(error)"]
    }
  }

  @Test("Paths are relative to the configuration; recordings are grouped by folder, and named apart")
  func links() async throws {
    let lab = try await inputs(
      "{\"feeds\": [\"feed.txt\"], \"links\": [\"rec\", \"other/train/one,scale=2\", \"lte\", \"lte,scale=2\"]}"
    )
    #expect(lab.links.map(\.name) == ["bus", "train/one", "train/two", "one", "lte", "lte,scale=2"])
    #expect(
      lab.links.map(\.group) == [
        "rec", "rec/train", "rec/train", "other/train,scale=2", "lte", "lte,scale=2",
      ])
    #expect(lab.links.allSatisfy { $0.spec.modelsTCP && $0.spec.modelsTLS && $0.spec.modelsDNS })
    let plain = try await inputs(
      "{\"feeds\": [\"feed.txt\"], \"links\": [\"lte,tls\"], \"tcp\": false, \"tls\": false, \"dns\": false}")
    #expect(plain.links.map(\.spec.modelsTCP) == [false])
    #expect(plain.links.map(\.spec.modelsTLS) == [true])
  }

  @Test("A fault of a file names that file, its line, and the field")
  func files() async throws {
    try write("bad", "0 1\n2 1\n1 1\n")
    try write("empty/README.md", "nothing")
    try write("rising.json", "[{\"url\": \"a\",\n \"retention\": [0.5, 1]}]")
    let all = await faults(
      """
      {"feeds": ["feed.txt", "none.txt", "rising.json"],
       "links": ["bad", "empty", "nothing"],
       "viewers": ["retention", "exp:x", "trace:none"],
       "devices": ["huge", "low", "low"]}
      """)
    let expected = [
      "lab.json: line 1: feeds[1]: none.txt: no such file",
      "lab.json: line 1: feeds[2]: rising.json: line 2: [0].retention[1]: is larger than the share before",
      "lab.json: line 2: links[0]: bad: line 3: the time 1 is not after that of the sample before",
      "lab.json: line 2: links[1]: empty/: the folder has no recordings",
      "lab.json: line 2: links[2]: \"nothing\" is not a link, and there is no such file",
      "lab.json: line 3: viewers[1]: \"exp:x\" is not a dwell time",
      "lab.json: line 3: viewers[2]: none: no such file",
      "lab.json: line 4: devices[0]: \"huge\" is not a device",
      "lab.json: line 4: devices[2]: the name \"low\" appears twice",
      "lab.json: line 3: viewers[0]: a.mp4: item 0 has no \"retention\"",
    ]
    #expect(all.count == expected.count, "\(all)")
    for (fault, words) in zip(all, expected) { #expect(fault.hasPrefix(words), "\(fault)") }
  }

  @Test("A viewer by retention needs it of each item of each feed")
  func retention() async throws {
    let faults = await faults("{\"feeds\": [\"curves.json\"], \"viewers\": [\"retention\"]}")
    #expect(faults.count == 1)
    #expect(faults.first?.contains("viewers[0]: b.mp4: item 1 has no \"retention\"") == true, "\(faults)")
  }

  @Test("More runs than the limit are refused before anything is made of them")
  func limit() async {
    let seeds = await faults("{\"feeds\": [\"feed.txt\"], \"seeds\": 1000000, \"pools\": [1, 2, 3]}")
    #expect(
      seeds == [
        "lab.json: the lab has 54000000 walks, and the limit is 1000000; leave out links, seeds or policies"
      ])
  }

  @Test("The fingerprint is that of the contents, wherever they are")
  func fingerprint() async throws {
    let json = "{\"feeds\": [\"feed.txt\"], \"links\": [\"rec/bus\"]}"
    let first = try await inputs(json).fingerprint
    #expect(first.count == 16)
    let second = try await inputs(json).fingerprint
    #expect(second == first)
    let other = try LabInputsTests()
    let elsewhere = try await other.inputs(json).fingerprint
    #expect(elsewhere == first)
    try write("rec/bus", "0 3\n1 5\n")
    let changed = try await inputs(json).fingerprint
    #expect(changed != first)
    for field in ["\"seeds\": 2", "\"tcp\": false", "\"bandwidth\": \"1Mbit\""] {
      let changed = try await other.inputs(json.replacing("}", with: ", \(field)}")).fingerprint
      #expect(changed != first, "\(field)")
    }
    try other.write("feed.txt", "a.mp4\nc.mp4\n")
    let grown = try await other.inputs(json).fingerprint
    #expect(grown != first)
  }
}
