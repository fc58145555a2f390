import Foundation
import ReelCore
import ReelPool
import ReelSimulation
import ReelLab
import ReelSources
import ReelTestSupport
import Testing

@Suite("Configurations of a lab")
struct LabConfigurationTests {
  private func configuration(_ json: String) throws -> LabConfiguration {
    try LabConfiguration(json: Array(json.utf8), path: "lab.json")
  }

  @Test("What a configuration does not state")
  func defaults() throws {
    let lab = try configuration("{\"feeds\": [\"feed.json\"]}")
    #expect(lab.feeds.map(\.file) == ["feed.json"])
    #expect(lab.feeds.map(\.feed) == [nil])
    #expect(lab.links == ["3g", "lte", "wifi"])
    #expect(lab.dwells.map(\.text) == ["exp:5s"])
    #expect(lab.devices == ["mid"])
    #expect(lab.slotCounts == [3])
    #expect(lab.policies.map(\.description) == LabConfiguration.defaultPolicies)
    #expect(lab.seeds == [1])
    #expect(lab.swipeCount == nil)
    #expect(lab.settle == .zero)
    #expect(lab.bandwidth == nil)
    #expect(lab.firstRung == .adapted)
    #expect(lab.linkFeatures == .all)
  }

  @Test("All that a configuration can state")
  func everything() throws {
    let lab = try configuration(
      """
      {
        "feeds": [{"file": "a.json", "feed": "following", "name": "f"}, "https://example.com/b"],
        "links": ["lte", "x/y,scale=2"], "tcp": false, "tls": false, "dns": true,
        "dwells": ["retention", {"name": "v", "dwell": "exp:6s", "back": "10%", "bursts": "0%"}],
        "devices": ["low", "high"], "pools": [3, 5], "policies": ["ahead:2", "none"],
        "seeds": [18446744073709551615, 0], "swipes": 40, "bandwidth": "2Mbit", "max_height": 720,
        "first_rung": "auto", "settle": "250ms"
      }
      """)
    #expect(lab.feeds.map(\.feed) == ["following", nil])
    #expect(lab.dwells.map(\.text) == ["retention", "exp:6s,back=10%,bursts=0%"])
    #expect(lab.dwells.map(\.name) == [nil, "v"])
    #expect(lab.slotCounts == [3, 5])
    #expect(lab.policies.map(\.description) == ["ahead:2", "none"])
    #expect(lab.seeds == [.max, 0])
    #expect(lab.swipeCount == 40)
    #expect(lab.bandwidth == 2_000_000)
    #expect(lab.maximumHeight == 720)
    #expect(lab.firstRung == .auto)
    #expect(lab.settle == .milliseconds(250))
    #expect(lab.linkFeatures == .dns)
    #expect(try configuration("{\"feeds\": [\"f\"], \"seeds\": 3}").seeds == [1, 2, 3])
  }

  @Test(
    "A fault names the file and the coding path",
    arguments: [
      ("", "lab.json: "),
      ("[]", "lab.json: must be an object"),
      ("{}", "lab.json: feeds: the field is missing"),
      ("{\"feeds\": []}", "lab.json: feeds: must have at least one element"),
      ("{\"feeds\": \"f\"}", "lab.json: feeds: must be an array"),
      ("{\"feeds\": [7]}", "lab.json: feeds[0]: must be an object"),
      ("{\"feeds\": [{\"name\": \"a\"}]}", "lab.json: feeds[0].file: the field is missing"),
      ("{\"feeds\": [{\"file\": \"f\",\n\"x\": 1}]}", "lab.json: feeds[0].x: unknown field"),
      ("{\"feeds\": [\"f\"],\n\"dwell\": []}", "lab.json: dwell: unknown field"),
      ("{\"feeds\": [\"f\"],\n\"viewers\": []}", "lab.json: viewers: removed field; use dwells"),
      ("{\"feeds\": [\"f\"], \"flicks\": \"5%\"}", "lab.json: flicks: removed field; use trace:FILE"),
      (
        "{\"feeds\": [\"f\"], \"dwells\": [{\"dwell\": \"exp:5s\", \"flicks\": \"5%\"}]}",
        "lab.json: dwells[0].flicks: removed field; use trace:FILE"
      ),
      (
        "{\"feeds\": [\"f\"],\n\"policies\": [\"none\",\n\"most\"]}",
        "lab.json: policies[1]: \"most\" is not a preload policy"
      ),
      (
        "{\"feeds\": [\"f\"], \"policies\": [\"ahead:2\", \"ahead(2)\"]}",
        "lab.json: policies[1]: ahead:2 appears twice"
      ),
      (
        "{\"feeds\": [\"f\"], \"pools\": [0]}",
        "lab.json: pools[0]: must be a whole number from 1 to 1000, not 0"
      ),
      ("{\"feeds\": [\"f\"], \"pools\": [3, 3]}", "lab.json: pools[1]: 3 appears twice"),
      ("{\"feeds\": [\"f\"], \"pools\": 3}", "lab.json: pools: must be an array"),
      ("{\"feeds\": [\"f\"], \"pools\": [3, \"x\"]}", "lab.json: pools[1]: must be a whole number"),
      (
        "{\"feeds\": [\"f\"], \"seeds\": 10000000}",
        "lab.json: seeds: the number of seeds must be from 1 to 1000000, not 10000000"
      ),
      ("{\"feeds\": [\"f\"], \"seeds\": [-1]}", "lab.json: seeds: a number is out of range"),
      ("{\"feeds\": [\"f\"], \"seeds\": [1e99]}", "lab.json: seeds: a number is out of range"),
      (
        "{\"feeds\": [\"f\"], \"swipes\": 1e7}",
        "lab.json: swipes: must be a whole number from 0 to 100000, not 10000000"
      ),
      (
        "{\"feeds\": [\"f\"], \"first_rung\": \"high\"}",
        "lab.json: first_rung: \"high\" is not a first rung"
      ),
      ("{\"feeds\": [\"f\"], \"bandwidth\": \"much\"}", "lab.json: bandwidth: \"much\" is not a bit rate"),
      (
        "{\"feeds\": [\"f\"], \"settle\": \"250\"}",
        "lab.json: settle: \"250\" is not a time from 0 to 10 s with a unit"
      ),
      ("{\"feeds\": [\"f\"], \"settle\": 250}", "lab.json: settle: must be a string"),
      ("{\"feeds\": [\"f\"], \"tcp\": \"no\"}", "lab.json: tcp: must be true or false"),
      (String(repeating: "[", count: 1000), "lab.json: "),
      ("{\"feeds\": [\"\0\"]}", "lab.json: "),
    ])
  func fault(json: String, line: String) {
    let error = #expect(throws: ReelError.self) { try configuration(json) }
    #expect(error?.kind == .badManifest)
    #expect(error?.description.hasPrefix(line) == true, "\(String(describing: error))")
  }

