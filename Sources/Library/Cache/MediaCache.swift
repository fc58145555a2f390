public import Foundation
internal import HTTPTypes
public import Logging
public import ReelCore
internal import ReelManifest

/// A fetcher that keeps what another one fetches in a folder, as a private cache (RFC 9111).
///
/// It keeps manifests, initializations, indexes and media of `http` and `https` URLs, as long as the server's fields allow:
/// what is fresh is used without a request; what is stale is asked for again with its validator, and used without asking if
/// the server can't be reached, unless its fields forbid that. Media whose server says nothing at all is assumed to be fresh
/// for a time. Ranges are kept as ranges: a request sends for what is missing, and two readers of a range fetch it once.
///
/// It never keeps keys, manifests of live streams, manifests that contain keys or URLs with queries, and what was fetched with
/// credentials or cookies. Files are named by hashes: no URL is in the folder but those in manifests and the targets of
/// redirects without queries.
///
/// Several processes may share a folder. The smallest limit of those that run holds. A folder that can't be used is named once
/// in the log, and everything is fetched.
public final class MediaCache: Fetching, ConnectionOpening {
  private let base: any Fetching
  let folder: CacheFolder
  let running = RunningTransfers()
  private let manifests = KeptManifests()
  private let assumedFreshness: Duration
  private let clock: any WallClock
  /// What the fetcher behind sends unless a request says otherwise; a server may vary by it.
  private let userAgent: String?
  private let logger: Logger
  /// The servers that could not be reached, and until when they are not asked if there is something stored.
  private let unreachable = Locked<[ServerAddress: ContinuousClock.Instant]>([:])

  /// How long a server may take to confirm an answer that may be used without it.
  private static let patience = Duration.seconds(5)
  /// How long a server that could not be reached is left alone.
  private static let pause = Duration.seconds(30)
  private static let manifestByteLimit = 16 << 20

  /// Creates a cache. The folder is created if it does not exist. One with other content is left alone.
  ///
  /// - Parameters:
  ///   - folder: A local folder.
  ///   - byteLimit: The maximum number of bytes on disk.
  ///   - fetcher: Fetches what is not stored.
  ///   - assumedFreshness: The lifetime of media whose server states neither a lifetime nor a validator.
  ///   - logger: Gets a warning if the folder can't be used or a file is damaged.
  public convenience init(
    at folder: URL, byteLimit: Int64, inFrontOf fetcher: any Fetching,
    assumedFreshness: Duration = .seconds(86_400), logger: Logger = Logger(label: "reel.cache")
  ) {
    self.init(
      at: folder, byteLimit: byteLimit, inFrontOf: fetcher, assumedFreshness: assumedFreshness,
      clock: SystemWallClock(), logger: logger)
  }

  package init(
    at folder: URL, byteLimit: Int64, inFrontOf fetcher: any Fetching, assumedFreshness: Duration,
    clock: any WallClock, logger: Logger
  ) {
    base = fetcher
    userAgent = (fetcher as? any AgentNaming)?.userAgent
    self.folder = CacheFolder(at: folder, byteLimit: byteLimit, logger: logger)
    self.assumedFreshness = assumedFreshness
    self.clock = clock
    self.logger = logger
  }

  /// Opens a connection with the fetcher behind.
  public func openConnection(to url: URL) { (base as? any ConnectionOpening)?.openConnection(to: url) }

