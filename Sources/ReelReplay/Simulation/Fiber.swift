internal import CFibers
internal import ReelCore

/// A stack of its own for a blocking body, which so needs no thread: it goes on by a call.
///
/// A thread that hands over to another costs the system's scheduler several microseconds, and a simulation does little
/// else. Other work runs on the same thread while this waits, so it holds no lock then, and memory accounts, which threads
/// enter, are not kept in a simulation (`PlayerRuntime.keepsAccounts`).
///
/// Ownership: frees its stack, unless work stands on it.
final class Fiber: @unchecked Sendable {
  // Sendable: used by one thread at a time, the one that drives the simulation.
  private let fiber: OpaquePointer
  private var work: (@Sendable () -> Void)?
  private(set) var isBusy = false

  /// FFmpeg's demuxers and decoders need a few hundred kilobytes.
  private static let stackSize = 2 << 20

  /// Nil where the system has none, or no memory.
  init?() {
    guard let fiber = reel_fiber_create(Self.stackSize) else { return nil }
    self.fiber = fiber
  }

  deinit { if !isBusy { reel_fiber_destroy(fiber) } }

  static var areAvailable: Bool { reel_fibers_available() }

  /// Begins the work. True where it has ended, false where it waits.
  func start(_ work: @escaping @Sendable () -> Void) -> Bool {
    self.work = work
    isBusy = true
    let hasEnded = reel_fiber_start(
      fiber,
      { argument in
        guard let argument else { return }
        Unmanaged<Fiber>.fromOpaque(argument).takeUnretainedValue().runWork()
      }, Unmanaged.passUnretained(self).toOpaque())
    isBusy = !hasEnded
    return hasEnded
  }

  /// Goes on with the work that waits. True where it has ended.
  func resume() -> Bool {
    let hasEnded = reel_fiber_resume(fiber)
    isBusy = !hasEnded
    return hasEnded
  }

  /// Called by the work: returns with the next `resume`.
  func yield() {
    let held = LockOrder.exchange(.none)
    reel_fiber_yield(fiber)
    _ = LockOrder.exchange(held)
  }

  /// What the work holds is let go before it has ended.
  private func runWork() { work.take()?() }
}
