internal import DequeModule
internal import ReelCore
internal import ReelSources

/// Carries bytes from a task that fetches to a thread that demuxes, or to a task that counts. It has one writer,
/// one reader, and a limit.
///
/// The writer suspends while more than `capacity` bytes are unread, unless the reader waits for more. The
/// reader blocks its thread, or suspends its task, while there are none. Bytes written before `finish` or `fail`
/// are read first. After the reader's `close`, the writer gets `CancellationError`, and nothing is kept.
final class BytePipe: Sendable {
  fileprivate enum Ending {
    case finished
    case failed(any Error)
  }

  /// A reader that waits for bytes.
  fileprivate enum Reader {
    case thread
    /// It looks again when it continues with nil.
    case task(CheckedContinuation<Result<Int, any Error>?, Never>)
  }

  fileprivate struct Contents {
    var chunks: Deque<[UInt8]> = []
    /// The number of bytes of the first chunk that have been read.
    var consumed = 0
    var unreadCount = 0
    var readCount: Int64 = 0
    var ending: Ending?
    var isClosed = false
    /// True if the current or next read or peek ends with `CancellationError`; the bytes in the pipe stay.
    var isInterrupted = false
    /// Nil while the reader does not wait.
    var reader: Reader?
    /// The writer that waits for room or, with `waitsForDrain`, until everything has been read.
    var writer: CheckedContinuation<Void, any Error>?
    var waitsForDrain = false
    var capacity: Int
  }

  static let usualCapacity = 8 << 10
  /// The minimum capacity: the first bytes of a segment are inspected in the pipe (`SourceSniffer`).
  static let leastCapacity = SourceSniffer.byteCount / 4

  private let state: Locked<Contents>
  private let memory: LoadingMemory?
  private let readable: any BlockingSemaphore

  /// - Parameters:
  ///   - runtime: The runtime of the reader.
  ///   - memory: Counts the unread bytes.
  init(
    capacity: Int = BytePipe.usualCapacity, runtime: any PlayerRuntime = SystemRuntime.shared,
    memory: LoadingMemory? = nil
  ) {
    self.memory = memory
    state = Locked(Contents(capacity: capacity))
    readable = runtime.makeSemaphore()
  }

  /// The number of bytes that the reader has taken.
  var readCount: Int64 { state.withLock { $0.readCount } }

  deinit { state.withLock { memory?.addInFlight(-$0.unreadCount) } }

  // MARK: Writer

  /// Adds bytes, then waits until there is room for more.
  func write(_ chunk: [UInt8]) async throws { _ = try await writeWaiting(chunk) }

  /// Like `write`. Returns true if it had to wait.
  func writeWaiting(_ chunk: [UInt8]) async throws -> Bool {
    guard !chunk.isEmpty else { return false }
    let (isClosed, reader, hasRoom) = state.withLock { state -> (Bool, Reader?, Bool) in
      guard !state.isClosed, state.ending == nil else { return (true, nil, true) }
      state.chunks.append(chunk)
      state.unreadCount += chunk.count
      memory?.addInFlight(chunk.count)
      return (false, state.reader.take(), state.unreadCount <= state.capacity)
    }
    wake(reader)
    if isClosed { throw CancellationError() }
    if !hasRoom { try await wait(forDrain: false) }
    return !hasRoom
  }

  /// Waits until the reader needs more bytes than are available.
  func drain() async throws { try await wait(forDrain: true) }

  /// Marks the end of the bytes.
  func finish() { end(.finished) }

  /// Fails the pipe: the reader gets `error` after the bytes that were written.
  func fail(_ error: any Error) { end(.failed(error)) }

  // MARK: Reader

