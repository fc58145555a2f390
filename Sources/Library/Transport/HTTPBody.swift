import Foundation
import NIOCore
import ReelCore

/// The body of a response, over as many transfers as necessary: if one breaks, or the server sends only a
/// part of the range, the next continues at that byte.
///
/// For one consumer, which calls `finish` when it needs no more.
final class HTTPBody: Sendable {
  private struct Progress {
    var transfer: HTTPTransfer
    /// The bytes of the current transfer that the metrics include.
    var countedByteCount = 0
    /// The position in the resource of the next byte to deliver.
    var position: Int64
    /// The position at which the last failure happened, or the budget of retries was restored.
    var brokeAt: Int64
    /// The position at which the current transfer continued.
    var transferStart: Int64
    /// The number of bytes before that position that the current transfer repeats.
    var skipCount: Int64
    /// The position after the last byte of the body; nil if unknown.
    var end: Int64?
    /// The size of the resource; nil if no answer has stated it.
    var resourceByteCount: Int64?
    /// The position after the last byte of the current transfer; nil if unknown.
    var transferEnd: Int64?
    /// True if the current transfer continues beyond the wanted range.
    var isOverlong = false
    /// The number of answers that were much shorter than requested.
    var smallAnswerCount = 0
    var isOver = false
  }

  private static let forgivingByteCount: Int64 = 64 << 10
  /// An answer with fewer bytes counts as small. After `smallAnswerLimit` of them, each further one counts as
  /// a failure.
  private static let smallByteCount: Int64 = 16 << 10
  private static let smallAnswerLimit = 16

  private let head: ResponseHead
  private let session: TransferSession
  private let fetcher: HTTPFetcher
  private let state: Locked<Progress>

  init(transfer: HTTPTransfer, head: ResponseHead, session: TransferSession, fetcher: HTTPFetcher) {
    self.head = head
    self.session = session
    self.fetcher = fetcher
    state = Locked(
      Progress(
        transfer: transfer, position: head.bodyOffset, brokeAt: head.bodyOffset,
        transferStart: head.bodyOffset, skipCount: head.leadingByteCount, end: head.wantedEnd,
        resourceByteCount: head.resourceByteCount,
        transferEnd: head.sentEnd),
      rank: .body)
  }

  /// Returns the next bytes, or nil after the last.
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
  func finish(_ result: Result<Void, any Error>) {
    let (transfer, isWhole) = state.withLock { state in
      state.isOver = true
      return (state.transfer, state.position == state.end)
    }
    countBytes()
    transfer.cancel()
    // A reader that has all bytes need not ask for more.
    session.finish(isWhole ? .success(()) : result)
  }

  // MARK: - Private

  /// True if the transfer has delivered everything wanted but has not ended. Other transfers are read to their end, so
  /// that their connections can be reused.
  private var hasOverlongEnded: Bool {
    state.withLock { $0.isOverlong && ($0.position == $0.end || $0.position == $0.transferEnd) }
  }

  /// The position at which the current transfer ended before the range did; nil if the range is complete. If
  /// the size of the resource is unknown, only another request shows whether it is.
  private var shortEnd: Int64? {
    state.withLock { state in
      guard state.position == state.transferEnd, state.position < state.end ?? .max else { return nil }
      return state.position
    }
  }

