package import Foundation
package import ReelCore

/// Sends the requests of one source, with its header fields, within the limits of what a manifest may refer to: one
/// from the network can't refer to local files. And all parts of a resource are of one version: a store in front of a server
/// may have parts of an older one.
package struct ConfinedFetcher: Fetching {
  /// What tells one version of a resource from others.
  private struct Version {
    var validator: String?
    var byteCount: Int64?
    /// True if it came from a store, without the server's word for it.
    let isStored: Bool

    init(_ response: FetchResponse) {
      validator = response.validator
      byteCount = response.resourceByteCount
      isStored = response.requestCount == 0
    }

    func differs(from other: Version) -> Bool {
      func areOther<Value: Equatable>(_ first: Value?, _ second: Value?) -> Bool {
        first != nil && second != nil && first != second
      }
      // What a server does not say of a part can't be known to hold.
      if isStored != other.isStored {
        return validator != other.validator || areOther(byteCount, other.byteCount)
      }
      // Servers behind one name may have validators of their own.
      return isStored && (areOther(validator, other.validator) || areOther(byteCount, other.byteCount))
    }
  }

  private let base: any Fetching
  /// The URL of the source; nil for standard input. Only a local one can refer to local files.
  private let source: URL?
  private let headers: SourceHeaders
  private let storeUse: StoreUse
  /// The versions of the resources that are read in parts.
  private let versions = Locked<[URL: Version]>([:])
  /// A live stream never ends, and each of its segments is a resource.
  private static let versionLimit = 1000

  package init(
    base: any Fetching, source: URL?, headers: SourceHeaders, storeUse: StoreUse = StoreUse()
  ) {
    self.base = base
    self.source = source
    self.headers = headers
    self.storeUse = storeUse
  }

  package func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let scheme = request.url.scheme?.lowercased() ?? ""
    // A data: URL accesses nothing else.
    guard ["http", "https", "data"].contains(scheme) || scheme == "file" && source?.isFileURL != false else {
      throw ReelError(
        .unsupported,
        scheme == "file"
          ? "a remote manifest refers to a local file"
          : "the scheme \(scheme.isEmpty ? "(none)" : scheme) is not supported",
        at: request.url.absoluteString)
    }
    guard request.url.port.map({ (1...65535).contains($0) }) ?? true else {
      throw ReelError(.badManifest, "the URL has no valid port", at: request.url.absoluteString)
    }
    var sent = request
    headers.apply(to: &sent)
    sent.url = sent.url.withoutUserInformation
    sent.storeUse = storeUse
    do {
      let response = try await base.fetch(sent)
      if !storeUse.isBypassed, request.range != nil || request.purpose == .source {
        try check(response, to: request)
      }
      return response
    } catch let error as ReelError where error.kind == .usage && request.url != source {
      // The URL comes from a manifest, so it is not a usage error.
      throw ReelError(.badManifest, error.reason, at: error.location, advice: error.advice)
    }
  }

  private func check(_ response: FetchResponse, to request: FetchRequest) throws(ReelError) {
    let version = Version(response)
    let isOther = versions.withLock { versions in
      guard let first = versions[request.url] else {
        if versions.count >= Self.versionLimit { versions = [:] }
        versions[request.url] = version
        return false
      }
      return version.differs(from: first)
    }
    guard isOther else { return }
    response.body.close()
    throw ReelError(
      .server, found: .otherVersion, "the resource changed, and parts of it were stored",
      at: request.url.reelName)
  }
}

/// Counts the bytes of response bodies that have arrived and have not been taken yet.
package struct CountedFetcher: Fetching {
  private let base: any Fetching
  private let memory: LoadingMemory

  package init(base: any Fetching, memory: LoadingMemory) {
    self.base = base
    self.memory = memory
  }

  package func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    request.recordHeld = { [memory] in memory.addInFlight($0) }
    return try await base.fetch(request)
  }
}

/// Counts requests and the bytes of their responses, separately for the network and for local files, and
/// keeps the last temporary failure.
package final class TrafficCounter: Fetching {
  package struct Traffic: Sendable, Hashable {
    /// The number of requests, including retries and redirects. Opening a local file counts as one.
    package var requestCount = 0
    /// The number of body bytes after decompression.
    package var byteCount: Int64 = 0
  }

  private struct Counts {
    var network = Traffic()
    var local = Traffic()
    /// The last failed attempt, and the requested URL; nil once that URL has been answered.
    var failure: (url: URL, error: ReelError)?
  }

  private let base: any Fetching
  private let collectsChunks: Bool
  private let counts = Locked(Counts())

  /// The minimum chunk size for consumers that need whole frames and may abandon a body in the middle.
  private static let chunkByteCount = 8 << 10

  /// - Parameter collectsChunks: True if the consumer needs whole frames: bytes are not delivered in the
  ///   small pieces of a slow network.
  package init(_ base: any Fetching, collectsChunks: Bool = false) {
    self.base = base
    self.collectsChunks = collectsChunks
  }

  /// The network traffic so far.
  package var network: Traffic { counts.withLock { $0.network } }
  /// The traffic of local files and of a store so far.
  package var local: Traffic { counts.withLock { $0.local } }

  /// The last temporary failure of a request or a body, unless its URL has been answered since: the probable
  /// reason why the source is waiting, if there is no other.
  package var lastFailure: ReelError? { counts.withLock { $0.failure?.error } }

  package func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    if collectsChunks {
      request.minimumChunkByteCount = request.range?.length.map { Int(clamping: $0) } ?? Self.chunkByteCount
    }
    let isLocal = request.url.isFileURL
    // The requests counted so far for this transfer. More may be reported until it ends.
    let counted = Locked(0)
    record(1, of: counted, isLocal: isLocal)
    request.addReport { [self] in record($0.requestCount, of: counted, isLocal: isLocal) }
    let url = request.url
    request.addFailedAttempt { [self] error, _ in record(error, of: url) }
    let sent = request
    let response = try await recording(url) { [base] in try await base.fetch(sent) }
    record(response.requestCount, of: counted, isLocal: isLocal)
    // Nothing was sent for what is stored.
    if response.requestCount == 0 { add(Traffic(requestCount: -1), isLocal: isLocal) }
    let isStored = response.pieceOrigin()
    return response.wrappingBody { [self] body in
      let chunk = try await recording(url) { try await body.next() }
      if let chunk { add(Traffic(byteCount: Int64(chunk.count)), isLocal: isLocal || isStored()) }
      return chunk
    }
  }

  // MARK: - Private

  /// Records whether a step of a request succeeds.
  private func recording<Success: Sendable>(
    _ url: URL, _ body: @Sendable () async throws -> Success
  ) async throws -> Success {
    do {
      let result = try await body()
      counts.withLock { if $0.failure?.url == url { $0.failure = nil } }
      return result
    } catch {
      if let error = error as? ReelError { record(error, of: url) }
      throw error
    }
  }

  private func record(_ error: ReelError, of url: URL) {
    if error.isTemporary { counts.withLock { $0.failure = (url, error) } }
  }

  private func record(_ requestCount: Int, of counted: Locked<Int>, isLocal: Bool) {
    let news = counted.withLock { counted in
      defer { counted = max(counted, requestCount) }
      return max(0, requestCount - counted)
    }
    add(Traffic(requestCount: news), isLocal: isLocal)
  }

  private func add(_ traffic: Traffic, isLocal: Bool) {
    counts.withLock { counts in
      let key = isLocal ? \Counts.local : \Counts.network
      counts[keyPath: key].requestCount += traffic.requestCount
      counts[keyPath: key].byteCount += traffic.byteCount
    }
  }
}