  /// Waits for bytes; returns 0 at the end. Throws the writer's error.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    try waitForBytes { state in
      guard state.unreadCount > 0 else { return state.end }
      let count = state.take(into: buffer)
      memory?.addInFlight(-count)
      return .success(count)
    }
  }

  /// Waits for bytes without blocking a thread, and discards them. Returns their number, 0 at the end. Throws
  /// the writer's error. If the task is cancelled, the pipe is closed.
  func discard() async throws -> Int {
    try await withTaskCancellationHandler {
      while true {
        let result = await withCheckedContinuation { continuation in
          let (result, writer) = look(as: .task(continuation)) { state -> Result<Int, any Error>? in
            guard state.unreadCount > 0 else { return state.end }
            let count = state.discard()
            memory?.addInFlight(-count)
            return .success(count)
          }
          writer?.resume()
          if let result { continuation.resume(returning: result) }
        }
        if let result { return try result.get() }
      }
    } onCancel: {
      close()
    }
  }

  /// Waits for `count` bytes or the end, and returns them without taking them.
  func peek(_ count: Int) throws -> [UInt8] {
    try waitForBytes { state in
      guard state.unreadCount >= count || state.ending != nil else { return nil }
      if case .failed(let error) = state.ending, state.unreadCount == 0 { return .failure(error) }
      return .success(state.first(count))
    }
  }

  /// Interrupts the waiting read or peek, or else the next one. Callable on any thread. The bytes in the pipe
  /// stay.
  func interrupt() {
    let reader = state.withLock { state in
      state.isInterrupted = true
      return state.reader.take()
    }
    wake(reader)
  }

  /// Cancels an interruption that has not ended a read yet.
  func forgetInterruption() { state.withLock { $0.isInterrupted = false } }

  /// Lets the writer continue until more than `capacity` bytes are unread.
  func expand(to capacity: Int) {
    let writer = state.withLock { state in
      state.capacity = max(state.capacity, capacity)
      return state.letsWriterGo ? state.writer.take() : nil
    }
    writer?.resume()
  }

  /// Ends reading: frees the unread bytes and ends the writer.
  func close() {
    let (reader, writer) = state.withLock { state in
      state.isClosed = true
      state.chunks.removeAll()
      memory?.addInFlight(-state.unreadCount)
      state.unreadCount = 0
      return (state.reader.take(), state.writer.take())
    }
    wake(reader)
    writer?.resume(throwing: CancellationError())
  }

  // MARK: - Private

  /// Blocks the reader until `look` returns a result. Throws `CancellationError` if the pipe is closed or
  /// interrupted.
  private func waitForBytes<Value: Sendable>(
    _ look: (inout sending Contents) -> Result<Value, any Error>?
  ) throws -> Value {
    while true {
      let (result, writer) = self.look(as: .thread, look)
      writer?.resume()
      if let result { return try result.get() }
      readable.wait()
    }
  }

  /// Returns the result of `look`, and the writer if it goes on. Without a result, `reader` is woken when there may
  /// be one.
  private func look<Value: Sendable>(
    as reader: Reader, _ look: (inout sending Contents) -> Result<Value, any Error>?
  ) -> (result: Result<Value, any Error>?, writer: CheckedContinuation<Void, any Error>?) {
    state.withLock { state in
      if state.isClosed || state.takeInterruption() { return (.failure(CancellationError()), nil) }
      let result = look(&state)
      if result == nil { state.reader = reader }
      return (result, state.letsWriterGo ? state.writer.take() : nil)
    }
  }

  private func wake(_ reader: Reader?) {
    switch reader {
    case .thread: readable.signal()
    case .task(let continuation): continuation.resume(returning: nil)
    case nil: break
    }
  }

  private func end(_ ending: Ending) {
    let reader = state.withLock { state -> Reader? in
      guard state.ending == nil else { return nil }
      state.ending = ending
      return state.reader.take()
    }
    wake(reader)
  }

  private func wait(forDrain: Bool) async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        let outcome = state.withLock { state -> Result<Void, any Error>? in
          if state.isClosed { return .failure(CancellationError()) }
          state.waitsForDrain = forDrain
          if state.letsWriterGo { return .success(()) }
          state.writer = continuation
          return nil
        }
        if let outcome { continuation.resume(with: outcome) }
      }
    } onCancel: {
      close()
    }
  }
}

extension BytePipe.Contents {
  /// True if the writer need not wait any longer.
  fileprivate var letsWriterGo: Bool {
    // A reader may peek at more bytes than the capacity before it takes any.
    reader != nil || !waitsForDrain && unreadCount <= capacity
  }

  /// Returns true if the next read should end.
  fileprivate mutating func takeInterruption() -> Bool {
    defer { isInterrupted = false }
    return isInterrupted
  }

  /// The end of the bytes; nil if more may come.
  fileprivate var end: Result<Int, any Error>? {
    switch ending {
    case .finished: .success(0)
    case .failed(let error): .failure(error)
    case nil: nil
    }
  }

  /// Removes all bytes, and returns their number.
  fileprivate mutating func discard() -> Int {
    defer { (chunks, consumed, unreadCount) = ([], 0, 0) }
    readCount += Int64(unreadCount)
    return unreadCount
  }

  fileprivate mutating func take(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    var filled = 0
    while filled < buffer.count, let chunk = chunks.first {
      let count = min(buffer.count - filled, chunk.count - consumed)
      chunk.withUnsafeBytes { bytes in
        buffer[filled..<(filled + count)].copyBytes(from: bytes[consumed..<(consumed + count)])
      }
      filled += count
      consumed += count
      if consumed == chunk.count {
        chunks.removeFirst()
        consumed = 0
      }
    }
    unreadCount -= filled
    readCount += Int64(filled)
    return filled
  }

  fileprivate func first(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    for (index, chunk) in chunks.enumerated() where bytes.count < count {
      bytes.append(contentsOf: chunk.dropFirst(index == 0 ? consumed : 0).prefix(count - bytes.count))
    }
    return bytes
  }
}

extension UnsafeMutableRawBufferPointer.SubSequence {
  fileprivate func copyBytes(from bytes: UnsafeRawBufferPointer.SubSequence) {
    UnsafeMutableRawBufferPointer(rebasing: self).copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes))
  }
}

/// A pipe and the task that writes to it. Both end with the scope, or with this object.
final class PipeTask: Sendable {
  let pipe: BytePipe
  private let task: Task<Void, Never>
  /// The scopes that end it, each with its handler.
  private let endings: Locked<[(scope: LoadScope, token: Int)]>

  /// - Parameters:
  ///   - capacity: The number of unread bytes at which the task waits.
  ///   - body: Writes into the pipe, which ends when it returns. Reads throw its error.
  init(
    in scope: LoadScope, capacity: Int = BytePipe.usualCapacity,
    _ body: @escaping @Sendable (BytePipe) async throws -> Void
  ) {
    let pipe = BytePipe(capacity: capacity, runtime: scope.runtime, memory: scope.memory)
    let task = scope.runtime.task {
      do {
        try await body(pipe)
        pipe.finish()
      } catch {
        pipe.fail(error)
      }
    }
    self.pipe = pipe
    self.task = task
    endings = Locked([])
    end(with: scope)
  }

  deinit {
    task.cancel()
    pipe.close()
    for ending in endings.withLock({ $0 }) { ending.scope.forget(ending.token) }
  }

  /// Ends the pipe and the task with this scope too.
  func end(with scope: LoadScope) {
    let (task, pipe) = (task, pipe)
    let token = scope.onCancel {
      task.cancel()
      pipe.close()
    }
    endings.withLock { $0.append((scope, token)) }
  }
}

extension LoadingConfiguration {
  /// The number of bytes that may wait for a demuxer.
  var pipeCapacity: Int { reading == .everything ? BytePipe.usualCapacity : BytePipe.leastCapacity }
}
