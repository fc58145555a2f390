internal import ReelCore

/// The body of one answer on its way into the folder. All readers of its bytes share it (`RunningTransfers`).
///
/// It goes on as its readers ask for more, whichever is ahead.
final class SharedTransfer: Sendable {
  /// What a reader gets at its position.
  enum Part: Sendable {
    case bytes([UInt8])
    /// The bytes there have left the transfer: they are in the folder, if they could be written.
    case passed
    /// The body has ended before it.
    case ended
  }

  fileprivate struct State {
    /// The position of the first byte in `recent`.
    var start: Int64
    /// The bytes that came last. Those that are written stay until more are asked for, so that nobody has to read what just
    /// came.
    var recent: [UInt8] = []
    var writtenCount = 0
    /// Nil while the body may give more.
    var result: Result<Void, any Error>?
    /// Ends when the next bytes have come; nil while nobody asks for any.
    var pull: Completion?
    var task: Task<Void, Never>?
    /// False once bytes could not be written.
    var mayWrite = true

    var position: Int64 { start + Int64(recent.count) }
  }

  let key: EntryKey
  let answer: StoredAnswer
  /// The position after the last byte that the server was asked for; nil for the end of the resource.
  let end: Int64?
  private let body: FetchBody
  private let folder: CacheFolder
  /// Called with the position of the end when the whole body has come.
  private let onEnd: @Sendable (Int64) -> Void
  private let state: Locked<State>
  /// Held while a piece is written.
  private let writing = Locked((), rank: .body)

  /// Files are written in pieces of this size. The first one is smaller, so that a head is kept early.
  static let pieceByteCount = CacheFolder.pieceByteLimit
  private static let firstPieceByteCount = 64 << 10
  /// A reader joins a transfer that is at most this far behind it.
  static let nearByteCount: Int64 = 64 << 10

  /// - Parameters:
  ///   - end: Where the range ends that the server was asked for; nil for the end of the resource.
  ///   - isKept: False if the bytes must not be stored.
  init(
    _ response: FetchResponse, to end: Int64?, of key: EntryKey, answer: StoredAnswer, isKept: Bool,
    into folder: CacheFolder, onEnd: @escaping @Sendable (Int64) -> Void
  ) {
    self.key = key
    self.answer = answer
    self.end = end
    body = response.body
    self.folder = folder
    self.onEnd = onEnd
    state = Locked(State(start: response.bodyOffset, mayWrite: isKept))
  }

  /// The position after the last byte; nil if it is unknown.
  var bodyEnd: Int64? { [end, answer.resourceByteCount].compactMap { $0 }.min() }

  /// True if a reader at the position gets its bytes here, now or soon.
  func reaches(_ position: Int64) -> Bool {
    state.withLock { state in
      let ahead = state.result == nil ? Self.nearByteCount : -1
      return state.start <= position && position <= state.position + ahead && position < end ?? .max
    }
  }

  /// Returns what there is at a position, and waits for it if it is ahead.
  ///
  /// - Throws: The error of the transfer, or `CancellationError`.
  func next(at position: Int64) async throws -> Part {
    while true {
      try Task.checkCancellation()
      let mine = Completion()
      switch try state.withLock({ try $0.step(at: position, mine) }) {
      case .part(let part): return part
      case .wait(let pull):
        // The task goes on if this reader is cancelled: others may wait for the same bytes.
        if pull === mine { begin(mine) }
        await pull.wait()
      }
    }
  }

  /// Ends the transfer, when it has no reader any more, and returns once what came until then is written.
  func close() {
    let task = state.withLock { state in
      if state.result == nil { state.result = .failure(CancellationError()) }
      return state.task.take()
    }
    task?.cancel()
    body.close()
    write()
  }

  // MARK: - Private

  private func begin(_ completion: Completion) {
    let closed = state.withLock { state in
      let task = Task { await pull(completion) }
      state.task = task
      return state.result == nil ? nil : task
    }
    closed?.cancel()
  }

  private func pull(_ completion: Completion) async {
    let chunk: Result<[UInt8]?, any Error>
    do { chunk = .success(try await body.next()) } catch { chunk = .failure(error) }
    let end = state.withLock { state -> Int64? in
      switch chunk {
      case .success(let bytes?): state.recent += bytes
      case .failure(let error): state.result = state.result ?? .failure(error)
      // A body that was closed has not ended there.
      case .success(nil) where state.result == nil:
        state.result = .success(())
        return state.position
      case .success(nil): break
      }
      return nil
    }
    write()
    state.withLock { $0.pull = nil }
    if let end { onEnd(end) }
    completion.finish()
  }

  /// Writes what has come: in whole pieces, and all of it once no more comes.
  private func write() {
    writing.withLock { _ in
      while let (start, piece, mayWrite) = nextPiece {
        let isWritten = mayWrite && folder.write(piece, at: start, of: key, version: answer.version)
        state.withLock { state in
          state.mayWrite = isWritten
          state.writtenCount += piece.count
        }
      }
    }
  }

