/// What a body that may block waits on, and others wake it by: a counting semaphore that begins at zero.
package protocol BlockingSemaphore: AnyObject, Sendable {
  /// Waits for a `signal()` that no other wait has used up. Only on a thread of the `PlayerRuntime` that made it, in a body
  /// given to its `run`; with no lock held that another body may want.
  func wait()

  /// Ends one wait, the present one or the next. From anywhere.
  func signal()
}