  @Test("Bytes that are no text")
  func bytes() {
    for bytes in [Array("{\n\"a\": \"".utf8) + [0xff] + Array("\"}".utf8), [0xff, 0xfe, 0x7b, 0]] {
      #expect(throws: ReelError.self) { try LabConfiguration(json: bytes, path: "lab.json") }
    }
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
    let lab = try LabConfiguration(json: Array(json.utf8), path: folder.path + "/lab.json")
    return try await LabInputs(lab) { path in
      (try LocalText.bytes(path: path, limit: 1 << 20), .url(URL(filePath: path)))
    }
  }

  private func fault(_ json: String) async -> String {
    let error = await #expect(throws: ReelError.self) { try await inputs(json) }
    return error?.description.replacing(folder.path + "/", with: "") ?? ""
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
    #expect(lab.links.allSatisfy { $0.spec.features == .all })
    let plain = try await inputs(
      "{\"feeds\": [\"feed.txt\"], \"links\": [\"lte,tls\"], \"tcp\": false, \"tls\": false, \"dns\": false}")
    #expect(plain.links.map(\.spec.features) == [.tls])
    let ideal = try await inputs(
      "{\"feeds\": [\"feed.txt\"], \"links\": [\"lte,ideal\", \"lte,dns\", \"rec/bus,ideal,tcp\"]}")
    #expect(ideal.links.map(\.spec.features) == [[], .all, .tcp])
  }

  @Test("A fault of a file names that file, its line, and the coding path")
  func files() async throws {
    try write("bad", "0 1\n2 1\n1 1\n")
    try write("empty/README.md", "nothing")
    try write("rising.json", "[{\"url\": \"a\",\n \"retention\": [0.5, 1]}]")
    let expected = [
      ("\"feeds\": [\"feed.txt\", \"none.txt\"]", "feeds[1]: none.txt: no such file"),
      (
        "\"feeds\": [\"rising.json\"]",
        "feeds[0]: rising.json: line 2: [0].retention[1]: is larger than the share before"
      ),
      ("\"links\": [\"bad\"]", "links[0]: bad: line 3: the time 1 is not after that of the sample before"),
      ("\"links\": [\"lte\", \"empty\"]", "links[1]: empty/: the folder has no recordings"),
      ("\"links\": [\"nothing\"]", "links[0]: \"nothing\" is not a link, and there is no such file"),
      ("\"links\": [\"lte\", \"lte\"]", "links[1]: the link \"lte\" appears twice"),
      ("\"dwells\": [\"exp:x\"]", "dwells[0]: \"exp:x\" is not a dwell time"),
      (
        "\"dwells\": [{\"dwell\": \"exp:1s\", \"back\": \"200%\"}]",
        "dwells[0]: back: \"200%\" is not a share"
      ),
      ("\"dwells\": [\"exp:1s\", \"trace:none\"]", "dwells[1]: none: no such file"),
      ("\"devices\": [\"huge\"]", "devices[0]: \"huge\" is not a device"),
      ("\"devices\": [\"low\", \"low\"]", "devices[1]: the name \"low\" appears twice"),
      ("\"dwells\": [\"retention\"]", "dwells[0]: a.mp4: item 0 has no \"retention\""),
    ]
    for (field, words) in expected {
      let feeds = field.contains("feeds") ? "" : "\"feeds\": [\"feed.txt\"], "
      let fault = await fault("{\(feeds)\(field)}")
      #expect(fault.hasPrefix("lab.json: \(words)"), "\(fault)")
    }
  }

  @Test("Dwell times by retention need it of each item of each feed")
  func retention() async throws {
    let fault = await fault("{\"feeds\": [\"curves.json\"], \"dwells\": [\"retention\"]}")
    #expect(fault.contains("dwells[0]: b.mp4: item 1 has no \"retention\""), "\(fault)")
  }

  @Test("More runs than the limit are refused before anything is made of them")
  func limit() async {
    let seeds = await fault("{\"feeds\": [\"feed.txt\"], \"seeds\": 1000000, \"pools\": [1, 2, 3]}")
    #expect(
      seeds
        == "lab.json: the lab has 36000000 walks, and the limit is 1000000; leave out links, seeds or policies"
    )
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