  /// The next piece to write; nil if there is none yet.
  private var nextPiece: (start: Int64, bytes: [UInt8], mayWrite: Bool)? {
    state.withLock { state in
      let start = state.start + Int64(state.writtenCount)
      let wanted = start == 0 ? Self.firstPieceByteCount : Self.pieceByteCount
      let rest = state.recent.dropFirst(state.writtenCount)
      guard !rest.isEmpty, state.result != nil || rest.count >= wanted else { return nil }
      return (start, Array(rest.prefix(wanted)), state.mayWrite)
    }
  }
}

extension SharedTransfer.State {
  fileprivate enum Step {
    case part(SharedTransfer.Part)
    case wait(Completion)
  }

  /// - Parameter pull: Becomes the current pull if the reader has to begin one.
  fileprivate mutating func step(at position: Int64, _ pull: Completion) throws -> Step {
    if position < start { return .part(.passed) }
    if position < self.position { return .part(.bytes(Array(recent[Int(position - start)...]))) }
    if let result {
      try result.get()
      return .part(.ended)
    }
    if let running = self.pull { return .wait(running) }
    self.pull = pull
    recent.removeFirst(writtenCount)
    start += Int64(writtenCount)
    writtenCount = 0
    return .wait(pull)
  }
}

/// The transfers that run in this process and the requests that wait for their heads, so that two readers of a range fetch
/// it once.
final class RunningTransfers: Sendable {
  /// What a reader does that needs bytes which are not stored.
  enum Turn {
    /// Read from this transfer, and call `leave` in the end.
    case join(SharedTransfer)
    /// Another request may bring them: wait for its head, and look again.
    case wait(Completion)
    /// Send a request, and call `end` when its head has come.
    case open(Completion)
  }

  private struct State {
    /// With those that have no reader any more, until what came is written.
    var transfers: [(transfer: SharedTransfer, readerCount: Int)] = []
    var openings: [(key: EntryKey, range: ByteRange, completion: Completion)] = []
  }

  // Transfers have locks of their own.
  private let state = Locked(State(), rank: .body)

  /// - Parameters:
  ///   - range: The range that is wanted. Its first byte decides.
  ///   - version: The version that is wanted; nil for any.
  ///   - mayWait: False to send a request even if another one may bring the bytes.
  func turn(
    for key: EntryKey, _ range: ByteRange, version: EntryVersion? = nil, mayWait: Bool = true
  ) -> Turn {
    let position = range.offset
    return state.withLock { state in
      let index = state.transfers.firstIndex { transfer, readerCount in
        transfer.key == key && readerCount > 0 && transfer.reaches(position)
          && version.map { $0 == transfer.answer.version } ?? true
      }
      if let index {
        state.transfers[index].readerCount += 1
        return .join(state.transfers[index].transfer)
      }
      let reach = 0...SharedTransfer.nearByteCount
      let other = state.openings.first {
        $0.key == key && reach.contains(position - $0.range.offset) && position < $0.range.end ?? .max
      }
      if let other, mayWait { return .wait(other.completion) }
      let completion = Completion()
      state.openings.append((key, range, completion))
      return .open(completion)
    }
  }

  /// Ends an opening.
  ///
  /// - Parameter transfer: What it brings, to be shared. The caller is its first reader.
  func end(_ opening: Completion, with transfer: SharedTransfer?) {
    state.withLock { state in
      state.openings.removeAll { $0.completion === opening }
      if let transfer { state.transfers.append((transfer, 1)) }
    }
    opening.finish()
  }

  /// Ends a transfer with its last reader.
  func leave(_ transfer: SharedTransfer) {
    let isLast = state.withLock { state -> Bool in
      guard let index = state.transfers.firstIndex(where: { $0.transfer === transfer }) else { return false }
      state.transfers[index].readerCount -= 1
      return state.transfers[index].readerCount == 0
    }
    guard isLast else { return }
    transfer.close()
    state.withLock { $0.transfers.removeAll { $0.transfer === transfer } }
  }

  /// Ends all transfers, and returns once what came is written.
  func finish() { for transfer in state.withLock({ $0.transfers.map(\.transfer) }) { transfer.close() } }
}

/// Something that tasks wait for.
final class Completion: Sendable {
  /// Nil once it is done.
  private let waiting = Locked<[AsyncStream<Void>.Continuation]?>([])

  func finish() { for waiter in waiting.withLock({ $0.take() }) ?? [] { waiter.finish() } }

  /// Returns when it is done, or when the task is cancelled.
  func wait() async {
    let (stream, waiter) = AsyncStream<Void>.makeStream()
    let isDone = waiting.withLock { waiting in
      waiting?.append(waiter)
      return waiting == nil
    }
    if !isDone { for await _ in stream {} }
  }
}
