import Foundation
import NIOCore
import ReelCore

/// The body of a response, over as many transfers as necessary: if one breaks, or the server sends only a part of the
/// range, the next continues at that byte.
///
/// For one consumer, which calls `finish` when it needs no more.
final class HTTPBody: Sendable {
  private struct State {
    var transfer: HTTPTransfer
    /// The bytes of the current transfer that the metrics include.
    var countedByteCount = 0
    /// The position in the resource of the next byte to deliver.
    var position: Int64
    /// The position at which the last transfer broke.
    var brokeAt: Int64
    /// The number of bytes before that position that the current transfer repeats.
    var skipCount: Int64 = 0
    /// The position after the last byte of the body; nil if unknown.
    var end: Int64?
    /// The position after the last byte of the current transfer; nil if unknown.
    var transferEnd: Int64?
    /// True if the current transfer continues beyond what is wanted of it.
    var isOverlong = false
    /// The number of answers that were much shorter than asked for.
    var smallAnswerCount = 0
    var isOver = false
  }

  private static let forgivingByteCount: Int64 = 64 << 10
  /// A part of a range that has fewer bytes is small: after some of them, each is taken for a failure.
  private static let smallByteCount: Int64 = 16 << 10
  private static let smallAnswerLimit = 16

  private let head: ResponseHead
  private let session: TransferSession
  private let fetcher: HTTPFetcher
  private let state: Locked<State>

  init(transfer: HTTPTransfer, head: ResponseHead, session: TransferSession, fetcher: HTTPFetcher) {
    self.head = head
    self.session = session
    self.fetcher = fetcher
    state = Locked(
      State(
        transfer: transfer, position: head.bodyOffset, brokeAt: head.bodyOffset, end: head.bodyEnd,
        transferEnd: head.sentEnd),
      rank: .body)
  }

  /// The next bytes, or nil after the last.
  ///
  /// - Throws: `ReelError`, `CancellationError`.
  func next() async throws -> [UInt8]? {
    while let transfer = state.withLock({ $0.isOver ? nil : $0.transfer }) {
      do {
        guard !hasOverlongEnded, let buffer = try await transfer.nextChunk() else {
          if let position = shortEnd {
            try await requestRest(from: position)
            continue
          }
          try checkIsWhole()
          return nil
        }
        if let bytes = take(buffer) { return bytes }
      } catch let failure as TransferFailure {
        if state.withLock({ $0.position == $0.end }) { return nil }
        try await resume(after: failure)
      }
    }
    return nil
  }

  /// Ends the transfer and reports its metrics.
  func finish() {
    let transfer = state.withLock { state in
      state.isOver = true
      return state.transfer
    }
    countBytes()
    transfer.cancel()
    session.finish()
  }

  // MARK: - Private

  /// True if all that is wanted of the transfer has come although it goes on. Other transfers are read to their end, so
  /// that their connections can be reused.
  private var hasOverlongEnded: Bool {
    state.withLock { $0.isOverlong && ($0.position == $0.end || $0.position == $0.transferEnd) }
  }

  /// The position at which the current transfer was complete; nil unless the server sent less than was asked for, or
  /// may have.
  private var shortEnd: Int64? {
    state.withLock { state in
      guard state.position == state.transferEnd, state.position < state.end ?? .max else { return nil }
      return state.position
    }
  }

  /// Counts received bytes, and returns the new ones among them.
  private func take(_ buffer: ByteBuffer) -> [UInt8]? {
    session.noteFirstByte()
    countBytes()
    return state.withLock { state in
      let skipped = Int(min(state.skipCount, Int64(buffer.readableBytes)))
      state.skipCount -= Int64(skipped)
      var fresh = buffer.readableBytesView.dropFirst(skipped)
      // A transfer may send more than is wanted, or than it states.
      let limit = min(state.end ?? .max, state.transferEnd ?? .max)
      let wanted = fresh.prefix(Int(clamping: max(0, limit - state.position)))
      if wanted.count < fresh.count { state.isOverlong = true }
      fresh = wanted
      guard !fresh.isEmpty else { return nil }
      state.position += Int64(fresh.count)
      return Array(fresh)
    }
  }

  private func checkIsWhole() throws {
    let isWhole = state.withLock { $0.position >= max($0.end ?? 0, $0.transferEnd ?? 0) }
    guard !isWhole else { return }
    throw TransferFailure.connectionLost(reason: "connection closed by the server")
  }

  /// Opens the transfer that continues after the current one.
  private func resume(after failure: TransferFailure) async throws {
    countBytes()
    let position = state.withLock { $0.position }
    forgiveFailures()
    let explained = explained(failure, at: position)
    let isUntouched = position == head.bodyOffset
    guard isUntouched || !head.isCompressed else {
      throw explained.reelError(at: head.url, requestCount: session.requestCount)
    }
    try await fetcher.pause(after: explained, at: head.url, for: session)
    guard try await goOn(from: position) else {
      throw ReelError(
        .network,
        "the resource changed after \(position - head.bodyOffset) bytes, when the connection broke",
        at: head.url.absoluteString)
    }
  }

