internal import Foundation
internal import ReelCore
public import ReelFFmpeg
package import ReelPlayback
internal import Synchronization

/// Permits to decode, as many as there are cores, given to who has the best rank, and of these to who came first.
///
/// Decoders reach it through a `SlotGate` each. A rank that changes counts at once, also for who waits already. A
/// permit that was given is not taken back: it is held for one call into a decoder.
package final class PriorityGate: Sendable {
  private struct Waiter {
    let gate: SlotGate
    let signal: any BlockingSemaphore
  }

  private struct State {
    var freeCount: Int
    /// In the order in which they came.
    var waiters: [Waiter] = []
  }

  package let permitCount: Int
  private let runtime: any PlayerRuntime
  private let state: Locked<State>

  /// - Parameters:
  ///   - permits: At least 1; nil for one a processor.
  ///   - runtime: The runtime of the threads that wait.
  package init(permits: Int? = nil, runtime: any PlayerRuntime = SystemRuntime.shared) {
    permitCount = max(permits ?? ProcessInfo.processInfo.activeProcessorCount, 1)
    self.runtime = runtime
    state = Locked(State(freeCount: permitCount))
  }

  /// Those who wait for a permit.
  package var waiterCount: Int { state.withLock { $0.waiters.count } }

  // MARK: - Internal

  func acquire(for gate: SlotGate) {
    let signal = state.withLock { state -> (any BlockingSemaphore)? in
      if state.freeCount > 0 {
        state.freeCount -= 1
        return nil
      }
      let signal = runtime.makeSemaphore()
      state.waiters.append(Waiter(gate: gate, signal: signal))
      return signal
    }
    signal?.wait()
  }

  func release() {
    let next = state.withLock { state -> (any BlockingSemaphore)? in
      var best: (index: Int, rank: Int)?
      for (index, waiter) in state.waiters.enumerated() {
        let rank = waiter.gate.rank
        if best.map({ rank < $0.rank }) ?? true { best = (index, rank) }
      }
      guard let best else {
        state.freeCount += 1
        return nil
      }
      // The permit goes from hand to hand: nobody comes in between.
      return state.waiters.remove(at: best.index).signal
    }
    next?.signal()
  }
}

/// The way of one slot's decoders to a `PriorityGate`: its rank may be changed at any time.
package final class SlotGate: DecodingGate {
  private let gate: PriorityGate
  private let value: Atomic<Int>

  /// - Parameter rank: 0 is the best.
  package init(_ gate: PriorityGate, rank: Int = 0) {
    self.gate = gate
    value = Atomic(rank)
  }

  /// 0 is the best.
  package var rank: Int {
    get { value.load(ordering: .relaxed) }
    set { value.store(newValue, ordering: .relaxed) }
  }

  package func acquire() { gate.acquire(for: self) }

  package func release() { gate.release() }
}

/// The time that decoding takes in a simulation.
///
/// Each call into a decoder takes one access unit and gives at most one frame, so the cost of a call is that of a
/// frame.
public struct DecodeCost: Sendable, Hashable {
  /// The time that a frame takes: a constant, and a part for each pixel.
  public struct Frame: Sendable, Hashable {
    /// The constant part, not negative.
    public let constant: Duration
    /// The part for each pixel, in nanoseconds, not negative.
    public let nanosecondsPerPixel: Double

    /// A cost from its parts. A negative value, or one that is not finite, counts as zero.
    public init(constant: Duration = .zero, nanosecondsPerPixel: Double = 0) {
      self.constant = max(constant, .zero)
      self.nanosecondsPerPixel = nanosecondsPerPixel.isFinite ? max(nanosecondsPerPixel, 0) : 0
    }

    /// The time of a frame of so many pixels, in whole nanoseconds and at most an hour.
    public func duration(pixelCount: Int) -> Duration {
      let pixels = min(Double(max(pixelCount, 0)) * nanosecondsPerPixel, 3.6e12)
      return min(constant + .nanoseconds(Int64(pixels.rounded())), .seconds(3600))
    }
  }

  /// The time of opening a decoder, not negative.
  public var opening: Duration
  /// The time of a frame of the codecs that have their own.
  public var codecs: [VideoCodec: Frame]
  /// The time of a frame of all other codecs.
  public var others: Frame

  /// The constant part of `others`: for a cost made with ``init(frame:)``, the time of every frame.
  public var frame: Duration { others.constant }

  /// The same cost for every frame, whatever its codec and size. Opening a decoder costs nothing.
  ///
  /// - Parameter frame: The time for one frame. A negative time counts as zero. Defaults to 4 ms.
  public init(frame: Duration = .milliseconds(4)) {
    self.init(opening: .zero, codecs: [:], others: Frame(constant: frame))
  }

  /// Costs by codec and size.
  ///
  /// - Parameters:
  ///   - opening: The time of opening a decoder. A negative time counts as zero.
  ///   - codecs: The time of a frame, by codec.
  ///   - others: The time of a frame of all other codecs.
  public init(opening: Duration, codecs: [VideoCodec: Frame], others: Frame) {
    self.opening = max(opening, .zero)
    self.codecs = codecs
    self.others = others
  }

  /// The time of a frame.
  package func duration(of codec: VideoCodec?, pixelCount: Int) -> Duration {
    (codec.flatMap { codecs[$0] } ?? others).duration(pixelCount: pixelCount)
  }
}
