import Foundation
import ReelCore
import ReelPlayback
import ReelTestSupport
import Testing

/// How far a player has come with an item of two rungs and a sound of its own, when something happens to it.
enum Moment: String, CaseIterable {
  case waitsForManifest
  case waitsForPlaylist
  case waitsForMedia
  case waitsForSound
  case hasFirstFrame
  case plays
  case isPaused
  case seeksBehindBuffer
  case isStalled
  case waitsForRetry
  case hasEnded
  case playsAgain

  static let path = "hls-fmp4/master.m3u8"

  /// The item's frames: three segments of 30.
  static func frames() throws -> [Shown] {
    try StressClip(path, golden: "hls-fmp4-high", clock: .fromZero).expected
  }

  /// What is held back until the network is whole again.
  private var held: String? {
    switch self {
    case .waitsForManifest: "master.m3u8"
    case .waitsForPlaylist: "high/index.m3u8"
    case .waitsForMedia: "high/segment-0.m4s"
    case .waitsForSound: "audio/index.m3u8"
    case .isStalled: "segment-1.m4s"
    case .seeksBehindBuffer: "high/segment-2.m4s"
    default: nil
    }
  }

  /// A player at this moment. Nothing goes on until `heal()`.
  func stage(configure: (inout PlayerConfiguration) -> Void = { _ in }) async throws -> Stage {
    let held = held
    let network = Network { path in held.map(path.hasSuffix) ?? false }
    let stage = try Stage(network: network) {
      $0.retryPolicy = ItemRetryPolicy(attempts: 3, baseDelay: .seconds(4), maximumDelay: .seconds(4))
      configure(&$0)
    }
    let player = stage.player
    let item = try stage.load(Self.path)
    switch self {
    case .waitsForManifest, .waitsForPlaylist, .waitsForMedia:
      player.play()
      await stage.run(for: .seconds(1))
      #expect(stage.shown.isEmpty)
    case .waitsForSound:
      player.play()
      await stage.run(for: .seconds(1))
      #expect(stage.shown.count == 1)
    case .hasFirstFrame:
      await stage.run(for: .seconds(1))
      #expect(stage.shown.count == 1)
    case .plays, .isPaused:
      player.play()
      try await stage.run(untilShown: 10)
      if self == .isPaused { player.pause() }
    case .seeksBehindBuffer:
      item.preferredForwardBufferDuration = .milliseconds(600)
      player.play()
      try await stage.run(untilShown: 10)
      _ = stage.seek(to: MediaTime(seconds: 2.5))
      await stage.run(for: .seconds(1))
      #expect(stage.status == .waitingToPlayAtSpecifiedRate(.evaluatingBufferingRate))
    case .isStalled:
      player.play()
      try await stage.run {
        player.timeControlStatus.value == .waitingToPlayAtSpecifiedRate(.toMinimizeStalls)
      }
    case .waitsForRetry:
      network.lose()
      player.play()
      await stage.run(for: .seconds(1))
      #expect(stage.eventNames == ["retry"])
    case .hasEnded:
      player.play()
      try await stage.playsOut()
    case .playsAgain:
      player.actionAtItemEnd = .loop
      player.play()
      try await stage.run(untilShown: 100)
    }
    return stage
  }
}

/// The fixtures behind a connection that can be lost, and come back.
final class Network: Fetching {
  let fixtures: FixtureFetcher
  private let isDown = Locked(false)

  /// - Parameter isHeld: Whether a path is not answered until the network is whole again.
  init(clock: (any MonotonicClock)? = nil, isHeld: @escaping @Sendable (String) -> Bool = { _ in false }) {
    fixtures = FixtureFetcher(chunkByteCount: 4 << 10, clock: clock) { request, _ in
      isHeld(request.url.path) ? .hold : .none
    }
  }

  /// Breaks all transfers, and refuses all requests.
  func lose() {
    isDown.withLock { $0 = true }
    fixtures.release()
  }

  func heal() {
    isDown.withLock { $0 = false }
    fixtures.release()
  }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    try check()
    var response = try await fixtures.fetch(request)
    try check()
    let chunks = response.body
    response.body = FetchBody { [self] in
      try check()
      var iterator = chunks.makeAsyncIterator()
      return try await iterator.next()
    }
    return response
  }

  private func check() throws {
    if isDown.withLock({ $0 }) { throw ReelError(.network, "no connection") }
  }
}
