internal import ReelCore
internal import ReelPlayback
internal import ReelPool
internal import ReelTransport

/// Loads one neighbour of a pool's paused item, and then more of them, for someone who reads this process's memory.
enum Parking {
  /// Loads all that follow the current item to 3 s of media.
  private struct Everything: PreloadPolicy {
    let isWarm: Bool
    var description: String { "everything" }

    func target(at distance: Int, in context: PreloadContext) -> PreloadTarget { isWarm ? .current : .buffered }
  }

  /// Says `ready N` with one and with all neighbours, and waits for a line of standard input each time.
  static func park(_ urls: [String], count: Int, isWarm: Bool) async throws {
    var configuration = PoolConfiguration()
    configuration.slotCount = count + 1
    configuration.policy = Everything(isWarm: isWarm)
    let pool = PlayerPool(fetcher: TransportFetcher(), configuration: configuration)
    pool.pause()
    for neighbours in [1, count] {
      let playlist = try Walker.playlist("parked", urls, count: neighbours + 1)
      pool.update(playlist, currentIndex: 0)
      let isReady = try await wait {
        pool.readiness.value.count { ($0.index ?? 0) > 0 && $0.stage >= .buffered } == neighbours
      }
      guard isReady else { throw Walker.Failure.timeOut }
      try await Task.sleep(for: .seconds(3))
      let parked = pool.readiness.value.filter { ($0.index ?? 0) > 0 }
      let items = Set(parked.compactMap(\.item))
      let packets = pool.memory.entries.filter { $0.item.map(items.contains) ?? false }
        .reduce(0) { $0 + $1.account[.packets] }
      report([
        "ready": neighbours,
        "buffered_s": milliseconds(parked.map(\.bufferedDuration).min() ?? .zero) / 1e3,
        "packets": packets / neighbours,
      ])
      _ = readLine()
    }
    pool.close()
  }
}
