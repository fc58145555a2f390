internal import ReelCore
internal import ReelPlayback
internal import ReelReading
internal import Synchronization

/// When which frame came, since the last swipe.
final class FrameLog: Sendable {
  struct Entry: Sendable {
    let time: MediaTime
    let at: ContinuousClock.Instant
  }

  private let entries = Mutex<[Entry]>([])

  var all: [Entry] { entries.withLock { $0 } }

  /// An output that is to be the surface of a pool.
  func makeOutput() -> CallbackOutput {
    CallbackOutput { [self] frame in
      let entry = Entry(time: frame.time, at: .now)
      entries.withLock { $0.append(entry) }
    }
  }

  func clear() { entries.withLock { $0.removeAll() } }
}
