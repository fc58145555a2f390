import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelPlayback

/// Measures what decoding takes on this machine, with one thread.
struct DecodeCalibration: Sendable {
  /// The frames that are decoded of each source.
  static let frameCount = 150

  private let logger: Logger

  init(logger: Logger) { self.logger = logger }

  /// Decodes the first frames of a source as fast as it goes.
  ///
  /// - Parameter openings: How often a decoder is opened; from the second time on for the first frame alone.
  /// - Throws: The `ReelError` that the source failed with before it had shown a frame; `CancellationError`.
  func measure(
    _ source: MediaSource, headers: [HeaderField] = [],
    loading: LoadingConfiguration = LoadingConfiguration(),
    fetcher: any Fetching, openings: Int
  ) async throws -> DecodeMeasurement {
    let gate = MeasuringGate()
    for number in 0..<max(openings, 1) {
      try Task.checkCancellation()
      let limit = number == 0 ? Self.frameCount : 1
      try await decode(source, headers, loading, gate, upTo: limit, fetcher)
      // What follows the first frame is no part of opening.
      if number == 0 { gate.measuresOpeningsOnly = true }
    }
    return gate.measurement
  }

  // MARK: - Private

  private func decode(
    _ source: MediaSource, _ headers: [HeaderField], _ loading: LoadingConfiguration, _ gate: MeasuringGate,
    upTo limit: Int, _ fetcher: any Fetching
  ) async throws {
    var configuration = PlayerConfiguration()
    configuration.loading = loading
    configuration.loading.decoderThreads = 1
    let player = Player(fetcher: fetcher, configuration: configuration, gate: gate, logger: logger)
    player.setMuted(true)
    player.setRate(.infinity)
    let item = PlayerItem(source, headers: headers)
    let events = item.events
    let count = Locked(0)
    try player.attach(
      CallbackOutput { [weak player] _ in
        let shown = count.withLock { count in
          count += 1
          return count
        }
        if shown >= limit { player?.pause() }
      })
    player.replaceCurrentItem(with: item)
    let statuses = player.timeControlStatus.values
    let failure = await withTaskGroup(of: ReelError?.self) { group in
      group.addTask {
        for await event in events {
          switch event {
          case .playedToEnd: return nil
          case .failed(let error): return error
          default: break
          }
        }
        return nil
      }
      group.addTask {
        for await status in statuses where status == .paused && count.withLock({ $0 }) >= limit { return nil }
        return nil
      }
      let failure = await group.next() ?? nil
      group.cancelAll()
      return failure
    }
    await player.stopAndWait()
    try Task.checkCancellation()
    if let failure, count.withLock({ $0 }) == 0 { throw failure }
  }
}

/// Lets every call through, and notes how long it takes. For one decoder at a time.
private final class MeasuringGate: DecodingGate {
  private struct State {
    var began = Duration.zero
    var measurement = DecodeMeasurement()
    var measuresOpeningsOnly = false
    /// The decoder that the last packet went into.
    var last: (codec: VideoCodec?, pixelCount: Int)?
  }

  private let clock = SystemMonotonicClock()
  private let state = Locked(State())

  var measurement: DecodeMeasurement { state.withLock { $0.measurement } }
  var measuresOpeningsOnly: Bool {
    get { state.withLock { $0.measuresOpeningsOnly } }
    set { state.withLock { $0.measuresOpeningsOnly = newValue } }
  }
  var gatesOpening: Bool { true }

  func acquire() { state.withLock { $0.began = clock.now } }

  func release() { release(after: .receiving) }

  func release(after work: DecodingWork) {
    let now = clock.now
    state.withLock { state in
      let duration = now - state.began
      if case .opening = work { return state.measurement.note(opening: duration) }
      guard !state.measuresOpeningsOnly else { return }
      if case .packet(let codec, let pixelCount) = work { state.last = (codec, pixelCount) }
      guard let last = state.last else { return }
      state.measurement.note(
        codec: last.codec, pixelCount: last.pixelCount, frameCount: work.isPacket ? 1 : 0, duration: duration)
    }
  }
}