  /// Counts received bytes, and returns the new ones among them.
  private func take(_ buffer: ByteBuffer) -> [UInt8]? {
    session.recordFirstByte()
    countBytes()
    return state.withLock { state in
      let skipped = Int(min(state.skipCount, Int64(buffer.readableBytes)))
      state.skipCount -= Int64(skipped)
      var fresh = buffer.readableBytesView.dropFirst(skipped)
      // A transfer may send more than requested, or than it states.
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
    forgiveFailures()
    let position = state.withLock { state in
      state.brokeAt = state.position
      return state.position
    }
    let explained = explained(failure, at: position)
    let isUntouched = position == head.bodyOffset
    guard isUntouched || !head.isCompressed else {
      throw explained.reelError(at: head.url, requestCount: session.requestCount)
    }
    try await fetcher.pause(after: explained, at: head.url, status: head.status, for: session)
    guard try await resume(from: position) else {
      throw ReelError(
        .network,
        "the resource changed after \(position - head.bodyOffset) bytes, when the connection broke",
        at: head.url.absoluteString)
    }
  }

  /// Opens the transfer after one that was complete, but shorter than requested.
  private func requestRest(from position: Int64) async throws {
    countBytes()
    forgiveFailures()
    let outcome = "the server sent only \(position - head.bodyOffset)\(wholeText) bytes of the range"
    let isFailure = state.withLock { state in
      guard position - state.transferStart < Self.smallByteCount else { return false }
      state.smallAnswerCount += 1
      guard state.smallAnswerCount > Self.smallAnswerLimit else { return false }
      state.brokeAt = position
      return true
    }
    if isFailure {
      let failure = TransferFailure.connectionLost(reason: outcome)
      try await fetcher.pause(after: failure, at: head.url, status: head.status, for: session)
    }
    do {
      guard try await resume(from: position) else {
        throw ReelError(.server, "the resource changed", at: head.url.absoluteString)
      }
    } catch let error as ReelError
      where error.status == 416 && state.withLock({ $0.resourceByteCount == nil })
    {
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

  /// Restores the budget of retries if enough bytes have arrived since the last failure: a server that breaks
  /// off after that many bytes each time delivers everything in the end.
  private func forgiveFailures() {
    let hasComeFar = state.withLock { state in
      guard state.position - state.brokeAt >= Self.forgivingByteCount else { return false }
      state.brokeAt = state.position
      return true
    }
    if hasComeFar { session.forgetFailures() }
  }

  /// Opens the transfer that continues at `position`, which becomes the current one; false if the resource
  /// has changed.
  private func resume(from position: Int64) async throws -> Bool {
    var plan = RequestPlan(session.request)
    if position != head.bodyOffset {
      let end = state.withLock { $0.end }
      let range = ByteRange(offset: position, length: end.map { $0 - position })
      plan = plan.continuing(at: head.url, range: range, ifRange: head.validator)
    }
    let (transfer, next) = try await fetcher.open(plan, for: session)
    if takeEnd(from: next) {
      transfer.cancel()
      return true
    }
    guard fits(next) else {
      transfer.cancel()
      return false
    }
    let old = state.withLock { state in
      defer { state.transfer = transfer }
      state.countedByteCount = 0
      state.transferStart = position
      state.skipCount = position - next.bodyOffset + next.leadingByteCount
      state.transferEnd = next.sentEnd
      if state.resourceByteCount == nil, let size = next.resourceByteCount {
        state.resourceByteCount = size
        state.end = min(state.end ?? .max, size)
      }
      if state.end == nil { state.end = next.wantedEnd }
      state.isOverlong = next.wantedEnd != state.end
      return state.transfer
    }
    // An answer that continues after its range has not ended.
    old.cancel()
    return true
  }

  /// Ends the body if the size of the resource was unknown, and `next` states a size that the last answer has
  /// reached. Returns true if so.
  private func takeEnd(from next: ResponseHead) -> Bool {
    state.withLock { state in
      guard state.resourceByteCount == nil, state.position == state.transferEnd,
        next.resourceByteCount == state.position
      else { return false }
      state.end = state.position
      state.isOver = true
      return true
    }
  }

  /// Returns true if the bytes of `next` can follow those of the first response.
  private func fits(_ next: ResponseHead) -> Bool {
    if let old = head.validator, let new = next.validator, old != new { return false }
    let (position, end, size) = state.withLock { ($0.position, $0.end, $0.resourceByteCount) }
    if let size, let new = next.resourceByteCount, size != new { return false }
    // If the last byte has arrived, a body of unknown length may have been complete.
    if let nextEnd = next.sentEnd, nextEnd < position || (end != nil && nextEnd == position) { return false }
    return next.bodyOffset <= position && (!next.isCompressed || head.isCompressed)
  }

  /// The text ` of SIZE` for messages; empty if the size of the body is unknown.
  private var wholeText: String { head.wantedEnd.map { " of \($0 - head.bodyOffset)" } ?? "" }

  /// Adds to a failure the number of bytes that had arrived.
  private func explained(_ failure: TransferFailure, at position: Int64) -> TransferFailure {
    guard case .connectionLost(let reason) = failure else { return failure }
    let count = position - head.bodyOffset
    return .connectionLost(reason: "\(reason) after \(count)\(wholeText) bytes")
  }

  private func countBytes() {
    state.withLock { state in
      let count = state.transfer.receivedByteCount
      session.recordBytes(count - state.countedByteCount)
      state.countedByteCount = count
    }
  }
}

extension ResponseHead {
  /// The position after the last byte of this response; nil if unknown.
  fileprivate var sentEnd: Int64? { sentByteCount.map { bodyOffset + $0 } }
}
