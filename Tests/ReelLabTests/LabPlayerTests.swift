import ReelCore
import ReelLab
import ReelModels
import ReelTestSupport
import Testing

@Suite("Labs with a modelled player")
struct LabPlayerTests {
  private func lab(_ fields: String) throws -> LabConfiguration {
    try LabConfiguration(json: Array("{\"feeds\": [\"a.json\"], \(fields)}".utf8), path: "lab.json")
  }

  @Test("A player brings its own policies, unless the lab names some")
  func policies() throws {
    let lab = try lab("\"player\": \"hls.js\"")
    #expect(lab.player?.name == "hls.js")
    #expect(lab.policies.map(\.description) == ["none", "ahead:1", "ahead:2"])
    let own = try self.lab("\"player\": \"hls.js\", \"policies\": [\"none\", \"ahead:2,1s\"]")
    #expect(own.policies.map(\.description) == ["none", "ahead:2,1s"])
    #expect(try self.lab("\"player\": \"reel\"").player == nil)
  }

  @Test("A player has as many players as its policies need, unless the lab states them")
  func players() throws {
    let policies = "\"player\": \"hls.js\", \"policies\": [\"none\", \"ahead:4,1s\"]"
    #expect(try lab(policies).slotCounts == [5])
    #expect(try lab("\(policies), \"pools\": [3]").slotCounts == [3])
    #expect(try lab("\"policies\": [\"none\"]").slotCounts == [3])
  }

  @Test("For advice, a lab walks its own policies, or others, with several seeds, and needs a player")
  func advice() throws {
    var usual = try lab("\"player\": \"hls.js\"")
    try usual.walkForAdvice()
    #expect(usual.seeds.count == 10 && usual.slotCounts == [4])
    #expect(usual.policies.map(\.description).contains("ahead:1,3s, lowest rung first"))
    var own = try lab("\"player\": \"hls.js\", \"policies\": [\"none\"], \"seeds\": [7]")
    try own.walkForAdvice()
    #expect(own.policies.map(\.description) == ["none"] && own.seeds == [7])
    var pool = try lab("\"policies\": [\"none\"]")
    let error = #expect(throws: ReelError.self) { try pool.walkForAdvice() }
    #expect(error?.description.contains("--advise needs a modelled player") == true)
  }

  @Test(
    "What is wrong has its path",
    arguments: [
      ("\"player\": \"hsl.js\"", "player: \"hsl.js\" is not a player"),
      (
        "\"player\": \"hls.js\", \"policies\": [\"none\", \"adaptive\"]",
        "policies[1]: hls.js can't preload by"
      ),
      ("\"player\": 3", "player: must be a string"),
    ])
  func wrong(fields: String, reason: String) {
    let error = #expect(throws: ReelError.self) { try lab(fields) }
    #expect(error?.kind == .badManifest && error?.location == "lab.json")
    #expect(error?.reason.hasPrefix(reason) == true, "\(String(describing: error))")
  }
}
