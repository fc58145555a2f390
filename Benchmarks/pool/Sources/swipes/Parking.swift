internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback
internal import ReelTransport

/// Opens player after player, each parked behind its first frame with 3 s of media, for someone who reads this
/// process's memory.
enum Parking {
  /// Says `ready N` after the first and the last, and waits for a line of standard input each time.
  static func park(_ urls: [String], count: Int, isWarm: Bool) async throws {
    let fetcher = TransportFetcher()
    var configuration = PlayerConfiguration()
    // As the pool has them.
    configuration.ringFrameCapacity = 4
    var players: [(player: Player, account: MemoryAccount)] = []
    for number in 0..<count {
      let account = try MemoryAccount()
      let player = Player(fetcher: fetcher, configuration: configuration, account: account)
      player.preloadTarget = isWarm ? .current : .buffered
      let item = PlayerItem(try MediaSource(argument: urls[number % urls.count]))
      player.replaceCurrentItem(with: item)
      players.append((player, account))
      guard try await wait(until: { item.preloadStage.value >= .buffered }) else {
        throw Walker.Failure.timeOut
      }
      guard number == 0 || number == count - 1 else { continue }
      try await SystemMonotonicClock().sleep(for: .seconds(3))
      let held = players.map { $0.player.statistics }
      report([
        "ready": number + 1,
        "buffered_s": milliseconds(held.map(\.bufferedDuration).min() ?? .zero) / 1e3,
        "packets": held.reduce(0) { $0 + $1.bufferByteCount } / held.count,
      ])
      _ = readLine()
    }
    for (player, _) in players { player.stop() }
  }
}
