package import Foundation
package import ReelCore

/// The transfer of a rung's file that begins with its index. It delivers the initialization, the index, and
/// consecutive segments, as long as they are adjacent in the file.
///
/// One reader at a time. The reader that holds it keeps the transfer open.
package final class FileTransfer: Sendable {
  /// The URL in the manifest.
  package let url: URL
  /// The times at which the request was sent, and the head of the response arrived.
  package let asked: Duration
  package let answered: Duration
  package let requestCount: Int

  fileprivate struct State {
    /// Nil after the end.
    var body: FetchBody?
    /// The position of the first byte of `unread` in the file.
    var position: Int64 = 0
    var unread: ArraySlice<UInt8>
    /// The end of the last part; nil before the first.
    var end: Int64?
    var isClaimed = false
  }

  private let state: Locked<State>

  /// The largest gap before a part that is read through. A part further ahead gets its own request.
  private static let skipLimit: Int64 = 64 << 10

  /// - Parameter head: The first bytes of the file, already taken from the body.
  package init(_ response: FetchResponse, head: [UInt8], url: URL, asked: Duration, answered: Duration) {
    self.url = url
    self.asked = asked
    self.answered = answered
    requestCount = response.requestCount
    state = Locked(State(body: response.body, unread: head[...]))
  }

  /// Returns the transfer to the first caller, and nil to all others.
  package func claim() -> FileTransfer? {
    state.withLock { state in
      defer { state.isClaimed = true }
      return state.isClaimed ? nil : self
    }
  }

  /// True if it delivers nothing more.
  package var isClosed: Bool { state.withLock { $0.body == nil } }

  /// Ends the transfer.
  package func close() {
    let body = state.withLock { state in
      state.unread = []
      return state.body.take()
    }
    body?.close()
  }

  /// Returns a part of the file, which must be read before the next one; nil if it needs its own request.
  ///
  /// - Parameter range: Nil for the whole file.
  package func part(_ range: ByteRange?) -> (body: FetchBody, isFirst: Bool)? {
    let (start, end) = (range?.offset ?? 0, range?.length.map { (range?.offset ?? 0) + $0 } ?? .max)
    let isFirst = state.withLock { state -> Bool? in
      guard state.body != nil, state.end.map({ $0 == start }) ?? true else { return nil }
      let known = state.position + Int64(state.unread.count)
      guard start >= state.position, state.end != nil || start - known <= Self.skipLimit else { return nil }
      defer { state.end = end }
      return state.end == nil
    }
    guard let isFirst else { return nil }
    return (FetchBody { [self] in try await next(from: start, to: end) }, isFirst)
  }

  // MARK: - Private

  private func next(from start: Int64, to end: Int64) async throws -> [UInt8]? {
    while true {
      let (chunk, body) = state.withLock { ($0.take(from: start, to: end), $0.body) }
      if let chunk { return chunk.isEmpty ? nil : chunk }
      guard let body else { return nil }
      do {
        guard let bytes = try await body.next() else {
          close()
          return nil
        }
        state.withLock { $0.unread = bytes[...] }
      } catch {
        close()
        throw error
      }
    }
  }
}

extension FileTransfer.State {
  /// Returns the next bytes between two positions of the file, and none beyond; nil if more must arrive
  /// first.
  fileprivate mutating func take(from start: Int64, to end: Int64) -> [UInt8]? {
    skip(Int(clamping: max(0, start - position)))
    guard position < end else { return [] }
    guard !unread.isEmpty else { return nil }
    let taken = unread.prefix(Int(clamping: end - position))
    skip(taken.count)
    return Array(taken)
  }

  private mutating func skip(_ count: Int) {
    let skipped = min(count, unread.count)
    unread = unread.dropFirst(skipped)
    position += Int64(skipped)
  }
}

extension FetchResponse {
  /// Returns exactly the bytes of `range`, even if the server sent more.
  package func ranged(_ range: ByteRange?) -> FetchBody {
    guard let range, bodyOffset != range.offset || bodyByteCount != range.length else { return body }
    let body = body
    let rest = Locked((skip: Swift.max(0, range.offset - bodyOffset), take: range.length))
    return FetchBody {
      while rest.withLock({ $0.take != 0 }), let chunk = try await body.next() {
        let wanted = rest.withLock { rest -> [UInt8] in
          let skipped = Int(clamping: Swift.min(rest.skip, Int64(chunk.count)))
          rest.skip -= Int64(skipped)
          var wanted = chunk.dropFirst(skipped)
          if let take = rest.take {
            wanted = wanted.prefix(Int(clamping: take))
            rest.take = take - Int64(wanted.count)
          }
          return Array(wanted)
        }
        if !wanted.isEmpty { return wanted }
      }
      if bodyByteCount != range.length { body.close() }
      return nil
    }
  }
}
