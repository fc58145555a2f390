import CCurl
import Foundation
import HTTPTypes
import ReelCore

/// A thread that runs all transfers of the process with one multi handle.
final class CurlLoop: @unchecked Sendable {
  static let shared = CurlLoop()

  private let multi: OpaquePointer
  private let commands = Locked<[@Sendable () -> Void]>([])

  private init() {
    reel_global_init()
    multi = OpaquePointer(curl_multi_init())
    let thread = Thread { [self] in run() }
    thread.stackSize = 256 << 10
    thread.start()
  }

  var handle: UnsafeMutableRawPointer { UnsafeMutableRawPointer(multi) }

  /// Runs `command` on the thread.
  func submit(_ command: @escaping @Sendable () -> Void) {
    commands.withLock { $0.append(command) }
    curl_multi_wakeup(handle)
  }

  private func run() {
    while true {
      let due = commands.withLock { commands in
        let due = commands
        commands = []
        return due
      }
      for command in due { command() }
      var running: Int32 = 0
      curl_multi_perform(handle, &running)
      var result = CURLE_OK
      while let easy = reel_done(handle, &result) {
        CurlTransfer.of(reel_get_pointer(easy))?.done(result)
      }
      curl_multi_poll(handle, nil, 0, 60_000, nil)
    }
  }
}

/// One request and its response: the head first, then the body in chunks on demand.
final class CurlTransfer: @unchecked Sendable {
  struct Head: Sendable {
    var status = 0
    var fields: [(name: String, value: String)] = []
    func first(_ name: String) -> String? { fields.first { $0.name == name }?.value }
  }

  private struct State {
    var head = Head()
    var headByteCount = 0
    var isHeadKnown = false
    var ending: Result<Void, any Error>?
    var chunks: [[UInt8]] = []
    var held = 0
    var total = 0
    var isPaused = false
    var headWaiter: CheckedContinuation<Head, any Error>?
    var chunkWaiter: CheckedContinuation<[UInt8]?, any Error>?
    var waitingSince = ContinuousClock.now
  }

  static let readAhead = 64 << 10
  static let maximumByteCount = 64 << 20
  static let maximumHeadByteCount = 256 << 10

  private let state = Locked(State())
  // These belong to the loop's thread.
  private var easy: UnsafeMutableRawPointer?
  private var fields: UnsafeMutablePointer<curl_slist>?
  private var errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
  private let isAhead: Bool

  init(_ request: FetchRequest, options: CurlOptions, isAhead: Bool = false) {
    self.isAhead = isAhead
    errorText[0] = 0
    CurlLoop.shared.submit { self.begin(request, options) }
  }

  deinit { errorText.deallocate() }

  /// The transfer that a handle was given.
  static func of(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
    context.map { Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue() }
  }

