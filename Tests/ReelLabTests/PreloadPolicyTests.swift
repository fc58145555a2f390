import ReelCore
import ReelPlayback
import ReelPool
import ReelLab
import Testing

@Suite("Preload policies")
struct PreloadPolicyTests {
  private static func context(
    _ direction: Int = 1, rank: Int = 0, planned: Int = 0, costs: StageCosts = .init()
  )
    -> PreloadContext
  {
    PreloadContext(
      direction: direction, slotCount: 5, itemCount: 100, currentIndex: 50, rank: rank,
      plannedByteCount: planned,
      costs: costs)
  }

  private static func stages(_ policy: some PreloadPolicy, _ direction: Int) -> [PreloadStage] {
    (-3...3).filter { $0 != 0 }.map { policy.target(at: $0, in: context(direction)).stage }
  }

  @Test("Neighbours of the built-in policies")
  func neighbours() {
    let (no, yes) = (PreloadStage.notLoaded, PreloadStage.buffered)
    #expect(Self.stages(AdjacentPreload(), 1) == [no, no, yes, yes, no, no])
    #expect(Self.stages(AheadPreload(2), 1) == [no, no, no, yes, yes, no])
    #expect(Self.stages(AheadPreload(2), -1) == [no, yes, yes, no, no, no])
    #expect(Self.stages(AheadPreload(-1), 1) == [no, no, no, no, no, no])
    #expect(Self.stages(Media3Preload(), -1) == [yes, yes, yes, yes, yes, yes])
    #expect(Media3Preload().target(at: 1, in: Self.context()).bufferDuration == .seconds(1))
    // Without a cache it counts as not loaded.
    #expect(
      Media3Preload().target(at: 4, in: Self.context())
        == PreloadTarget(stage: .onDisk, bufferDuration: .seconds(5)))
    #expect(Self.stages(NoPreload(), 1) == [no, no, no, no, no, no])
  }

  @Test("The decoder stays open for the next item in the direction of travel alone")
  func warmDecoder() {
    for policy in [AdjacentPreload(isNextDecoderWarm: true), AheadPreload(3, isNextDecoderWarm: true)]
      as [any PreloadPolicy]
    {
      for direction in [-1, 1] {
        let warm = (-3...3).filter {
          $0 != 0 && policy.target(at: $0, in: Self.context(direction)).isDecoderWarm
        }
        #expect(warm == [direction])
      }
    }
    #expect(!AdjacentPreload().target(at: 1, in: Self.context()).isDecoderWarm)
    #expect(!AheadPreload(1).target(at: 1, in: Self.context()).isDecoderWarm)
  }

  @Test(
    "Written forms",
    arguments: [
      ("adjacent", "adjacent"), (" Adjacent ", "adjacent"), ("none", "none"), ("ahead:2", "ahead:2"),
      ("ahead(2)", "ahead:2"), ("AHEAD( 12 )", "ahead:12"),
      ("budget:64MB", "budget:64MB"), ("budget(1.5kB)", "budget:1500B"),
      ("budget: 2 GiB", "budget:2147483648B"), ("Media3", "media3"),
      ("ahead:2,1s", "ahead:2,1s"), ("AHEAD(2, 500ms)", "ahead:2,500ms"), ("adjacent: 1S", "adjacent:1s"),
    ])
  func parsing(text: String, canonical: String) throws {
    let policy = try PreloadPolicies.parse(text)
    #expect(policy.description == canonical)
    // What is printed can be read again.
    #expect(try PreloadPolicies.parse(canonical).description == canonical)
  }

  @Test("Policies with another amount of media of each item")
  func depth() throws {
    let policy = try PreloadPolicies.parse("ahead:2,1s")
    let target = policy.target(at: 2, in: Self.context())
    #expect(target.stage == .buffered && target.bufferDuration == .seconds(1))
    #expect(policy.target(at: 3, in: Self.context()) == .notLoaded)
    let frames = try PreloadPolicies.parse("adjacent:0s").target(at: -1, in: Self.context())
    #expect(frames.stage == .firstFrame)
  }

  @Test(
    "What is no policy",
    arguments: [
      "", "next", "ahead", "ahead:", "ahead:0", "ahead:-1", "ahead:+1", "ahead:2.5",
      "ahead:99999999999999999999",
      "ahead(2", "ahead(2)x", "adjacent:2", "ahead:2,1", "ahead:2,-1s", "ahead:2,1s,2s", "ahead:1s",
      "adjacent:2h", "adjacent:", "none:1s", "media3:1s", "media3:x", "none()", "none:1", "budget", "budget:",
      "budget:0B", "budget:64",
      "budget:64Mbit", "budget:fast", "budget:9999999GB", ":", "(",
    ])
  func malformed(text: String) {
    let error = #expect(throws: ReelError.self) { try PreloadPolicies.parse(text) }
    #expect(error?.kind == .usage)
  }

  @Test(
    "A removed policy says what to use instead",
    arguments: [
      ("pdas", "adaptive"), ("Dashlet", "adaptive"), ("bytes:2", "budget:SIZE"), ("media3(guide)", "media3"),
    ])
  func removed(text: String, instead: String) {
    let error = #expect(throws: ReelError.self) { try PreloadPolicies.parse(text) }
    #expect(error?.reason == "the preload policy \"\(text)\" was removed")
    #expect(error?.advice?.contains(instead) == true)
  }
}
