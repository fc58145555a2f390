internal import Foundation
internal import ReelCore
internal import ReelManifest
internal import Synchronization

/// The body of one answer, from the folder, from transfers that run, and from the server for what neither has.
final class CachedRead: Sendable {
  private struct State {
    var position: Int64
    /// The transfer that brings the next bytes, of which this is a reader.
    var transfer: SharedTransfer?
  }

  private let request: FetchRequest
  private let entry: MediaCache.Entry
  /// Nil if the size is unknown: then the first transfer brings the end.
  private let end: Int64?
  private let cache: MediaCache
  private let state: Locked<State>
  private let stored = Atomic<Int64>(0)

  private static let chunkByteCount = 256 << 10

  /// - Parameter transfer: One that has the first byte; the read is one of its readers already.
  init(
    _ request: FetchRequest, of entry: MediaCache.Entry, from start: Int64, to end: Int64?,
    joining transfer: SharedTransfer?, in cache: MediaCache
  ) {
    self.request = request
    self.entry = entry
    self.end = end
    self.cache = cache
    state = Locked(State(position: start, transfer: transfer))
  }

  /// The number of bytes that came from the folder.
  var storedByteCount: Int64 { stored.load(ordering: .relaxed) }

  /// Returns the next bytes; nil at the end.
  func next() async throws -> [UInt8]? {
    while true {
      let (position, transfer) = state.withLock { ($0.position, $0.transfer) }
      let rest = end.map { $0 - position } ?? .max
      guard rest > 0 else {
        // The connection of an answer that was read to its end can be used again.
        if let transfer, position == transfer.bodyEnd { _ = try? await transfer.next(at: position) }
        return nil
      }
      if let transfer {
        switch try await transfer.next(at: position) {
        case .bytes(let bytes): return advance(over: bytes, of: rest)
        // It ended before the range that was asked for: so does the resource.
        case .ended where position < transfer.end ?? .max: return nil
        case .ended: leave()
        case .passed: break
        }
      }
      let stored = cache.folder.read(
        entry.key, version: entry.answer.version, from: position,
        maximum: Int(min(rest, Int64(Self.chunkByteCount))))
      if let stored {
        self.stored.add(Int64(stored.count), ordering: .relaxed)
        return advance(over: stored, of: rest)
      }
      leave()
      try await findTransfer(at: position)
    }
  }

  /// Ends the read, and reports it if no answer of a server has done so.
  func end(_ result: Result<Void, any Error>) {
    leave()
    guard let report = request.report else { return }
    var metrics = RequestMetrics(url: request.url, purpose: request.purpose, requestCount: 0)
    // A reader that has all bytes need not ask for more.
    metrics.outcome = state.withLock { $0.position } == end ? .completed : RequestMetrics.Outcome(result)
    report(metrics)
  }

  // MARK: - Private

  private func advance(over bytes: [UInt8], of rest: Int64) -> [UInt8] {
    let wanted = Int64(bytes.count) > rest ? Array(bytes.prefix(Int(rest))) : bytes
    state.withLock { $0.position += Int64(wanted.count) }
    return wanted
  }

  private func leave() {
    if let transfer = state.withLock({ $0.transfer.take() }) { cache.running.leave(transfer) }
  }

  /// Joins a transfer that brings the bytes at a position, or begins one.
  private func findTransfer(at position: Int64) async throws {
    let range = ByteRange(offset: position, length: end.map { $0 - position })
    switch cache.running.turn(for: entry.key, range, version: entry.answer.version) {
    case .wait(let opening):
      await opening.wait()
      try Task.checkCancellation()
    case .join(let transfer):
      state.withLock { $0.transfer = transfer }
    case .open(let opening):
      var transfer: SharedTransfer?
      defer {
        cache.running.end(opening, with: transfer)
        state.withLock { $0.transfer = transfer }
      }
      transfer = try await cache.fetchRest(request, of: entry, from: position, to: end)
    }
  }
}

extension FetchResponse {
  /// The end of the range of a request that this is the answer to; nil for the end of the resource.
  func end(to request: FetchRequest) -> Int64? { head?.status == 206 ? request.range?.end : nil }

  /// Reads the whole body if it is a manifest, and returns its text. The body gives the same bytes as before.
  mutating func takeManifest(upTo limit: Int) async throws -> (bytes: [UInt8], format: ManifestFormat)? {
    let body = body
    var bytes: [UInt8] = []
    while bytes.count < TextFormat.byteCount, let chunk = try await body.next() { bytes += chunk }
    guard case .manifest(let format) = TextFormat(bytes) else {
      restore(bytes, body)
      return nil
    }
    while bytes.count <= limit, let chunk = try await body.next() { bytes += chunk }
    restore(bytes, body)
    isReceived = true
    guard bytes.count <= limit else {
      // Too large to be kept.
      head = nil
      return nil
    }
    return (bytes, format)
  }

  private mutating func restore(_ first: [UInt8], _ rest: FetchBody) {
    let read = Locked<[UInt8]?>(first.isEmpty ? nil : first)
    body = FetchBody {
      if let first = read.withLock({ $0.take() }) { return first }
      return try await rest.next()
    }
  }
}