  func head() async throws -> Head {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let known: Result<Head, any Error>? = state.withLock { state in
          if case .failure(let error) = state.ending { return .failure(error) }
          if state.isHeadKnown { return .success(state.head) }
          state.headWaiter = continuation
          return nil
        }
        if let known { continuation.resume(with: known) }
      }
    } onCancel: {
      cancel()
    }
  }

  func nextChunk() async throws -> [UInt8]? {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let (known, resumes): (Result<[UInt8]?, any Error>?, Bool) = state.withLock { state in
          if !state.chunks.isEmpty {
            let chunk = state.chunks.removeFirst()
            state.held -= chunk.count
            let resumes = state.isPaused && state.held < Self.readAhead
            if resumes { state.isPaused = false }
            return (.success(chunk), resumes)
          }
          if let ending = state.ending { return (ending.map { nil }, false) }
          state.chunkWaiter = continuation
          state.waitingSince = .now
          let resumes = state.isPaused
          state.isPaused = false
          return (nil, resumes)
        }
        if resumes {
          CurlLoop.shared.submit { if let easy = self.easy { curl_easy_pause(easy, CURLPAUSE_CONT) } }
        }
        if let known { continuation.resume(with: known) }
      }
    } onCancel: {
      cancel()
    }
  }

  func cancel() {
    end(.failure(CancellationError()))
    CurlLoop.shared.submit { self.remove() }
  }

  // MARK: - On the loop's thread

  private func begin(_ request: FetchRequest, _ options: CurlOptions) {
    guard state.withLock({ $0.ending == nil }), let easy = curl_easy_init() else { return }
    self.easy = easy
    _ = Unmanaged.passRetained(self)
    let this = Unmanaged.passUnretained(self).toOpaque()
    reel_set_pointer(easy, CURLOPT_PRIVATE, this)
    reel_set_string(easy, CURLOPT_URL, request.url.absoluteString)
    reel_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
    reel_set_string(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
    reel_set_long(easy, CURLOPT_FOLLOWLOCATION, 1)
    reel_set_long(easy, CURLOPT_MAXREDIRS, 10)
    reel_set_long(easy, CURLOPT_NOSIGNAL, 1)
    reel_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, options.connectTimeout)
    reel_set_long(easy, CURLOPT_LOW_SPEED_LIMIT, 1)
    reel_set_long(easy, CURLOPT_LOW_SPEED_TIME, options.idleTimeout)
    reel_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    if options.waitsForMultiplexing { reel_set_long(easy, CURLOPT_PIPEWAIT, 1) }
    if options.bufferSize > 0 { reel_set_long(easy, CURLOPT_BUFFERSIZE, options.bufferSize) }
    if let path = options.authorities { reel_set_string(easy, CURLOPT_CAINFO, path) }
    reel_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
    if let range = request.range {
      let last = range.length.map { "\(range.offset + $0 - 1)" } ?? ""
      fields = curl_slist_append(fields, "Range: bytes=\(range.offset)-\(last)")
    } else if request.purpose == .manifest || request.purpose == .source {
      reel_set_string(easy, CURLOPT_ACCEPT_ENCODING, "")
    }
    reel_set_string(easy, CURLOPT_USERAGENT, "reel/0.1")
    reel_set_pointer(easy, CURLOPT_HTTPHEADER, fields)
    if request.method == .head || isAhead { reel_set_long(easy, CURLOPT_NOBODY, 1) }
    // A second connection, although one may be idle or could be shared.
    if isAhead { reel_set_long(easy, CURLOPT_FRESH_CONNECT, 1) }
    reel_set_pointer(easy, CURLOPT_WRITEDATA, this)
    reel_set_pointer(easy, CURLOPT_HEADERDATA, this)
    reel_set_write(easy, CURLOPT_WRITEFUNCTION) { bytes, _, count, this in
      CurlTransfer.of(this)?.received(UnsafeRawBufferPointer(start: bytes, count: count)) ?? 0
    }
    reel_set_write(easy, CURLOPT_HEADERFUNCTION) { bytes, _, count, this in
      CurlTransfer.of(this)?.receivedHead(UnsafeRawBufferPointer(start: bytes, count: count)) ?? 0
    }
    curl_multi_add_handle(CurlLoop.shared.handle, easy)
  }

  private func receivedHead(_ line: UnsafeRawBufferPointer) -> Int {
    let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    let isTooLong = state.withLock { state in
      state.headByteCount += line.count
      if text.hasPrefix("HTTP/") {
        state.head = Head()
        state.head.status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
      } else if let colon = text.firstIndex(of: ":") {
        state.head.fields.append(
          (text[..<colon].lowercased(), text[text.index(after: colon)...].trimmingCharacters(in: .whitespaces)))
      }
      return state.headByteCount > Self.maximumHeadByteCount
    }
    if isTooLong { return 0 }
    if text.isEmpty { headEnded() }
    return line.count
  }

  private func headEnded() {
    let (waiter, head): (CheckedContinuation<Head, any Error>?, Head) = state.withLock { state in
      let status = state.head.status
      let isFinal = status >= 200 && !((300...399).contains(status) && state.head.first("location") != nil)
      guard isFinal else { return (nil, state.head) }
      state.isHeadKnown = true
      return (state.headWaiter.take(), state.head)
    }
    waiter?.resume(returning: head)
  }

  private func received(_ bytes: UnsafeRawBufferPointer) -> Int {
    var waiter: CheckedContinuation<[UInt8]?, any Error>?
    let answer: Int = state.withLock { state in
      if state.total + bytes.count > Self.maximumByteCount, state.head.first("content-encoding") != nil { return 0 }
      if state.chunkWaiter == nil, state.held >= Self.readAhead {
        state.isPaused = true
        return Int(CURL_WRITEFUNC_PAUSE)
      }
      state.total += bytes.count
      waiter = state.chunkWaiter.take()
      if waiter == nil {
        state.chunks.append(Array(bytes))
        state.held += bytes.count
      }
      return bytes.count
    }
    waiter?.resume(returning: Array(bytes))
    return answer
  }

  fileprivate func done(_ result: CURLcode) {
    var ending: Result<Void, any Error> = .success(())
    if result != CURLE_OK {
      let text = errorText[0] == 0 ? String(cString: curl_easy_strerror(result)) : String(cString: errorText)
      ending = .failure(
        ReelError(result == CURLE_OPERATION_TIMEDOUT ? .timedOut : .network, "curl \(result.rawValue): \(text)"))
    }
    remove()
    end(ending)
  }

  private func remove() {
    guard let easy else { return }
    self.easy = nil
    curl_multi_remove_handle(CurlLoop.shared.handle, easy)
    curl_easy_cleanup(easy)
    curl_slist_free_all(fields)
    Unmanaged.passUnretained(self).release()
  }

  private func end(_ ending: Result<Void, any Error>) {
    let (headWaiter, chunkWaiter, head) = state.withLock { state in
      guard state.ending == nil else {
        return (CheckedContinuation<Head, any Error>?.none, CheckedContinuation<[UInt8]?, any Error>?.none, Head())
      }
      state.ending = ending
      return (state.headWaiter.take(), state.chunkWaiter.take(), state.head)
    }
    headWaiter?.resume(with: ending.map { head })
    chunkWaiter?.resume(with: ending.map { nil })
  }
}

