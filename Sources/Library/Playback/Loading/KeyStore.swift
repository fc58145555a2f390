internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The keys of one source's segments, each fetched once.
actor KeyStore {
  private let fetcher: any Fetching
  private let headers: [HeaderField]
  private let runtime: any PlayerRuntime
  private var keys: [URL: Task<[UInt8], any Error>] = [:]

  /// The maximum number of keys. Beyond it, all are dropped.
  private static let limit = 256
  /// A key has 16 bytes. A longer response is an error page.
  private static let byteLimit = 4096

  init(
    fetcher: any Fetching, headers: [HeaderField], runtime: any PlayerRuntime = SystemRuntime.shared
  ) {
    self.fetcher = fetcher
    self.headers = headers
    self.runtime = runtime
  }

  /// Returns the decryptor for `encryption`; nil if the segment is not encrypted, or only its samples are.
  ///
  /// Throws the errors of `check`, `badManifest` for a key without a URL, `badMedia` for an invalid key, and
  /// the fetcher's errors.
  func decryption(for encryption: SegmentEncryption?, at url: URL) async throws -> Decryption? {
    guard let encryption, !encryption.encryptsSamples else { return nil }
    try Self.check(encryption, at: url)
    guard let keyURL = encryption.keyURL else {
      throw ReelError(.badManifest, "the segment is encrypted, and its key has no URL", at: url.reelName)
    }
    guard let vector = encryption.initializationVector else {
      throw ReelError(
        .badManifest, "an encrypted EXT-X-MAP needs a key with an IV (RFC 8216 §4.3.2.5)", at: url.reelName)
    }
    return Decryption(key: try await key(at: keyURL), initializationVector: vector, keyURL: keyURL)
  }

  /// Throws `unsupported` with the method's name for segments that are encrypted as a whole by any method other than
  /// AES-128 with a plain key.
  static func check(_ encryption: SegmentEncryption?, at url: URL) throws(ReelError) {
    guard let encryption, !encryption.encryptsSamples, encryption.method != "AES-128" else { return }
    throw ReelError(
      .unsupported, "the segment is encrypted (\(encryption.method)), and only AES-128 is supported",
      at: url.reelName)
  }

  /// Returns the 16 bytes at a key's URL. Throws `badMedia` for any other number of bytes, and the fetcher's
  /// errors.
  func key(at url: URL) async throws -> [UInt8] {
    while true {
      let task =
        keys[url]
        ?? runtime.throwingTask { [fetcher, headers] in try await Self.key(at: url, fetcher, headers) }
      if keys.count >= Self.limit { keys.removeAll() }
      keys[url] = task
      do {
        return try await withTaskCancellationHandler {
          try await task.value
        } onCancel: {
          task.cancel()
        }
      } catch {
        if keys[url] == task { keys[url] = nil }
        // The task may have been cancelled by another caller that waited for it.
        guard error is CancellationError, !Task.isCancelled else { throw error }
      }
    }
  }

  // MARK: - Private

  private static func key(
    at url: URL, _ fetcher: any Fetching, _ headers: [HeaderField]
  ) async throws -> [UInt8] {
    do {
      let response = try await fetcher.fetch(FetchRequest(url: url, headers: headers, purpose: .key))
      let bytes = try await response.body.collect(upTo: byteLimit)
      guard bytes.count == AES128Decryptor.blockByteCount else {
        throw ReelError(
          .badMedia, "the key has \(bytes.count) bytes, not \(AES128Decryptor.blockByteCount)",
          at: url.reelName)
      }
      return bytes
    } catch let error as ReelError {
      throw error.located(at: url.reelName)
    }
  }
}

/// The decryption of the body of one segment.
struct Decryption: Sendable {
  let key: [UInt8]
  let initializationVector: [UInt8]
  let keyURL: URL

  /// Returns the decrypted bytes of a whole body. Throws `badMedia`, with the key's URL, if decryption fails.
  func plain(_ bytes: [UInt8]) throws(ReelError) -> [UInt8] {
    var decryptor = try AES128Decryptor(key: key, initializationVector: initializationVector)
    let plain = decryptor.update(bytes)
    return plain + (try ending(of: &decryptor))
  }

  /// Returns the decrypted body. Its pulls throw `badMedia`, with the key's URL, if decryption fails.
  func plain(_ body: FetchBody) throws(ReelError) -> FetchBody {
    let state = Locked<AES128Decryptor?>(
      try AES128Decryptor(key: key, initializationVector: initializationVector))
    return FetchBody {
      while let chunk = try await body.next() {
        let plain = state.withLock { $0?.update(chunk) ?? [] }
        if !plain.isEmpty { return plain }
      }
      let last = try state.withLock { decryptor throws(ReelError) -> [UInt8]? in
        guard var ending = decryptor.take() else { return nil }
        return try self.ending(of: &ending)
      }
      return last.flatMap { $0.isEmpty ? nil : $0 }
    }
  }

  private func ending(of decryptor: inout AES128Decryptor) throws(ReelError) -> [UInt8] {
    do throws(ReelError) {
      return try decryptor.finish()
    } catch {
      var named = error
      named.reason += " (key \(keyURL.reelName))"
      throw named
    }
  }
}
