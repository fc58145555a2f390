/// A counting semaphore, initially zero, for bodies that may block.
package protocol BlockingSemaphore: AnyObject, Sendable {
  /// Waits for a `signal()` that no other wait has used. Call it only on a thread of the `PlayerRuntime` that
  /// created it, in a body passed to its `run`, and without a lock that another body may take.
  func wait()

  /// Ends one wait, the current one or the next. Callable from anywhere.
  func signal()
}
