import ReelCore
import ReelFFmpeg
import ReelPlayback

/// Collects what a page of `reel play` shows: samples, events, and the summary of a source.
///
/// Samples begin 200 ms apart. When there are more than the limit, every second one is dropped, and the distance
/// doubles.
final class PlayRecorder: Sendable {
  /// A moment of playback.
  struct Sample: Sendable, Hashable {
    /// Since the source was begun, in seconds.
    let time: Double
    /// Media ahead of the frame on show, in seconds.
    let buffered: Double
    /// The estimate of adaptation, in bits per second.
    let bandwidth: Double?
    /// The bit rate of the rung, in bits per second.
    let rungBitRate: Int?
  }

  /// What was collected.
  struct Recording: Sendable {
    var samples: [Sample] = []
    /// The first and the last events; those between are counted.
    var first: [PlayRecord] = []
    var last: [PlayRecord] = []
    var omittedCount = 0
    /// How late frames were shown, in milliseconds.
    var lateness: [Double] = []
    var summary: PlayRecordSummary?

    var events: [PlayRecord] { first + last }
  }

  static let sampleLimit = 1_200
  /// At each end.
  static let eventLimit = 400

  private struct State {
    var recording = Recording()
    var interval = 1
    var tick = 0
  }

  private let state = Locked(State())

  var recording: Recording { state.withLock { $0.recording } }

  func note(_ record: PlayRecord) {
    state.withLock { state in
      guard state.recording.first.count >= Self.eventLimit else {
        state.recording.first.append(record)
        return
      }
      state.recording.last.append(record)
      guard state.recording.last.count > Self.eventLimit else { return }
      state.recording.last.removeFirst()
      state.recording.omittedCount += 1
    }
  }

  /// A tick of 200 ms.
  func note(_ sample: Sample) {
    state.withLock { state in
      defer { state.tick += 1 }
      guard state.tick % state.interval == 0 else { return }
      state.recording.samples.append(sample)
      guard state.recording.samples.count > Self.sampleLimit else { return }
      state.recording.samples = state.recording.samples.enumerated().filter { $0.offset % 2 == 0 }.map(
        \.element)
      state.interval *= 2
    }
  }

  func note(lateness: [Duration]) {
    let values = lateness.map(\.milliseconds).sorted()
    state.withLock { $0.recording.lateness = values }
  }

  func note(_ summary: PlayRecordSummary) { state.withLock { $0.recording.summary = summary } }
}
