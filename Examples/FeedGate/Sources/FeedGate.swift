import Foundation
import Reel
import ReelLab
import ReelSimulation

/// Walks a feed in simulated time with several seeds, and fails if an assertion does not hold.
@main
struct FeedGate {
  static let seeds: ClosedRange<UInt64> = 1...3
  static let slotCount = 3

  static func main() async {
    do {
      var arguments = Array(CommandLine.arguments.dropFirst())
      var junit: String?
      if let place = arguments.firstIndex(of: "--junit"), place + 1 < arguments.count {
        junit = arguments[place + 1]
        arguments.removeSubrange(place...place + 1)
      }
      guard let path = arguments.first, arguments.count > 1 else {
        throw ReelError(
          .usage, "usage: FeedGate FEED [--junit FILE] ASSERTION...",
          advice: "for instance 'second_frame.p95<400ms'")
      }
      let assertions = try arguments.dropFirst().map { try WalkAssertion(parsing: $0) }
      let feed = try FeedFile(path: path).feeds[0]

      var outcomes: [(name: String, outcome: WalkAssertion.Outcome)] = []
      for seed in seeds {
        let report = try await walk(feed, seed: seed)
        outcomes += assertions.map { ("seed \(seed)", $0.evaluate(report)) }
      }
      for (name, outcome) in outcomes { print("\(name): \(outcome)") }
      if let junit { try Data(xml(outcomes, of: feed).utf8).write(to: URL(fileURLWithPath: junit)) }
      if outcomes.contains(where: { !$0.outcome.isMet }) { exit(1) }
    } catch {
      FileHandle.standardError.write(Data("FeedGate: \(error)\n".utf8))
      exit(64)
    }
  }

  /// 20 swipes over LTE. The same seed gives the same report on every machine.
  static func walk(_ feed: Feed, seed: UInt64) async throws -> WalkReport {
    let simulation = SimulatedRuntime()
    var configuration = PoolConfiguration()
    configuration.slotCount = slotCount
    configuration.policy = AdaptivePreload()
    configuration.enter(simulation)

    let (count, dwell) = (feed.items.count, DwellSpec.exponential(mean: .seconds(3)))
    let plan = try WalkPlan(itemCount: count, swipeCount: 20, dwell: dwell, seed: seed)
    let settings = WalkSettings(
      feed: feed.name, itemCount: count, slotCount: slotCount, policy: "adaptive", link: "lte",
      dwell: "\(dwell)",
      seed: seed, isVirtual: true)
    let replay = FeedReplay(
      feed, plan: plan, settings: settings, label: "seed \(seed)", configuration: configuration,
      fetcher: ThrottledFetcher(TransportFetcher(), link: .lte, in: simulation))
    return try await replay.run(in: simulation)
  }

  /// The outcomes as JUnit XML, which CI systems show.
  private static func xml(_ outcomes: [(name: String, outcome: WalkAssertion.Outcome)], of feed: Feed)
    -> String
  {
    let failures = outcomes.count { !$0.outcome.isMet }
    let cases = outcomes.map { name, outcome in
      let head = "  <testcase classname=\"\(escaped(name))\" name=\"\(escaped(outcome.assertion))\""
      return outcome.isMet
        ? "\(head)/>" : "\(head)><failure message=\"\(escaped("\(outcome)"))\"/></testcase>"
    }
    return """
      <?xml version="1.0" encoding="UTF-8"?>
      <testsuite name="\(escaped(feed.name))" tests="\(outcomes.count)" failures="\(failures)">
      \(cases.joined(separator: "\n"))
      </testsuite>

      """
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
  }
}
