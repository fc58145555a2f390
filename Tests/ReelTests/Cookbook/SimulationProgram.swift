import Reel
import ReelSimulation

// A program of Docs/Cookbook.md, word for word.

/// Swipes through a feed on a simulated link. Returns the viewer's wait for each item, watching each for two seconds.
func simulatedWaits(in feed: Feed, over link: LinkSpec) async throws -> [Duration] {
  let simulation = SimulatedRuntime()
  let waits = try await simulation.run {
    var configuration = PoolConfiguration()
    configuration.enter(simulation)
    let fetcher = ThrottledFetcher(TransportFetcher(), link: link, in: simulation)
    let pool = PlayerPool(feed: feed, fetcher: fetcher, configuration: configuration)
    defer { pool.close() }
    var waits: [Duration] = []
    for index in feed.items.indices {
      waits.append(try await pool.show(index).firstFrame().duration.value)
      try await simulation.sleep(for: .seconds(2))
    }
    return waits
  }
  await simulation.runToRest()  // The pool ends.
  return waits
}
