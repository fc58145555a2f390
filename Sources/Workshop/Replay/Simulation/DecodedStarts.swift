internal import ReelCore
internal import ReelFFmpeg

/// The frames that were decoded after starts, for simulations that decode nothing twice (`ModelledDecoders`).
///
/// The key of an entry is a hash of the codec parameters and of all packets that went into the decoder since its start, so
/// it does not matter where the packets came from. May be shared by simulations that run side by side: it changes what
/// they cost, not what they do.
package final class DecodedStarts: Sendable {
  /// What a step of a decoder has led to.
  struct Outcome: Sendable {
    /// The frames that came out, each with the place of its packet among those that wait.
    var frames: [(place: Int, pixels: SharedPixels)]
    var facts: DecoderFacts
  }

  private struct State {
    var outcomes: [Int: Outcome] = [:]
    var byteCount = 0
  }

  private let byteLimit: Int
  private let state = Locked(State())

  /// - Parameter byteLimit: The bytes of the frames that are kept. Beyond it all are dropped. 512 MiB by default.
  package init(byteLimit: Int = 512 << 20) { self.byteLimit = byteLimit }

  /// The bytes of the frames that are kept.
  package var byteCount: Int { state.withLock { $0.byteCount } }

  func outcome(of key: Int) -> Outcome? { state.withLock { $0.outcomes[key] } }

  func insert(_ outcome: Outcome, of key: Int) {
    // An entry without frames counts a little, so that there is a bound to those too.
    let byteCount = outcome.frames.reduce(512) { $0 + $1.pixels.frame.byteCount }
    // What is dropped is freed after the lock.
    let dropped = state.withLock { state in
      var dropped = State()
      if state.byteCount + byteCount > byteLimit { swap(&state, &dropped) }
      if state.outcomes.updateValue(outcome, forKey: key) == nil { state.byteCount += byteCount }
      return dropped
    }
    withExtendedLifetime(dropped) {}
  }
}

/// A frame that can stand in an array.
final class SharedPixels: Sendable {
  let frame: Frame

  init(_ frame: consuming Frame) { self.frame = frame }
}
