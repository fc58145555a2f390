import HTTPTypes
package import Logging
package import ReelCore
package import ReelFFmpeg
package import ReelManifest
package import ReelSources

/// Fetches single segments of a manifest: exactly the one that is named, from its first location, with nothing in its
/// place, and with everything that is wrong with it.
package struct SegmentFetcher: Sendable {
  /// The bytes of a segment.
  package struct Content: Sendable {
    /// The bytes, decrypted if the whole segment was encrypted.
    package var bytes: [UInt8] = []
    /// The size that the answer or the manifest states; nil if neither does.
    package var statedByteCount: Int64?
    /// True if the whole segment was encrypted.
    package var isDecrypted = false
    /// The reason why it counts as cut off; nil if it looks whole.
    package var damage: ReelError?
    /// The reason why it is no segment; nil if it looks like one.
    package var fault: ReelError?
    /// True if it was read only up to the limit.
    package var isCut = false
  }

  private let loader: SegmentLoader
  private let context: TrackContext
  /// Ends waits for keys of samples.
  package let scope: LoadScope

  /// - Parameters:
  ///   - manifest: The manifest; its fetcher is used.
  ///   - scope: Ends waits for keys of samples.
  package init(
    _ manifest: LoadedManifest, configuration: LoadingConfiguration, name: String,
    scope: LoadScope, logger: Logger
  ) {
    let recorder = StartupRecorder()
    loader = SegmentLoader(
      fetcher: manifest.fetcher, keys: KeyStore(fetcher: manifest.fetcher),
      location: ServiceLocation(roams: false), recorder: recorder, initializations: InitializationStore())
    context = TrackContext(
      name: name, fetcher: manifest.fetcher, configuration: configuration, scope: scope, recorder: recorder,
      gate: nil, logger: logger, readsAhead: false)
    self.scope = scope
  }

  /// Fetches the key of a segment that is encrypted as a whole, unless it is known. Throws like
  /// `KeyStore.decryption(for:at:)`.
  package func key(of segment: SegmentReference) async throws {
    _ = try await loader.keys.decryption(for: segment.encryption, at: segment.url)
  }

  /// Returns the initialization before a segment; empty if there is none.
  package func initialization(of segment: SegmentReference) async throws -> [UInt8] {
    try await loader.initialization(of: segment)
  }

  /// Returns a segment. An early end and damage are a part of the result.
  ///
  /// - Parameters:
  ///   - initialization: The bytes before it, which decide how it is checked.
  ///   - limit: The largest number of bytes.
  ///   - cutsOff: True to return the bytes up to `limit` of a larger segment.
  ///   - progress: Receives the number of bytes that have arrived, at each change.
  ///
  /// Throws `ReelError`: `badMedia` for what is no segment or is larger than `limit`, and the errors of fetching and
  /// decrypting.
  package func content(
    of segment: SegmentReference, after initialization: [UInt8], upTo limit: Int, cutsOff: Bool = false,
    progress: @Sendable (Int) -> Void = { _ in }
  ) async throws -> Content {
    let answer = try await loader.open(segment)
    var content = Content(statedByteCount: answer.byteCount, isDecrypted: answer.isDecrypted)
    var sanitizer = SegmentDownload.Form(initialization: initialization, isChecked: true).sanitizer
    do {
      while let chunk = try await answer.body.next() {
        guard content.bytes.count + chunk.count <= limit else {
          answer.close()
          if cutsOff {
            content.bytes += chunk.prefix(limit - content.bytes.count)
            content.isCut = true
            return content
          }
          throw ReelError(.badMedia, "larger than \(limit) bytes", at: segment.url.reelName)
        }
        content.bytes += chunk
        progress(content.bytes.count)
        if content.fault == nil { content.fault = Self.fault(in: chunk, &sanitizer) }
      }
      if content.fault == nil { Self.finish(&sanitizer, into: &content) }
    } catch let error as ReelError where error.isOfEarlyEnd || error.kind == .network {
      // Lost for good: the transport has tried to go on.
      guard !content.bytes.isEmpty else { throw error }
      content.damage = error
    }
    return content
  }

  private static func fault(in chunk: [UInt8], _ sanitizer: inout SegmentSanitizer?) -> ReelError? {
    guard var checking = sanitizer else { return nil }
    defer { sanitizer = checking }
    do throws(ReelError) {
      _ = try checking.pass(chunk)
      return nil
    } catch {
      return error
    }
  }

  private static func finish(_ sanitizer: inout SegmentSanitizer?, into content: inout Content) {
    guard var checking = sanitizer else { return }
    do throws(ReelError) {
      content.damage = try checking.finish().damage
    } catch {
      content.fault = error
    }
  }

  /// Returns the size of a segment as a request for its head, or for its first byte, states it; nil if neither does.
  ///
  /// Throws the errors of fetching.
  package func byteCount(of segment: SegmentReference) async throws -> Int64? {
    if let length = segment.byteRange?.length { return length }
    var request = FetchRequest(.head, url: segment.url, purpose: .segment)
    do {
      let response = try await loader.fetcher.fetch(request)
      if let count = response.bodyByteCount { return count }
    } catch let error as ReelError where error.status == 405 || error.status == 501 || error.status == 403 {
      // The server does not answer HEAD.
    }
    request.method = .get
    request.range = ByteRange(offset: 0, length: 1)
    let response = try await loader.fetcher.fetch(request)
    response.body.close()
    return response.resourceByteCount
  }

  package func sampleKeys(
    of segment: SegmentReference, protection: ContentProtection?
  ) -> any SampleKeys {
    ContainerKeys(
      context: context, protection: protection, location: segment.url.reelName, scope: scope,
      store: loader.keys
    ) { _ in segment.encryption }
  }
}