  /// Answers from the folder, or from the fetcher behind.
  ///
  /// - Throws: The errors of that fetcher, also from the body; `ReelError` of kind `server` if the resource changed while parts of
  ///   it came from the folder.
  public func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    guard var wanted = StorableRequest(request, userAgent: userAgent) else {
      // What is stored did not do.
      if request.storeUse?.isBypassed ?? false { folder.remove(EntryKey(of: request.url)) }
      return try await base.fetch(request)
    }
    var requestCount = 0
    var verdict: StoredAnswer.Verdict?
    var mayWait = true
    while true {
      try Task.checkCancellation()
      let entry = verdict == .isOther ? nil : entry(for: wanted)
      if let entry, verdict != nil || isUsable(entry, for: wanted), hasStart(of: entry, wanted) {
        let response = response(from: entry, to: wanted.request, requestCount: requestCount)
        guard verdict == .holdsOnce else { return response }
        return response.wrappingBody(onEnd: { [folder] _ in folder.remove(entry.key) }) {
          try await $0.next()
        }
      }
      switch running.turn(for: wanted.key, wanted.request.range ?? .all, mayWait: mayWait) {
      case .wait(let opening):
        await opening.wait()
        // If the other request brought nothing to share, nor may the next.
        mayWait = false
      case .join(let transfer):
        guard transfer.answer.matches(wanted.request) else {
          running.leave(transfer)
          return try await base.fetch(wanted.request)
        }
        return response(
          from: Entry(key: transfer.key, answer: transfer.answer), joined: transfer, to: wanted.request,
          requestCount: requestCount)
      case .open(let opening):
        var transfer: SharedTransfer?
        defer { running.end(opening, with: transfer) }
        switch try await outcome(of: &wanted, confirming: verdict == nil ? entry : nil) {
        case .answer(var answer):
          answer.response.requestCount += requestCount
          let response: FetchResponse
          (response, transfer) = try await keep(answer, to: wanted)
          return response
        case .confirmation(let found, let count):
          verdict = found
          requestCount += count
        }
      }
    }
  }

  /// Ends all transfers, and returns once what they brought is on disk: for a program that is about to end.
  public func finish() async { running.finish() }

  // MARK: - The folder

  /// What is in the folder of a cache.
  ///
  /// - Throws: `ReelError` of kind `noSuchFile`, or `usage` if the folder is not a cache.
  public static func contents(of folder: URL) throws(ReelError) -> CacheContents {
    try CacheFolder.contents(of: folder)
  }

  /// Removes everything from the folder of a cache. Programs that use it go on.
  ///
  /// - Throws: Like `contents(of:)`; `cannotWriteOutput` if something can't be removed.
  public static func removeAll(in folder: URL) throws(ReelError) {
    _ = try CacheFolder.remove(in: folder, unusedSince: .max)
  }

  /// Removes what was not used for a time, and returns how many resources that were and the bytes that they took.
  ///
  /// - Throws: Like `removeAll(in:)`.
  @discardableResult
  public static func remove(
    in folder: URL, unusedFor age: Duration
  ) throws(ReelError) -> (entryCount: Int, byteCount: Int64) {
    // More than this is before any file.
    let age = min(max(age, .zero), .seconds(9_000_000_000))
    return try CacheFolder.remove(in: folder, unusedSince: CacheSurvey.now - Int64(age / .nanoseconds(1)))
  }

  // MARK: - Requests

  /// What is stored of a resource.
  struct Entry {
    let key: EntryKey
    var answer: StoredAnswer
  }

  /// A request, and what is stored of the answer to it.
  typealias Stored = (request: StorableRequest, entry: Entry)

  /// An answer with a body.
  struct ServerAnswer {
    var response: FetchResponse
    /// The end of the range which the server was asked for; nil for the end of the resource.
    let end: Int64?
    let sentAt: WallTime
    let receivedAt: WallTime
  }

  enum Outcome {
    case answer(ServerAnswer)
    /// What the server said of a stored answer, and in how many answers; in none if it did not answer, and what is stored may
    /// be used without it.
    case confirmation(StoredAnswer.Verdict, requestCount: Int)
  }

  /// Takes what was asked ahead, or sends the request; and asks ahead about what a stored manifest leads to.
  ///
  /// - Parameter wanted: Loses its report with the first answer.
  private func outcome(of wanted: inout StorableRequest, confirming entry: Entry?) async throws -> Outcome {
    let asked = entry == nil ? nil : wanted.request.storeUse?.memory(AskedAhead.init)
    if let (outcome, report) = await asked?.take(wanted.key, wanted.request.range) {
      if let report {
        report.pass(to: wanted.request.report)
        wanted.request.report = nil
      }
      return outcome
    }
    let sent = wanted
    wanted.request.report = nil
    guard let entry, let asked else { return try await send(sent, confirming: entry, isAhead: false) }
    let began = ContinuousClock.now
    let asking = Task { if entry.answer.isManifest { askAhead(of: entry, sent.request, asked) } }
    let outcome = try await send(sent, confirming: entry, isAhead: false)
    // Its reader must find what was asked about.
    await asking.value
    asked.confirmed(after: .now - began)
    return outcome
  }

  /// - Parameters:
  ///   - entry: What is stored; it may lack the first byte that is wanted.
  ///   - isAhead: True if nobody waits for the answer yet.
  func send(_ wanted: StorableRequest, confirming entry: Entry?, isAhead: Bool) async throws -> Outcome {
    let request = wanted.request
    var sent = request
    sent.wantsHead = true
    let sentAt = clock.now
    func answer(_ response: FetchResponse) -> Outcome {
      .answer(
        ServerAnswer(
          response: response, end: response.end(to: sent), sentAt: sentAt, receivedAt: clock.now))
    }
    guard let entry, hasStart(of: entry, wanted) else {
      if let entry { sent.range = missing(of: entry, request) }
      do {
        return answer(try await base.fetch(sent))
      } catch let error as ReelError where error.status == 416 {
        // Its reader asks for what the stored size promises.
        guard let entry, let size = entry.answer.resourceByteCount, request.range?.offset ?? 0 < size else {
          throw error
        }
        folder.remove(entry.key)
        throw Self.otherVersion(of: request)
      }
    }
    let mayStandIn = !isAhead && entry.answer.servesDisconnected
    sent.headers += entry.answer.conditions
    let response: FetchResponse
    do {
      response = try await mayStandIn ? fetchPatiently(sent) : base.fetch(sent)
    } catch let error as ReelError where mayStandIn && mayReplace(error, entry) {
      // Of several requests at once, one says so.
      let isKnown = error.status == nil && isUnreachable(wanted.server)
      if error.status == nil { unreachable.withLock { $0[wanted.server] = .now + Self.pause } }
      if !isKnown {
        logger.warning(
          "the server can't be asked; what is stored is used",
          metadata: ["url": "\(request.url.logText)", "reason": "\(error.reason)"])
      }
      return .confirmation(.holds, requestCount: 0)
    }
    unreachable.withLock { $0[wanted.server] = nil }
    guard let head = response.head, head.status == 304 else {
      return answer(response)
    }
    var answer = entry.answer
    // The references of a manifest are relative to its place.
    let isInPlace = !answer.isManifest || answer.url(of: request) == response.url
    let verdict = isInPlace ? answer.update(with: head, sentAt: sentAt, receivedAt: clock.now) : .isOther
    switch verdict {
    case .holds: record(Entry(key: entry.key, answer: answer))
    case .holdsOnce: break
    case .isOther: folder.remove(entry.key)
    }
    return .confirmation(verdict, requestCount: response.requestCount)
  }

  private func mayReplace(_ error: ReelError, _ entry: Entry) -> Bool {
    if let status = error.status {
      return (500...504).contains(status)
        && entry.answer.servesErrors(at: clock.now, assuming: assumedFreshness)
    }
    return error.kind == .network || error.kind == .timedOut
  }

  private func fetchPatiently(_ request: FetchRequest) async throws -> FetchResponse {
    let end = SystemMonotonicClock().now + Self.patience
    let response = try await TimeLimit.run(until: end) { [base] in try await base.fetch(request) }
    if let response { return response }
    throw ReelError(
      .timedOut, "no answer within \(Self.patience.components.seconds) s", at: request.url.absoluteString)
  }

  /// The part of the wanted range before bytes that are stored; all of it if none are.
  private func missing(of entry: Entry, _ request: FetchRequest) -> ByteRange? {
    let position = request.range?.offset ?? 0
    guard entry.answer.strongValidator != nil, entry.answer.supportsRanges,
      entry.answer.resourceByteCount != nil,
      let next = folder.nextStart(of: entry.key, version: entry.answer.version, after: position),
      request.range?.end.map({ next < $0 }) ?? true
    else { return request.range }
    return ByteRange(offset: position, length: next - position)
  }

  // MARK: - Answers

  /// Keeps an answer of the server if that is allowed, and returns it, with the transfer of its body into the folder.
  private func keep(
    _ received: ServerAnswer, to wanted: StorableRequest
  ) async throws -> (FetchResponse, SharedTransfer?) {
    let (request, key) = (wanted.request, wanted.key)
    var response = received.response
    var text: (bytes: [UInt8], format: ManifestFormat)?
    if request.range == nil, request.purpose == .source || request.purpose == .manifest {
      text = try await response.takeManifest(upTo: Self.manifestByteLimit)
      // What is not known to be media is not assumed to be fresh.
      if text == nil, request.purpose == .manifest { response.head = nil }
    }
    guard
      var answer = StoredAnswer(
        response, to: request, isManifest: text != nil, sentAt: received.sentAt,
        receivedAt: received.receivedAt)
    else {
      // A part says nothing of the whole.
      if response.head?.status != 206 { folder.remove(key) }
      return (response, nil)
    }
    if let (bytes, format) = text {
      answer.resourceByteCount = Int64(bytes.count)
      let manifest = KeptManifests.Manifest(entry: Entry(key: key, answer: answer), bytes: bytes)
      switch manifests.decision(
        on: manifest, format, requested: request.url, at: response.url, now: clock.now)
      {
      case .store(let manifests): for manifest in manifests { store(manifest) }
      case .remove(let keys): for key in keys { folder.remove(key) }
      }
      return (response, nil)
    }
    if answer.resourceByteCount == nil, let old = storedAnswer(key), old.version == answer.version {
      answer.resourceByteCount = old.resourceByteCount
    }
    // Other versions are of no use any more.
    folder.remove(key, exceptVersion: answer.version)
    let entry = Entry(key: key, answer: answer)
    guard record(entry) else { return (response, nil) }
    let transfer = share(response, to: received.end, entry)
    response = self.response(
      from: entry, joined: transfer, to: request, requestCount: response.requestCount, response)
    return (response, transfer)
  }

  /// Returns the transfer of a body into the folder.
  private func share(
    _ response: FetchResponse, to end: Int64?, _ entry: Entry, isKept: Bool = true
  ) -> SharedTransfer {
    SharedTransfer(
      response, to: end, of: entry.key, answer: entry.answer, isKept: isKept, into: folder
    ) { [weak self] position in
      guard let self, isKept, entry.answer.resourceByteCount == nil, position < end ?? .max else { return }
      var entry = entry
      entry.answer.resourceByteCount = position
      record(entry)
    }
  }

  /// - Parameters:
  ///   - transfer: Where its first byte is, if it is not stored.
  ///   - own: The answer of the server to this very request.
  private func response(
    from entry: Entry, joined transfer: SharedTransfer? = nil, to request: FetchRequest, requestCount: Int,
    _ own: FetchResponse? = nil
  ) -> FetchResponse {
    let answer = entry.answer
    if own == nil { request.storeUse?.recordUse() }
    // A stored playlist is complete.
    if answer.isManifest {
      for parent in manifests.take(naming: request.url) { store(parent) }
    }
    let start = own?.bodyOffset ?? request.range?.offset ?? 0
    let end = answer.end(of: request.range)
    let read = CachedRead(request, of: entry, from: start, to: end, joining: transfer, in: self)
    var response =
      own
      ?? FetchResponse(
        url: answer.url(of: request), contentType: answer.contentType, bodyOffset: start, bodyByteCount: nil,
        resourceByteCount: answer.resourceByteCount, supportsRanges: answer.supportsRanges,
        body: FetchBody { nil })
    // The server may have been asked for less than the request wants, and the resource may end before that.
    response.bodyByteCount = answer.resourceByteCount == nil ? nil : end.map { $0 - start }
    response.validator = answer.strongValidator
    response.requestCount = requestCount
    response.storedByteCount = { read.storedByteCount }
    response.body = FetchBody(onEnd: { read.end($0) }) { try await read.next() }
    return response
  }

  /// Sends for the rest of a body, and returns its transfer.
  ///
  /// - Throws: The errors of the fetcher behind, and `server` if it has another version.
  func fetchRest(
    _ request: FetchRequest, of entry: Entry, from position: Int64, to end: Int64?
  ) async throws -> SharedTransfer {
    guard let validator = entry.answer.strongValidator else {
      throw ReelError(
        .network, "the rest of an answer without a validator is missing", at: request.url.absoluteString)
    }
    var rest = request
    rest.report = nil
    rest.wantsHead = true
    // Without a size, only the server knows where it ends.
    let next =
      entry.answer.resourceByteCount == nil
      ? nil : folder.nextStart(of: entry.key, version: entry.answer.version, after: position)
    rest.range = ByteRange(
      offset: position, length: [next, end].compactMap { $0 }.min().map { $0 - position })
    rest.headers[.ifRange] = validator
    do {
      let response = try await base.fetch(rest)
      let size = response.resourceByteCount
      guard StoredAnswer.strongValidator(response) == validator,
        size == nil || entry.answer.resourceByteCount == nil || size == entry.answer.resourceByteCount
      else {
        response.body.close()
        throw Self.otherVersion(of: request)
      }
      let isKept = response.head.map(StoredAnswer.mayKeep) ?? false
      return share(response, to: response.end(to: rest), entry, isKept: isKept)
    } catch let error as ReelError where error.found == .otherVersion || error.status == 416 {
      folder.remove(entry.key)
      throw Self.otherVersion(of: request)
    }
  }

  private static func otherVersion(of request: FetchRequest) -> ReelError {
    ReelError(
      .server, found: .otherVersion, "the resource changed, and parts of it were stored",
      at: request.url.absoluteString)
  }

  // MARK: - Entries

  /// What is stored of the answer to a request; nil if nothing is.
  func stored(_ request: FetchRequest) -> Stored? {
    guard let wanted = StorableRequest(request, userAgent: userAgent) else { return nil }
    return entry(for: wanted).map { (wanted, $0) }
  }

  private func entry(for wanted: StorableRequest) -> Entry? {
    guard let answer = storedAnswer(wanted.key), answer.matches(wanted.request) else { return nil }
    let entry = Entry(key: wanted.key, answer: answer)
    // Without a strong validator, no other bytes can follow those of the one answer that is stored.
    return answer.strongValidator != nil || isWhole(entry, nil) ? entry : nil
  }

  private func storedAnswer(_ key: EntryKey) -> StoredAnswer? {
    folder.record(of: key).flatMap { try? JSONDecoder().decode(StoredAnswer.self, from: Data($0)) }
  }

  @discardableResult
  private func record(_ entry: Entry) -> Bool {
    guard let bytes = try? JSONEncoder().encode(entry.answer) else { return false }
    return folder.setRecord([UInt8](bytes), of: entry.key)
  }

  func isUsable(_ entry: Entry, for wanted: StorableRequest) -> Bool {
    entry.answer.isFresh(at: clock.now, assuming: assumedFreshness)
      || entry.answer.servesDisconnected && isUnreachable(wanted.server)
  }

  private func isUnreachable(_ server: ServerAddress) -> Bool {
    unreachable.withLock { $0[server] }.map { .now < $0 } ?? false
  }

  func hasStart(of entry: Entry, _ wanted: StorableRequest) -> Bool {
    let position = wanted.request.range?.offset ?? 0
    return position == 0 && entry.answer.resourceByteCount == 0
      || folder.storedEnd(of: entry.key, version: entry.answer.version, from: position) != nil
  }

  /// True if all bytes of a range of the resource are stored; nil for all of it.
  private func isWhole(_ entry: Entry, _ range: ByteRange?) -> Bool {
    let position = range?.offset ?? 0
    guard let end = entry.answer.end(of: range) else { return false }
    return position == 0 && end == 0
      || folder.storedEnd(of: entry.key, version: entry.answer.version, from: position).map { $0 >= end }
        ?? false
  }

  private func store(_ manifest: KeptManifests.Manifest) {
    let (key, answer) = (manifest.entry.key, manifest.entry.answer)
    guard storedAnswer(key) != answer else { return }
    folder.remove(key, exceptVersion: answer.version)
    // Bytes without their record are never found.
    guard folder.write(manifest.bytes, at: 0, of: key, version: answer.version) else { return }
    record(manifest.entry)
  }
}

extension MediaCache: MediaStoring {
  package func storedFetch(of request: FetchRequest) -> (@Sendable () async throws -> FetchResponse)? {
    guard let (wanted, entry) = stored(request), isWhole(entry, request.range), isUsable(entry, for: wanted)
    else { return nil }
    return { [self] in
      try Task.checkCancellation()
      return response(from: entry, to: wanted.request, requestCount: 0)
    }
  }

  package func stores(_ request: FetchRequest) -> Bool {
    stored(request).map { isWhole($0.entry, request.range) } ?? false
  }

  package var storedByteCount: Int64 { folder.storedByteCount }

  package func trim(toByteCount byteCount: Int64) async { folder.trim(toByteCount: byteCount) }
}
