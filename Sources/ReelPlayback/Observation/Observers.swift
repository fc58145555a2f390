/// The streams of those who observe one thing.
struct Observers<Element: Sendable> {
  /// In the order in which they came.
  private var continuations: [(number: Int, continuation: AsyncStream<Element>.Continuation)] = []
  private var nextNumber = 0

  var count: Int { continuations.count }

  /// A number that names the observer.
  mutating func makeNumber() -> Int {
    nextNumber += 1
    return nextNumber
  }

  mutating func add(_ continuation: AsyncStream<Element>.Continuation, number: Int) {
    continuations.append((number, continuation))
  }

  mutating func remove(_ number: Int) { continuations.removeAll { $0.number == number } }

  /// Puts the element into the buffer of each; runs none of their code.
  func send(_ element: Element) {
    for observer in continuations { observer.continuation.yield(element) }
  }

  /// Removes all. They are to be finished outside of locks: that calls their termination handlers.
  mutating func takeAll() -> [AsyncStream<Element>.Continuation] {
    defer { continuations = [] }
    return continuations.map(\.continuation)
  }
}
