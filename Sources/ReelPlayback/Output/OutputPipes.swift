internal import Dispatch
internal import Foundation
package import ReelCore
internal import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Several pipes to one reader, which may read them in any order. ffmpeg, for example, reads the beginning of its
/// first input before it opens the second, and seconds of video before it needs audio.
///
/// Each pipe has its own queue and thread. As with any pipe, a writer waits while its queue is full. The exception
/// prevents a deadlock: if the reader has stopped reading this pipe and has emptied another one, it waits for data
/// that would be written later, so the writer goes on. Bytes beyond `memoryLimit` are kept in an unnamed temporary
/// file.
package final class OutputPipes: Sendable {
  /// The bytes of a queue that are kept in memory. Beyond them, its writer waits.
  static let memoryLimit = 32 << 20
  /// The bytes of a queue beyond which its writer always waits.
  static let fileLimit: Int64 = 16 << 30
  /// If nothing was read from a pipe for this long, the reader counts as having stopped reading it.
  static let patience = Duration.milliseconds(100)

  /// Guards the state of all pipes and is signalled at every change.
  fileprivate let condition = NSCondition()
  private let pipes = Locked<[OutputPipe]>([])

  package init() {}

  /// Adds a pipe: a named pipe, which is opened once it has a reader, or standard output if `path` is nil.
  package func add(path: String?) -> OutputPipe {
    let pipe = OutputPipe(path: path, group: self)
    pipes.withLock { $0.append(pipe) }
    pipe.start()
    return pipe
  }

  /// Lets writers continue without waiting, because playback is ending.
  package func stopWaiting() {
    condition.lock()
    for pipe in pipes.withLock({ $0 }) { pipe.isLeaving = true }
    condition.broadcast()
    condition.unlock()
  }

  /// Waits until each pipe has been read to its end or has failed, or until `limit` has passed. Without a limit,
  /// cancelling the task also ends the wait. Returns the first failure.
  package func drain(within limit: Duration? = nil) async -> ReelError? {
    let start = ContinuousClock.now
    let all = pipes.withLock { $0 }
    while all.contains(where: { !$0.isDone }),
      limit.map({ ContinuousClock.now - start < $0 }) ?? !Task.isCancelled
    {
      // A task's sleep would end at once in a cancelled task.
      await withCheckedContinuation { continuation in
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(5)) { continuation.resume() }
      }
    }
    return all.compactMap(\.failure).first
  }

  /// True if the reader is waiting for a pipe other than `other`. Call it with the condition's lock held.
  fileprivate func isStarving(beside other: OutputPipe) -> Bool {
    pipes.withLock { $0 }.contains { $0 !== other && $0.isStarving }
  }
}

