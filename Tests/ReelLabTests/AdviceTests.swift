@testable import ReelLab
import ReelModels
import ReelTestSupport
import Testing

@Suite("Advice")
struct AdviceTests {
  /// A lab whose waits and bytes depend on the policy.
  private func advice(
    _ name: String, _ figures: (String) -> (wait: Double, bytes: Double, rebuffering: Double)
  ) throws -> Advice {
    let model = try PlayerModel(argument: name)
    let policies = try Advice.policies(for: model)
    let slots = policies.map(\.playerCount).max() ?? 1
    var scene = LabScene(player: model.title, links: nil, settle: .milliseconds(250))
    var results: [LabResult] = []
    for policy in policies {
      let pool = LabPool(slotCount: slots, policy: policy.description)
      scene.preloads[pool] = try policy.variant ?? policy.model(players: slots).preloadWords
      if policy.variant != nil { scene.variants.insert(pool) }
      for seed in UInt64(1)...8 {
        let (wait, bytes, rebuffering) = figures(policy.description)
        results.append(
          .sample(
            policy.description, slots: slots, seed: seed,
            [
              "second_frame.mean": wait, "second_frame.p95": wait, "bytes.fetched": bytes,
              "rebuffering": rebuffering, "swipes": 10,
            ]))
      }
    }
    let summary = LabSummary(results, baseline: "none")
    return try #require(Advice(summary, scene, of: model, policies))
  }

  /// One item ahead is enough, and the short buffer saves bytes.
  private func usual(_ policy: String) -> (wait: Double, bytes: Double, rebuffering: Double) {
    let wait = policy == "none" ? 900.0 : policy.contains("lowest") ? 60 : 120
    let bytes: Double =
      switch policy {
      case "none": 10e6
      case "ahead:1,1s": 11e6
      case "ahead:1,3s, buffer of 10 s": 9e6
      default: 13e6
      }
    return (wait, bytes, 0)
  }

  @Test("The cheapest of the shortest waits, with the figures that speak for it")
  func choice() throws {
    let advice = try advice("hls.js", usual)
    #expect(advice.settings.map(\.name) == ["players", "preload", "first rung", "buffer"])
    #expect(advice.settings.map(\.value) == ["2", "1 s", "lowest", "10 s"])
    #expect(
      advice.settings[0].reasons.first
        == "preloading nothing waits 780 ms [780, 780] longer, for 1 MB less per 10 swipes")
    #expect(
      advice.settings[0].reasons.contains("a second item ahead waits the same, for 2 MB more per 10 swipes"))
    #expect(
      advice.settings[1].reasons.first
        == "preloading one item ahead (3 s) waits the same, for 2 MB more per 10 swipes")
    #expect(
      advice.settings[2].reasons == [
        "with ahead:1,3s: lowest rung first saves 60 ms [60, 60], for the same bytes"
      ])
    #expect(
      advice.settings[3].reasons == [
        "with ahead:1,3s: buffer of 10 s waits the same, for 4 MB less per 10 swipes, and stalls no more"
      ])
  }

  @Test(
    "In the player's own terms",
    arguments: [
      (
        "hls.js",
        ["const instances = 2;", "maxMaxBufferLength: 10,", "startLevel: 0,", "maxBufferLength: 1,"]
      ),
      (
        "video.js",
        [
          "const players = 2;", "videojs.Hls.GOAL_BUFFER_LENGTH = 10;", "preload: \"auto\"",
          "has no counterpart",
        ]
      ),
      ("chromium", ["const videos = 2;", "const preload = \"auto\";", "has no counterpart"]),
      (
        "media3",
        [
          "1 -> DefaultPreloadManager.PreloadStatus.specifiedRangeLoaded(1000L)",
          ".setBufferDurationsMs(10000, 10000, 1000, 2000)", "setInitialBitrateEstimate(",
        ]
      ),
      (
        "avplayer",
        ["let playerCount = 2", "preferredForwardBufferDuration = 10", "preferredPeakBitRate = 1 "]
      ),
      ("mpv", ["2 instances of mpv", "cache-secs=10", "hls-bitrate=min", "prefetch-playlist"]),
      (
        "playbin3",
        ["\"max-buffering-time\", 10000 * Gst.MSECOND", "\"start-bitrate\"", "\"buffer-duration\""]
      ),
    ])
  func code(name: String, parts: [String]) throws {
    let code = try advice(name, usual).code
    for part in parts { #expect(code.contains(part), "\(part) in:\n\(code)") }
    #expect(code.contains("preloading nothing waits 780 ms"))
    #expect(code.contains("not measured") == ["media3", "avplayer"].contains(name))
  }

  @Test("Nothing is preloaded where it gains nothing, and a buffer that stalls stays long")
  func nothing() throws {
    let advice = try advice("hls.js") { policy in
      (120, policy == "none" ? 10e6 : 13e6, policy.contains("buffer") ? 0.02 : 0)
    }
    #expect(advice.settings.map(\.value).prefix(2) == ["1", "0 s"])
    #expect(advice.settings[3].reasons.first?.hasSuffix(", and stalls more") == true)
    #expect(advice.code.contains("const instances = 1;") && !advice.code.contains("preloading = {"))
    #expect(advice.code.contains("startLevel: left out"))
  }

  @Test("A model of yours has no names of settings, and a lab without waits has no advice")
  func edges() throws {
    var model = try PlayerModel(argument: "hls.js")
    model.name = "ours"
    let policies = try [ModelledPreload(parsing: "none", of: model)]
    let scene = LabScene(player: "ours", links: nil, settle: .zero)
    let results = [LabResult.sample("none", slots: 1, ["second_frame.mean": 5, "second_frame.p95": 5])]
    let advice = try #require(Advice(LabSummary(results, baseline: nil), scene, of: model, policies))
    #expect(
      advice.code.contains("does not know what this player calls") && advice.code.contains("players: 1"))
    #expect(Advice(LabSummary([.sample("none", [:])], baseline: nil), scene, of: model, policies) == nil)
  }
}
