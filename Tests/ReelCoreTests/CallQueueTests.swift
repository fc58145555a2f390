import ReelCore
import Testing

@Suite("Calls of a clock")
struct CallQueueTests {
  @Test("Calls come by their deadlines, those of one time as they were scheduled")
  func order() {
    let called = Locked<[Int]>([])
    var queue = CallQueue()
    for (number, seconds) in [3, 1, 2, 1, 3, 1].enumerated() {
      _ = queue.insert(at: .seconds(seconds)) { called.withLock { $0.append(number) } }
    }
    #expect(queue.next?.deadline == .seconds(1))
    #expect(queue.count == 6)
    while let handler = queue.takeNext() { handler() }
    #expect(called.withLock { $0 } == [1, 3, 5, 2, 0, 4])
    #expect(queue.next == nil)
  }

  @Test("A call is removed once")
  func removal() {
    var queue = CallQueue()
    let keys = [1, 2, 1, 3].map { queue.insert(at: .seconds($0)) {} }
    let first = queue.remove(keys[0])
    #expect(first != nil)
    let again = queue.remove(keys[0])
    #expect(again == nil)
    #expect(queue.next == keys[2])
    let taken = queue.takeNext()
    #expect(taken != nil)
    let late = queue.remove(keys[2])
    #expect(late == nil)
    #expect(queue.next == keys[1])
    #expect(queue.count == 2)
  }
}