/// One pipe of `OutputPipes`.
package final class OutputPipe: @unchecked Sendable {
  // Sendable: mutable state is accessed only with the group's condition locked, and the descriptor, once open, only
  // by the pipe's thread.
  private let path: String?
  private unowned let group: OutputPipes
  private let condition: NSCondition
  private var queue = SpilledQueue(memoryLimit: OutputPipes.memoryLimit)
  private var descriptor: Int32 = -1
  private var isWriting = false
  private var hasEnded = false
  private var hasFinished = false
  private var error: ReelError?
  /// When the reader last took bytes.
  private var progressAt = ContinuousClock.now
  fileprivate var isLeaving = false

  fileprivate init(path: String?, group: OutputPipes) {
    self.path = path
    self.group = group
    condition = group.condition
  }

  /// Queues bytes. Waits if the queue is full, unless the reader is waiting for another pipe.
  ///
  /// Throws `ReelError.cannotWriteOutput`, also if writing earlier bytes has failed.
  package func write(_ bytes: [UInt8]) throws(ReelError) {
    guard !bytes.isEmpty else { return }
    condition.lock()
    defer { condition.unlock() }
    if let error { throw error }
    do throws(ReelError) {
      try queue.append(bytes)
    } catch {
      fail(error)
      throw error
    }
    condition.broadcast()
    while error == nil, !isLeaving, queue.byteCount > Int64(OutputPipes.memoryLimit) {
      let isLeft = ContinuousClock.now - progressAt > OutputPipes.patience
      if isLeft, queue.byteCount < OutputPipes.fileLimit, group.isStarving(beside: self) { break }
      _ = condition.wait(until: Date(timeIntervalSinceNow: 0.01))
    }
    if let error { throw error }
  }

  /// Marks the end of the data. The pipe is closed once everything has been read.
  package func end() {
    condition.lock()
    hasEnded = true
    condition.broadcast()
    condition.unlock()
  }

  fileprivate var isDone: Bool { locked { hasFinished } }
  fileprivate var failure: ReelError? { locked { error } }

  /// True if the reader has read everything so far. Call it with the condition's lock held.
  fileprivate var isStarving: Bool {
    guard descriptor >= 0, !hasEnded, !hasFinished, !isWriting, queue.byteCount == 0 else { return false }
    var unread: Int32 = 0
    return ioctl(descriptor, UInt(FIONREAD), &unread) != 0 || unread == 0
  }

  fileprivate func start() {
    let (group, pipe) = (group, self)
    NativeThread.start(named: "pipe") {
      // Keeps the group alive while the thread runs.
      withExtendedLifetime(group) { pipe.run() }
    }
  }

  // MARK: - Private

  private var location: String { path ?? "standard output" }

  private func locked<Result>(_ body: () -> Result) -> Result {
    condition.lock()
    defer { condition.unlock() }
    return body()
  }

  private func run() {
    if open() {
      while let bytes = next(), write(all: bytes) {}
      close()
    }
    locked {
      hasFinished = true
      condition.broadcast()
    }
  }

  /// Opens the pipe when it has a reader. Returns false if none came.
  private func open() -> Bool {
    guard let path else {
      locked { descriptor = STDOUT_FILENO }
      return true
    }
    while true {
      // With O_NONBLOCK, opening fails at once without a reader (open(2)) instead of waiting for one forever.
      let opened = systemOpen(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
      if opened >= 0 {
        _ = fcntl(opened, F_SETFL, fcntl(opened, F_GETFL) & ~O_NONBLOCK)
        locked {
          descriptor = opened
          progressAt = .now
        }
        return true
      }
      guard errno == ENXIO || errno == EINTR else {
        let code = Errno(rawValue: errno)
        locked { fail(ReelError(.cannotCreateOutput, "can't be created: \(code)", at: path)) }
        return false
      }
      let isOver = locked {
        if !isLeaving { _ = condition.wait(until: Date(timeIntervalSinceNow: 0.02)) }
        return isLeaving
      }
      if isOver { return false }
    }
  }

  /// The next bytes to write; nil at the end.
  private func next() -> [UInt8]? {
    condition.lock()
    defer { condition.unlock() }
    isWriting = false
    while queue.byteCount == 0, !hasEnded, error == nil { condition.wait() }
    guard error == nil else { return nil }
    do throws(ReelError) {
      let bytes = try queue.takeFirst()
      isWriting = bytes != nil
      condition.broadcast()
      return bytes
    } catch {
      fail(error)
      return nil
    }
  }

  private func write(all bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      // Writes one pipe buffer at a time to see when the reader takes bytes.
      let count = rest.prefix(64 << 10).withUnsafeBytes { systemWrite(descriptor, $0) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        let code = Errno(rawValue: errno)
        locked { fail(ReelError(.cannotWriteOutput, "can't be written: \(code)", at: location)) }
        return false
      }
      rest = rest.dropFirst(count)
      locked { progressAt = .now }
    }
    return true
  }

  /// Closes the pipe, so that the reader sees the end now, not when the process exits.
  private func close() {
    if path == nil {
      let nothing = systemOpen("/dev/null", O_WRONLY | O_CLOEXEC)
      if nothing >= 0 {
        dup2(nothing, STDOUT_FILENO)
        systemClose(nothing)
      }
    } else {
      systemClose(descriptor)
    }
    locked { descriptor = -1 }
  }

  /// Call it with the condition's lock held.
  private func fail(_ error: ReelError) {
    if self.error == nil { self.error = error }
    condition.broadcast()
  }
}

// Global functions that are not hidden by members with the same name.
private func systemOpen(_ path: String, _ flags: Int32) -> Int32 { open(path, flags) }
private func systemClose(_ descriptor: Int32) { close(descriptor) }
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
  write(descriptor, bytes.baseAddress, bytes.count)
}