struct CurlOptions: Sendable {
  var connectTimeout = 10_000
  var idleTimeout = 10
  var bufferSize = 8 << 10
  var authorities: String?
  var waitsForMultiplexing = false
  var connectionsAhead = 1
}

/// Cancels its transfer when the body is released.
private final class OpenTransfer: Sendable {
  let transfer: CurlTransfer
  init(_ transfer: CurlTransfer) { self.transfer = transfer }
  deinit { transfer.cancel() }
}

/// Fetches over libcurl: what `Fetching` asks for, without retries, proxies, cookies and the report of metrics.
final class CurlFetcher: Fetching, Sendable {
  let options: CurlOptions
  init(_ options: CurlOptions) { self.options = options }

  func openConnection(to url: URL) {
    // A connection that libcurl opens without a request (CURLOPT_CONNECT_ONLY) is never used for another transfer.
    _ = CurlTransfer(FetchRequest(.head, url: url, purpose: .resource), options: options, isAhead: true)
  }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let transfer = CurlTransfer(request, options: options)
    if request.purpose == .manifest { for _ in 0..<options.connectionsAhead { openConnection(to: request.url) } }
    let head = try await transfer.head()
    guard (200...299).contains(head.status) else {
      transfer.cancel()
      throw ReelError(.server, "status \(head.status)", at: request.url.absoluteString, status: head.status)
    }
    let open = OpenTransfer(transfer)
    let length = head.first("content-length").flatMap { Int64($0) }
    return FetchResponse(
      url: request.url, contentType: head.first("content-type"), bodyOffset: 0, bodyByteCount: length,
      resourceByteCount: nil, supportsRanges: head.first("accept-ranges") == "bytes",
      body: FetchBody { try await open.transfer.nextChunk() })
  }
}