  /// Opens the transfer after one that was complete, but shorter than asked for.
  private func requestRest(from position: Int64) async throws {
    countBytes()
    let come = forgiveFailures()
    let whole = head.bodyByteCount.map { " of \($0)" } ?? ""
    let outcome = "the server sent only \(position - head.bodyOffset)\(whole) bytes of the range"
    let smallCount = state.withLock { state in
      if come < Self.smallByteCount { state.smallAnswerCount += 1 }
      return state.smallAnswerCount
    }
    if come < Self.smallByteCount, smallCount > Self.smallAnswerLimit {
      let failure = TransferFailure.connectionLost(reason: outcome)
      try await fetcher.pause(after: failure, at: head.url, for: session)
    }
    do {
      guard try await goOn(from: position) else {
        throw ReelError(.server, "the resource changed", at: head.url.absoluteString)
      }
    } catch let error as ReelError where error.status == 416 && head.resourceByteCount == nil {
      // The size was unknown: there are no more bytes (RFC 9110 §15.5.17).
      state.withLock {
        $0.end = position
        $0.isOver = true
      }
    } catch var error as ReelError where error.kind == .server {
      error.reason = "\(outcome), and the rest can't be had: \(error.reason)"
      throw error
    }
  }

  /// Restores the budget of retries if enough has come since it was last used, and returns how much has: a server that
  /// ends each transfer after this much delivers everything in the end.
  @discardableResult
  private func forgiveFailures() -> Int64 {
    let come = state.withLock { state in
      defer { state.brokeAt = state.position }
      return state.position - state.brokeAt
    }
    if come >= Self.forgivingByteCount { session.forgetFailures() }
    return come
  }

  /// Opens the transfer that continues at `position`, the current one; false if the resource has changed.
  private func goOn(from position: Int64) async throws -> Bool {
    var plan = RequestPlan(session.request)
    if position != head.bodyOffset {
      let end = state.withLock { $0.end }
      let range = ByteRange(offset: position, length: end.map { $0 - position })
      plan = plan.continuing(at: head.url, range: range, ifRange: head.validator)
    }
    let (transfer, next) = try await fetcher.open(plan, for: session)
    if hasEnded(next) {
      transfer.cancel()
      return true
    }
    guard fits(next) else {
      transfer.cancel()
      return false
    }
    state.withLock { state in
      state.transfer = transfer
      state.countedByteCount = 0
      state.skipCount = position - next.bodyOffset
      state.transferEnd = next.sentEnd
      state.isOverlong = state.end != nil && next.bodyEnd != state.end
      if state.end == nil { state.end = next.bodyEnd }
    }
    return true
  }

  /// Ends the body if `next` says that a resource of unknown size ends where a complete answer did.
  private func hasEnded(_ next: ResponseHead) -> Bool {
    state.withLock { state in
      guard head.resourceByteCount == nil, state.position == state.transferEnd,
        next.resourceByteCount == state.position
      else { return false }
      state.end = state.position
      state.isOver = true
      return true
    }
  }

  /// True if the bytes of `next` can follow those of the first response.
  private func fits(_ next: ResponseHead) -> Bool {
    if let old = head.validator, let new = next.validator, old != new { return false }
    if let old = head.resourceByteCount, let new = next.resourceByteCount, old != new { return false }
    let (position, end) = state.withLock { ($0.position, $0.end) }
    if end != nil, let nextEnd = next.sentEnd, nextEnd <= position { return false }
    return next.bodyOffset <= position && (!next.isCompressed || head.isCompressed)
  }

  /// Adds to a failure how many bytes had arrived.
  private func explained(_ failure: TransferFailure, at position: Int64) -> TransferFailure {
    guard case .connectionLost(let reason) = failure else { return failure }
    let count = position - head.bodyOffset
    let whole = head.bodyByteCount.map { " of \($0)" } ?? ""
    return .connectionLost(reason: "\(reason) after \(count)\(whole) bytes")
  }

  private func countBytes() {
    state.withLock { state in
      let count = state.transfer.receivedByteCount
      session.noteBytes(count - state.countedByteCount)
      state.countedByteCount = count
    }
  }
}

extension ResponseHead {
  /// The position after the last byte of the body; nil if unknown.
  fileprivate var bodyEnd: Int64? { bodyByteCount.map { bodyOffset + $0 } }

  /// The position after the last byte of this response; nil if unknown.
  fileprivate var sentEnd: Int64? { sentByteCount.map { bodyOffset + $0 } }
}
