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

/// Pipes to one reader, which may read them in any order: ffmpeg reads the beginning of its first input before it opens
/// the second, and seconds of video before it wants sound.
///
/// Each pipe has a queue and a thread of its own. A writer waits while its queue is full, as with any pipe; but not where
/// the reader has stopped to read that pipe and has emptied another one: it waits there for what would be written next.
/// What goes beyond `memoryLimit` is kept in a temporary file without a name.
package final class OutputPipes: Sendable {
  /// Bytes of a queue that are in memory, and from which on its writer waits.
  static let memoryLimit = 32 << 20
  /// Bytes of a queue from which on its writer waits in any case.
  static let fileLimit: Int64 = 16 << 30
  /// A pipe of which nothing was read for so long is one that the reader has stopped to read.
  static let patience = Duration.milliseconds(100)

  /// Guards the state of all pipes; signalled at every change.
  fileprivate let condition = NSCondition()
  private let pipes = Locked<[OutputPipe]>([])

  package init() {}

  /// Another pipe: a named one, which is opened when it has a reader, or standard output.
  package func add(path: String?) -> OutputPipe {
    let pipe = OutputPipe(path: path, group: self)
    pipes.withLock { $0.append(pipe) }
    pipe.start()
    return pipe
  }

  /// No writer waits any more: playback is being ended.
  package func stopWaiting() {
    condition.lock()
    for pipe in pipes.withLock({ $0 }) { pipe.isLeaving = true }
    condition.broadcast()
    condition.unlock()
  }

  /// Returns when all that was written has been read, pipes have failed, or `limit` is over; without a limit when the task
  /// is cancelled, too. The first failure.
  package func drain(within limit: Duration? = nil) async -> ReelError? {
    let start = ContinuousClock.now
    let all = pipes.withLock { $0 }
    while all.contains(where: { !$0.isDone }),
      limit.map({ ContinuousClock.now - start < $0 }) ?? !Task.isCancelled
    {
      // A sleep of the task would end at once where it has been cancelled.
      await withCheckedContinuation { continuation in
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(5)) { continuation.resume() }
      }
    }
    return all.compactMap(\.failure).first
  }

  /// The reader waits for a pipe that is not `other`. With the condition's lock held.
  fileprivate func isStarving(beside other: OutputPipe) -> Bool {
    pipes.withLock { $0 }.contains { $0 !== other && $0.isStarving }
  }
}

/// One pipe of `OutputPipes`.
package final class OutputPipe: @unchecked Sendable {
  // Sendable: what changes is touched with the group's condition locked, the descriptor by its thread alone once it is
  // open.
  private let path: String?
  private unowned let group: OutputPipes
  private let condition: NSCondition
  private var queue = SpilledQueue(memoryLimit: OutputPipes.memoryLimit)
  private var descriptor: Int32 = -1
  private var isWriting = false
  private var hasEnded = false
  private var hasFinished = false
  private var error: ReelError?
  /// When the reader last took something.
  private var progressAt = ContinuousClock.now
  fileprivate var isLeaving = false

  fileprivate init(path: String?, group: OutputPipes) {
    self.path = path
    self.group = group
    condition = group.condition
  }

  /// Takes bytes over; waits where the reader does not read them and wants nothing else.
  ///
  /// Throws `ReelError.cannotWriteOutput`, also for what was taken over before.
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

  /// Nothing more is written. The pipe is closed when all of it has been read.
  package func end() {
    condition.lock()
    hasEnded = true
    condition.broadcast()
    condition.unlock()
  }

  fileprivate var isDone: Bool { locked { hasFinished } }
  fileprivate var failure: ReelError? { locked { error } }

  /// The reader has read all there was. With the condition's lock held.
  fileprivate var isStarving: Bool {
    guard descriptor >= 0, !hasEnded, !hasFinished, !isWriting, queue.byteCount == 0 else { return false }
    var unread: Int32 = 0
    return ioctl(descriptor, UInt(FIONREAD), &unread) != 0 || unread == 0
  }

  fileprivate func start() {
    let (group, pipe) = (group, self)
    NativeThread.start(named: "pipe") {
      // The group is kept as long as it is waited for.
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

  /// Waits for a reader. False where there is none.
  private func open() -> Bool {
    guard let path else {
      locked { descriptor = STDOUT_FILENO }
      return true
    }
    while true {
      // Without a reader that fails at once (open(2)), where it would else wait for one without end.
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
        locked { fail(ReelError(.cannotCreateOutput, "can't be made: \(code)", at: path)) }
        return false
      }
      let isOver = locked {
        if !isLeaving { _ = condition.wait(until: Date(timeIntervalSinceNow: 0.02)) }
        return isLeaving
      }
      if isOver { return false }
    }
  }

  /// What is to be written next; nil at the end.
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
      // A pipe's worth at a time: what the reader takes is seen.
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

  /// The reader sees the end now, and not with that of the process.
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

  /// With the condition's lock held.
  private func fail(_ error: ReelError) {
    if self.error == nil { self.error = error }
    condition.broadcast()
  }
}

// Under names that members do not hide.
private func systemOpen(_ path: String, _ flags: Int32) -> Int32 { open(path, flags) }
private func systemClose(_ descriptor: Int32) { close(descriptor) }
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
  write(descriptor, bytes.baseAddress, bytes.count)
}
