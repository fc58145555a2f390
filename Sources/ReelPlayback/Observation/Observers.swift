internal import ReelCore

/// The streams of those who observe one thing, in the order in which they came. Its owner guards it with a lock.
///
/// That a stream has ended is noted under a lock of its own, which is held while nothing else is done. A task that is
/// cancelled holds a lock of the Swift runtime while the termination handlers of its streams run, and `send` needs the same
/// lock to resume the task. A handler that took the owner's lock would therefore deadlock with `send`.
struct Observers<Element: Sendable> {
  private var continuations: [(number: Int, continuation: AsyncStream<Element>.Continuation)] = []
  private var nextNumber = 0
  /// Observers whose streams have ended, until they are removed.
  private let ended = Ended()

  private final class Ended: Sendable {
    let numbers = Locked<Set<Int>>([])
  }

  /// Those whose streams have not ended.
  var count: Int {
    mutating get {
      removeEnded()
      return continuations.count
    }
  }

  mutating func add(_ continuation: AsyncStream<Element>.Continuation) {
    let (number, ended) = (nextNumber, ended)
    nextNumber += 1
    continuations.append((number, continuation))
    continuation.onTermination = { _ in ended.numbers.withLock { _ = $0.insert(number) } }
  }

  /// Puts the element into the buffer of each; runs none of their code.
  mutating func send(_ element: Element) {
    removeEnded()
    for observer in continuations { observer.continuation.yield(element) }
  }

  /// Removes all; the caller finishes them.
  mutating func takeAll() -> [AsyncStream<Element>.Continuation] {
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
