import ReelCore
import ReelPlayback
import ReelTestSupport
import Testing

@Suite("Observed properties", .hangLimit)
struct ObservedPropertyTests {
  @Test("An observer sees the value of the time when it begins, then every change, and no repetition")
  func changes() async {
    let property = ObservedSource(1)
    property.set(2)
    let values = property.values
    property.set(2)
    property.set(3)
    property.update { $0 += 0 }
    property.update {
      $0 = 9
      $0 = 4
    }
    #expect(property.value == 4)
    property.finish()
    var seen: [Int] = []
    for await value in values { seen.append(value) }
    #expect(seen == [2, 3, 4])
  }

  @Test("Many observers see the same, in the same order, while many set")
  func manyObservers() async {
    let property = ObservedSource([Int]())
    await withTaskGroup { group in
      for _ in 0..<20 {
        let values = property.values
        group.addTask {
          var last: [Int] = []
          for await value in values {
            // Each change is one more number at the end.
            #expect(value.isEmpty || Array(value.dropLast()) == last)
            last = value
          }
          #expect(last.count == 200)
        }
      }
      #expect(property.observerCount == 20)
      group.addTask {
        await withTaskGroup { group in
          for writer in 0..<4 {
            group.addTask { for index in 0..<50 { property.update { $0.append(writer * 100 + index) } } }
          }
        }
        property.finish()
      }
    }
    #expect(property.observerCount == 0)
  }

  @Test("A slow observer loses the oldest, never the latest")
  func slow() async {
    let property = ObservedSource(0)
    let values = property.values
    let limit = ObservedSource<Int>.bufferLimit
    for value in 1...1000 { property.set(value) }
    property.finish()
    var seen: [Int] = []
    for await value in values { seen.append(value) }
    #expect(seen == Array((1001 - limit)...1000))
  }

  @Test("Observers that stop leave nothing behind")
  func stopping() async throws {
    let property = ObservedSource(0)
    do { _ = property.values }
    for await _ in property.values { break }
    let task = Task { for await _ in property.values {} }
    try await until { property.observerCount != 0 }
    task.cancel()
    await task.value
    try await until { property.observerCount == 0 }
  }

  @Test("After the end there is the value, and no more")
  func finished() async {
    let property = ObservedSource(0)
    property.finish()
    property.finish()
    property.set(5)
    var seen: [Int] = []
    for await value in property.values { seen.append(value) }
    #expect(seen == [5])
    #expect(property.observerCount == 0)
  }

  @Test("An observer does not keep the property, and ends with it")
  func owner() async {
    var property: ObservedSource<Int>? = ObservedSource(7)
    weak let observed = property
    let values = property?.values
    property = nil
    #expect(observed == nil)
    var seen: [Int] = []
    if let values { for await value in values { seen.append(value) } }
    #expect(seen == [7])
  }
}
