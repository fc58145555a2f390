internal import Dispatch
internal import Foundation

/// A thread that waits to be woken, and works for 2 ms then.
final class Sleeper: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  init() {
    Thread.detachNewThread { [semaphore] in
      while true {
        semaphore.wait()
        _ = spin(milliseconds: 2)
      }
    }
  }

  func wake() { semaphore.signal() }
}
