import ReelCore
import ReelTestSupport
import Testing

@testable import ReelReading
@testable import ReelSources

@Suite("Byte pipes", .hangLimit)
struct BytePipeTests {
  /// Bytes that are told apart by where they stand.
  private func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
  }

  private func read(_ pipe: BytePipe, _ count: Int) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      initialized = try pipe.read(into: UnsafeMutableRawBufferPointer(buffer))
    }
  }

  @Test(
    "Whatever the sizes of chunks and reads, the bytes come out as they went in, and no more wait than may")
  func anySizes() async throws {
    for _ in 0..<25 {
      let bytes = pattern(.random(in: 0...60_000))
      let capacity = Int.random(in: 1...5000)
      let largest = Int.random(in: 1...3000)
      let pipe = BytePipe(capacity: capacity)
      let submitted = Locked(0)
      async let received = BlockingThread.run(named: "test") {
        var received: [UInt8] = []
        while true {
          let count = submitted.withLock { $0 }
          #expect(count - Int(pipe.readCount) <= capacity + largest)
          let chunk = try read(pipe, .random(in: 1...2000))
          if chunk.isEmpty { return received }
          received += chunk
        }
      }
      var rest = bytes[...]
      while !rest.isEmpty {
        let chunk = Array(rest.prefix(.random(in: 1...largest)))
        rest = rest.dropFirst(chunk.count)
        submitted.withLock { $0 += chunk.count }
        try await pipe.write(chunk)
      }
      pipe.finish()
      #expect(try await received == bytes)
      #expect(pipe.readCount == Int64(bytes.count))
    }
  }

  @Test("A task counts the bytes without a thread, and gets the error after them")
  func discarding() async throws {
    for fails in [false, true] {
      let pipe = BytePipe(capacity: 1000)
      let writer = Task {
        for _ in 0..<100 { try await pipe.write(pattern(700)) }
        if fails { pipe.fail(ReelError(.network, "broken")) } else { pipe.finish() }
      }
      var total = 0
      do {
        while case let count = try await pipe.discard(), count > 0 { total += count }
        #expect(!fails)
      } catch let error as ReelError {
        #expect(fails && error.reason == "broken")
      }
      #expect(total == 70_000)
      #expect(pipe.readCount == 70_000)
      try await writer.value
    }
  }

  @Test("A task that waits for bytes is cancelled")
  func cancelledDiscarding() async throws {
    let pipe = BytePipe()
    let reader = Task { try await pipe.discard() }
    reader.cancel()
    await #expect(throws: CancellationError.self) { try await reader.value }
    await #expect(throws: CancellationError.self) { try await pipe.write([1]) }
  }

  @Test("Empty chunks are nothing, and not an end")
  func emptyChunks() async throws {
    let pipe = BytePipe()
    try await pipe.write([])
    try await pipe.write([1, 2])
    try await pipe.write([])
    pipe.finish()
    let all = try await BlockingThread.run(named: "test") { try read(pipe, 10) + read(pipe, 10) }
    #expect(all == [1, 2])
  }

  @Test("The end stays the end")
  func end() async throws {
    let pipe = BytePipe()
    pipe.finish()
    pipe.finish()
    let counts = try await BlockingThread.run(named: "test") {
      try (0..<3).map { _ in try read(pipe, 4).count }
    }
    #expect(counts == [0, 0, 0])
    await #expect(throws: CancellationError.self) { try await pipe.write([1]) }
  }

  @Test("An error comes after the bytes before it")
  func errorAfterBytes() async throws {
    let pipe = BytePipe()
    try await pipe.write([1, 2, 3])
    pipe.fail(ReelError(.network, "cut"))
    pipe.finish()
    let before = try await BlockingThread.run(named: "test") { try read(pipe, 2) + read(pipe, 2) }
    #expect(before == [1, 2, 3])
    for _ in 0..<2 {
      let error = await #expect(throws: ReelError.self) {
        _ = try await BlockingThread.run(named: "test") { try read(pipe, 2) }
      }
      #expect(error?.kind == .network)
    }
  }

  @Test("Looking ahead takes nothing")
  func peek() async throws {
    let pipe = BytePipe()
    async let head = BlockingThread.run(named: "test") { try pipe.peek(5) }
    try await pipe.write([1, 2])
    try await pipe.write([3, 4])
    try await pipe.write([5, 6, 7])
    #expect(try await head == [1, 2, 3, 4, 5])
    let first = try await BlockingThread.run(named: "test") { try read(pipe, 3) }
    #expect(first == [1, 2, 3])
    pipe.finish()
    let rest = try await BlockingThread.run(named: "test") { try (pipe.peek(100), read(pipe, 100)) }
    #expect(rest == ([4, 5, 6, 7], [4, 5, 6, 7]))
    #expect(try await BlockingThread.run(named: "test") { try pipe.peek(1) }.isEmpty)
  }

  @Test("Looking ahead at what fails gives what there is, then the error")
  func peekAtFailure() async throws {
    let pipe = BytePipe()
    try await pipe.write([1])
    pipe.fail(ReelError(.network, "cut"))
    let head = try await BlockingThread.run(named: "test") { try (pipe.peek(10), read(pipe, 10)) }
    #expect(head == ([1], [1]))
    await #expect(throws: ReelError.self) {
      _ = try await BlockingThread.run(named: "test") { try pipe.peek(10) }
    }
  }

  @Test("Closing wakes a reader that waits")
  func closeWakesReader() async throws {
    for _ in 0..<50 {
      let pipe = BytePipe()
      let reader = Task { try await BlockingThread.run(named: "test") { try read(pipe, 1) } }
      await Task.yield()
      pipe.close()
      await #expect(throws: CancellationError.self) { _ = try await reader.value }
    }
  }

  @Test("Closing wakes a writer that waits for room, and frees what it wrote")
  func closeWakesWriter() async throws {
    for _ in 0..<50 {
      let pipe = BytePipe(capacity: 10)
      let writer = Task { try await pipe.write([UInt8](repeating: 1, count: 100)) }
      await Task.yield()
      pipe.close()
      await #expect(throws: CancellationError.self) { try await writer.value }
      await #expect(throws: CancellationError.self) { try await pipe.write([1]) }
      await #expect(throws: CancellationError.self) {
        _ = try await BlockingThread.run(named: "test") { try read(pipe, 1) }
      }
    }
  }

  @Test("Cancelling a writer that waits ends both")
  func cancelWriter() async throws {
    let pipe = BytePipe(capacity: 10)
    let writer = Task { try await pipe.write([UInt8](repeating: 1, count: 100)) }
    writer.cancel()
    await #expect(throws: CancellationError.self) { try await writer.value }
    await #expect(throws: CancellationError.self) {
      _ = try await BlockingThread.run(named: "test") { try read(pipe, 1) }
    }
  }

  @Test("Reading makes room for a writer that waits")
  func roomAgain() async throws {
    let pipe = BytePipe(capacity: 10)
    let writer = Task {
      for _ in 0..<20 { try await pipe.write([UInt8](repeating: 7, count: 25)) }
      pipe.finish()
    }
    let count = try await BlockingThread.run(named: "test") {
      var count = 0
      while true {
        let chunk = try read(pipe, 3)
        if chunk.isEmpty { return count }
        count += chunk.count
      }
    }
    #expect(count == 500)
    try await writer.value
  }

  @Test("An interruption ends the read that waits, and the pipe goes on")
  func interruptWaiting() async throws {
    for _ in 0..<50 {
      let pipe = BytePipe()
      let reader = Task { try await BlockingThread.run(named: "test") { try read(pipe, 4) } }
      await Task.yield()
      pipe.interrupt()
      await #expect(throws: CancellationError.self) { _ = try await reader.value }
      try await pipe.write([1, 2, 3])
      #expect(try await BlockingThread.run(named: "test") { try read(pipe, 4) } == [1, 2, 3])
    }
  }

  @Test("An interruption ends the next read where none waits, once, and takes no bytes")
  func interruptNext() async throws {
    let pipe = BytePipe()
    try await pipe.write([1, 2, 3])
    pipe.interrupt()
    pipe.interrupt()
    await #expect(throws: CancellationError.self) {
      _ = try await BlockingThread.run(named: "test") { try read(pipe, 2) }
    }
    #expect(pipe.readCount == 0)
    let bytes = try await BlockingThread.run(named: "test") { try read(pipe, 2) + read(pipe, 2) }
    #expect(bytes == [1, 2, 3])
  }

  @Test("An interruption ends a peek that waits, or else the next one, once")
  func interruptPeek() async throws {
    for isEarly in [true, false] {
      let pipe = BytePipe()
      try await pipe.write([1, 2])
      if isEarly { pipe.interrupt() }
      let reader = Task { try await BlockingThread.run(named: "test") { try pipe.peek(4) } }
      await Task.yield()
      if !isEarly { pipe.interrupt() }
      await #expect(throws: CancellationError.self) { _ = try await reader.value }
      try await pipe.write([3, 4])
      #expect(try await BlockingThread.run(named: "test") { try pipe.peek(4) } == [1, 2, 3, 4])
      #expect(pipe.readCount == 0)
    }
  }

  @Test("An interruption that was taken back ends nothing")
  func forgottenInterruption() async throws {
    let pipe = BytePipe()
    pipe.interrupt()
    pipe.forgetInterruption()
    try await pipe.write([1])
    #expect(try await BlockingThread.run(named: "test") { try read(pipe, 2) } == [1])
  }

  @Test("An interruption neither ends the writer nor changes the end")
  func interruptAtEnd() async throws {
    let pipe = BytePipe(capacity: 1)
    let writer = Task {
      try await pipe.write([1, 2, 3])
      pipe.finish()
    }
    pipe.interrupt()
    await #expect(throws: CancellationError.self) {
      _ = try await BlockingThread.run(named: "test") { try read(pipe, 1) }
    }
    let bytes = try await BlockingThread.run(named: "test") { try read(pipe, 2) + read(pipe, 2) }
    try await writer.value
    #expect(bytes == [1, 2, 3])
    pipe.interrupt()
    await #expect(throws: CancellationError.self) {
      _ = try await BlockingThread.run(named: "test") { try read(pipe, 1) }
    }
    #expect(try await BlockingThread.run(named: "test") { try read(pipe, 1) }.isEmpty)
  }
}
