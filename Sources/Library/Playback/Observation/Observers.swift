internal import ReelCore

/// The streams of all observers of one property or channel, in order of registration. The owner guards it with a
/// lock.
///
/// When a stream ends, that is recorded under a separate lock, and no other lock is taken meanwhile. The reason:
/// while a task is cancelled, the Swift runtime holds a lock during the termination handlers of its streams, and
/// `send` needs the same lock to resume the task. A handler that took the owner's lock could therefore deadlock with
/// `send`.
struct Observers<Element: Sendable> {
  private var continuations: [(number: Int, continuation: AsyncStream<Element>.Continuation)] = []
  private var nextNumber = 0
  private var isFinished = false
  /// The numbers of observers whose streams have ended, until those are removed.
  private let ended = Ended()

  private final class Ended: Sendable {
    let numbers = Locked<Set<Int>>([])
  }

  /// The number of observers whose streams have not ended.
  var count: Int {
    mutating get {
      removeEnded()
      return continuations.count
    }
  }

  /// Adds a stream. Returns false once `finish()` was called: the caller then ends the stream.
  mutating func add(_ continuation: AsyncStream<Element>.Continuation) -> Bool {
    guard !isFinished else { return false }
    let (number, ended) = (nextNumber, ended)
    nextNumber += 1
    continuations.append((number, continuation))
    continuation.onTermination = { _ in ended.numbers.withLock { _ = $0.insert(number) } }
    return true
  }

  /// Adds the element to the buffer of each stream. Runs no code of the observers.
  mutating func send(_ element: Element) {
    removeEnded()
    for observer in continuations { observer.continuation.yield(element) }
  }

  /// Accepts no more streams. Removes and returns the current ones, for the caller to end.
  mutating func finish() -> [AsyncStream<Element>.Continuation] {
    isFinished = true
    defer { continuations = [] }
    return continuations.map(\.continuation)
  }

  // MARK: - Private

  private mutating func removeEnded() {
    let numbers = ended.numbers.withLock { numbers in
      defer { numbers = [] }
      return numbers
    }
    guard !numbers.isEmpty else { return }
    continuations.removeAll { numbers.contains($0.number) }
  }
}
