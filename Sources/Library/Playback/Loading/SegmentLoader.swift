internal import Foundation
internal import ReelCore
internal import ReelManifest

/// The progress of a feed's task, for its reader.
final class FeedProgress: Sendable {
  /// A part of the stream: a segment, or the initialization before it, which has the segment's index.
  struct Part {
    let offset: Int64
    let index: Int
    let url: URL
    let encryption: SegmentEncryption?
  }

  struct Values {
    /// The segment after the last loaded one.
    var nextIndex: Int
    /// The parts of the stream, in order.
    var parts: [Part] = []
    var writtenCount: Int64 = 0
    var failure: ReelError?
    var damagedIndexes: Set<Int> = []
    /// The number of bytes written when the last segment was complete.
    var boundary: Int64 = 0
    /// True if everything up to the end of a segment's first key frame was written at once.
    var hasFoundKeyFrame = false
  }

  let values: Locked<Values>

  init(nextIndex: Int) { values = Locked(Values(nextIndex: nextIndex)) }

  /// Begins a part for the segment at `index`. Its bytes come from `url`, or by default from the segment's URL.
  func begin(_ segment: SegmentReference, url: URL? = nil, at index: Int) {
    values.withLock {
      $0.parts.append(
        Part(
          offset: $0.writtenCount, index: index, url: url ?? segment.url, encryption: segment.encryption))
    }
  }

  /// Returns the part of the byte at `offset` of the stream; nil before the first part.
  func part(at offset: Int64) -> Part? {
    values.withLock { values in values.parts.last { $0.offset <= offset } ?? values.parts.first }
  }

  /// Returns true if damage to the segment at `index` was recorded.
  func isDamaged(_ index: Int) -> Bool { values.withLock { $0.damagedIndexes.contains(index) } }

  func recordDamage(at index: Int) { values.withLock { _ = $0.damagedIndexes.insert(index) } }

  func add(_ count: Int) { values.withLock { $0.writtenCount += Int64(count) } }

  /// True if nothing of the last segment has arrived, but something of an earlier one has.
  var isBetweenSegments: Bool {
    values.withLock { $0.writtenCount > 0 && $0.writtenCount == $0.boundary }
  }

  func recordKeyFrame() { values.withLock { $0.hasFoundKeyFrame = true } }

  func fail(_ error: ReelError) { values.withLock { $0.failure = error } }

  func end(before index: Int) {
    values.withLock { values in
      values.nextIndex = index
      values.boundary = values.writtenCount
    }
  }
}

/// Sends the requests for segments, and for the initializations and keys that they need.
struct SegmentLoader: Sendable {
  let supply: any SegmentSupply
  let fetcher: any Fetching
  let headers: [HeaderField]
  let keys: KeyStore
  let location: ServiceLocation
  let recorder: StartupRecorder
  /// The store of initialization segments; nil keeps none.
  var initializations: InitializationStore?
  /// The transfer that delivered the index of a file. It continues with the file's segments if loading begins
  /// there.
  var opening: FileTransfer?
  /// Receives the damage of a segment that is passed on nevertheless, with its URL, and the segment's time.
  /// Nil disables the checks of `SegmentSanitizer`, which keep a damaged segment from affecting others.
  var recordDamage: (@Sendable (ReelError, Range<MediaTime>?) -> Void)?
  /// Receives the error and the time of a segment of a live track that is skipped.
  var recordMissed: (@Sendable (ReelError, Range<MediaTime>?) -> Void)?
  /// Receives a report on each transfer of a segment.
  var record: (@Sendable (SegmentTransfer) -> Void)?

  /// The action at the end of the key frame at the start of a segment of fragmented MP4, if the fragment's
  /// index states that position.
  enum KeyFrameAction: Sendable {
    case readOn
    /// Wait until the reader wants more.
    case wait
    /// End the transfer. If the reader wants more, the rest of the segment is requested.
    case end
  }

  /// The maximum delay of a reader that keeps up. A longer wait means that it holds the transfer back.
  private static let holdBackLimit = Duration.milliseconds(20)
  /// The maximum size of a key frame that is collected. A larger one is passed on as it arrives.
  private static let keyFrameLimit: Int64 = 1 << 20
  /// The maximum size of an initialization segment.
  private static let initializationByteLimit = 8 << 20

  /// Writes the run that begins with segment `first` into a pipe.
  ///
  /// - Parameters:
  ///   - keyFrameAction: The action after the key frame at the start of a segment. With `wait`, the transfer
  ///     of H.264 ends too: none of its frames is shown before that one.
  ///   - continues: Called before each segment after the first; false ends the run there.
  func load(
    from first: Int, readsAhead: Bool, into pipe: BytePipe, telling progress: FeedProgress,
    keyFrameAction: KeyFrameAction = .readOn,
    continues: @Sendable (Int) async -> Bool = { _ in true }
  ) async throws {
    guard let (start, opening) = try await supply.segment(from: first) else { return }
    let transfer = self.opening?.claim()
    defer { transfer?.close() }
    progress.begin(opening, url: opening.initialization?.url, at: start)
    // Both requests are sent before either response is awaited.
    async let initialization = initialization(of: opening, at: start)
    async let opened = open(opening, at: start, of: transfer)
    guard let bytes = try await initialization else { return progress.end(before: start + 1) }
    progress.add(bytes.count)
    try await pipe.write(bytes)
    let watch = watch(initialization: bytes)
    let isH264 = keyFrameAction == .wait && bytes.firstRange(of: Array("avcC".utf8)) != nil
    let keyFrameAction = isH264 ? .end : keyFrameAction
    progress.begin(opening, at: start)
    var answer = try await opened
    var index = start
    while let response = answer {
      if readsAhead, case .segment(let following) = supply.peek(at: index + 1), following.continues(opening),
        await continues(index + 1)
      {
        let next = index + 1
        async let ahead = open(following, at: next, of: transfer)
        switch try await copy(
          response, at: index, as: watch, keyFrameAction, to: pipe, telling: progress)
        {
        case .whole: break
        case .nothing:
          answer = try await open(try again(index), at: index)
          continue
        case .part: return progress.end(before: next)
        }
        index = next
        progress.end(before: index)
        progress.begin(following, at: index)
        answer = try await ahead
        continue
      }
      let copied = try await copy(
        response, at: index, as: watch, keyFrameAction, to: pipe, telling: progress)
      if case .nothing = copied {
        answer = try await open(try again(index), at: index)
        continue
      }
      index += 1
      progress.end(before: index)
      guard case .whole = copied, mayContinue(opening, at: index) else { return }
      // The next segment may not be needed at all.
      try await pipe.drain()
      guard let (next, following) = try await supply.segment(from: index) else { return }
      index = next
      progress.end(before: index)
      guard following.continues(opening), await continues(index) else { return }
      progress.begin(following, at: index)
      answer = try await open(following, at: index, of: transfer)
    }
    progress.end(before: index + 1)
  }

  // MARK: - Private

  /// Returns the check for segments with this initialization, which may be empty; nil for none.
  private func watch(initialization bytes: [UInt8]) -> SegmentSanitizer? {
    guard recordDamage != nil else { return nil }
    if bytes.isEmpty { return .stream(StreamSanitizer()) }
    return bytes.dropFirst(4).prefix(4).elementsEqual("ftyp".utf8) ? .fragments(FragmentSanitizer()) : nil
  }

  /// Returns false if the segment at `index` is known not to belong to the run.
  private func mayContinue(_ opening: SegmentReference, at index: Int) -> Bool {
    switch supply.peek(at: index) {
    case .segment(let following): following.continues(opening)
    case .awaited: true
    case .ended: false
    }
  }

  /// The response to a segment's request, and the times at which the request was sent and the response
  /// received.
  private struct Answer {
    let body: FetchBody
    /// The transfer that the body is a part of; nil if it has its own.
    var transfer: FileTransfer?
    let requestCount: Int
    /// Nil if unknown.
    let byteCount: Int64?
    /// The URL in the manifest.
    let url: URL
    /// True if the whole body was encrypted.
    var isDecrypted = false
    /// Nil for a part of a transfer that has already begun.
    var asked: Duration?
    var answered: Duration?

    /// Ends the transfer.
    func close() {
      body.close()
      transfer?.close()
    }
  }

  /// The outcome of a transfer. A live track continues after one that broke for good.
  private enum Copied {
    case whole
    case part
    case nothing
  }

  private func copy(
    _ answer: Answer, at index: Int, as watch: SegmentSanitizer?, _ keyFrameAction: KeyFrameAction,
    to pipe: BytePipe, telling progress: FeedProgress
  ) async throws -> Copied {
    var copied = Copied.nothing
    var watch = watch
    var body = answer.body
    var findsKeyFrame = keyFrameAction != .readOn && !answer.isDecrypted
    // The beginning of the segment, up to the end of the key frame. It is written at once, so the reader
    // wakes once.
    var (held, passedCount) = ([UInt8](), Int64(0))
    let now = recorder.clock.now
    var transfer = SegmentTransfer(
      index: index, began: answer.asked ?? now, answered: answer.answered ?? now,
      requestCount: answer.requestCount)
    defer { record?(transfer) }
    func writeHeld() async throws {
      guard !held.isEmpty else { return }
      progress.add(held.count)
      let bytes = held
      held = []
      try await pipe.write(bytes)
    }
    do {
      do {
        while let received = try await body.next() {
          transfer.add(received.count, at: recorder.clock.now)
          let chunk = try watch?.pass(received) ?? received
          guard !chunk.isEmpty else { continue }
          copied = .part
          passedCount += Int64(chunk.count)
          if findsKeyFrame, let end = watch?.keyFrameEnd, end <= Self.keyFrameLimit {
            held += chunk
            guard passedCount >= end else { continue }
            findsKeyFrame = false
            let rest = Array(held.suffix(Int(passedCount - end)))
            held.removeLast(rest.count)
            let ends = keyFrameAction == .end && answer.byteCount != transfer.byteCount
            if ends { answer.close() }
            progress.recordKeyFrame()
            try await writeHeld()
            try await pipe.drain()
            held = rest
            try await writeHeld()
            if ends {
              guard let next = try await self.rest(of: index, from: transfer.byteCount) else { break }
              body = next
            }
            continue
          }
          progress.add(chunk.count)
          let written = recorder.clock.now
          if try await pipe.writeWaiting(chunk), recorder.clock.now - written > Self.holdBackLimit {
            transfer.isHeldBack = true
          }
        }
        try await writeHeld()
      } catch let error as ReelError where error.isOfEarlyEnd && transfer.byteCount > 0 && recordDamage != nil
      {
        try await writeHeld()
        report(damage: error.located(at: answer.url.reelName), at: index, progress)
      }
      if recordDamage != nil, transfer.byteCount == 0 { throw ReelError(.badMedia, "the segment is empty") }
      if let ending = try watch?.finish() {
        if let damage = ending.damage, !progress.isDamaged(index) {
          report(damage: damage.located(at: answer.url.reelName), at: index, progress)
        }
        progress.add(ending.bytes.count)
        try await pipe.write(ending.bytes)
      }
      supply.recordSuccess()
      transfer.isWhole = true
      return .whole
    } catch let error as ReelError {
      try await writeHeld()
      switch try await supply.recovery(after: error, at: index) {
      case .fail, .otherRung, .otherLocation:
        var located = error.located(at: answer.url.reelName)
        if answer.isDecrypted, error.kind == .badMedia, error.advice == nil {
          located.advice = "it was decrypted, but the key may be wrong"
        }
        throw located
      case .again: return copied
      case .leaveOut:
        recordMissed?(error.located(at: answer.url.reelName), range(of: index))
        return .part
      }
    }
  }

  private func report(damage error: ReelError, at index: Int, _ progress: FeedProgress) {
    progress.recordDamage(at: index)
    recordDamage?(error, range(of: index))
  }

  /// Returns the time of a segment; nil if it is no longer known.
  private func range(of index: Int) -> Range<MediaTime>? {
    guard case .segment(let segment) = supply.peek(at: index) else { return nil }
    return segment.range
  }

  /// Requests the bytes of a segment from an offset on; nil if there are none.
  private func rest(of index: Int, from offset: Int64) async throws -> FetchBody? {
    var segment = try again(index)
    let length = segment.byteRange?.length.map { $0 - offset }
    if let length, length <= 0 { return nil }
    segment.byteRange = ByteRange(offset: (segment.byteRange?.offset ?? 0) + offset, length: length)
    do {
      return try await open(segment, at: index)?.body
    } catch let error as ReelError where error.isOfEarlyEnd {
      return nil
    }
  }

  /// Returns a segment that is requested again.
  private func again(_ index: Int) throws -> SegmentReference {
    guard case .segment(let segment) = supply.peek(at: index) else {
      throw ReelError(.network, "the segment left the live window before it was fetched")
    }
    return segment
  }

  /// Returns the initialization before the segment, empty if there is none; nil if the segment is skipped.
  private func initialization(of segment: SegmentReference, at index: Int) async throws -> [UInt8]? {
    guard let reference = segment.initialization else { return [] }
    if let kept = initializations?[reference] { return kept }
    return try await trying(at: index) {
      let start = recorder.clock.now
      let decryption = try await keys.decryption(for: reference.encryption, at: reference.url)
      let response = try await fetch(
        reference.url, reference.alternateURLs, range: reference.byteRange, purpose: .initialization)
      var body = response.ranged(reference.byteRange)
      if let decryption { body = try decryption.plain(body) }
      let bytes = try await body.collect(upTo: Self.initializationByteLimit)
      recorder.add(
        .initialization, recorder.clock.now - start, requests: response.requestCount,
        bytes: Int64(bytes.count))
      initializations?[reference] = bytes
      return bytes
    }
  }

  /// Returns the answer to the segment's request, with its body not yet read; nil for a segment of a live
  /// track that is skipped.
  ///
  /// - Parameter transfer: A transfer that may deliver the segment without a request.
  private func open(
    _ segment: SegmentReference, at index: Int, of transfer: FileTransfer? = nil
  ) async throws -> Answer? {
    if let transfer {
      if let answer = answer(to: segment, of: transfer) { return answer }
      transfer.close()
    }
    try KeyStore.check(segment.encryption, at: segment.url)
    return try await trying(at: index) {
      // The key is requested at the same time as the segment.
      async let decryption = keys.decryption(for: segment.encryption, at: segment.url)
      let asked = recorder.clock.now
      recorder.add(.segment, requests: 1)
      var response = try await fetch(
        segment.url, segment.alternateURLs, range: segment.byteRange, purpose: .segment)
      let answered = recorder.clock.now
      recorder.add(.segment, requests: response.requestCount - 1)
      let byteCount = segment.byteRange == nil ? response.bodyByteCount : segment.byteRange?.length
      response.body = response.ranged(segment.byteRange)
      let key = try await decryption
      if let key { response.body = try key.plain(response.body) }
      return Answer(
        body: response.body, requestCount: response.requestCount, byteCount: byteCount,
        url: segment.url, isDecrypted: key != nil, asked: asked, answered: answered)
    }
  }

  /// Returns the segment as a part of a running transfer; nil if it is not.
  private func answer(to segment: SegmentReference, of transfer: FileTransfer) -> Answer? {
    guard segment.encryption == nil,
      segment.url == transfer.url || segment.alternateURLs.contains(transfer.url),
      let (body, isFirst) = transfer.part(segment.byteRange)
    else { return nil }
    var answer = Answer(
      body: body, transfer: transfer, requestCount: isFirst ? transfer.requestCount : 0,
      byteCount: segment.byteRange?.length, url: segment.url)
    if isFirst { (answer.asked, answer.answered) = (transfer.asked, transfer.answered) }
    return answer
  }

  /// Calls `body` and repeats it as the supply decides; nil if the segment is to be skipped.
  private func trying<Result: Sendable>(
    at index: Int, _ body: () async throws -> Result
  ) async throws -> Result? {
    while true {
      do {
        return try await body()
      } catch let error as ReelError {
        switch try await supply.recovery(after: error, at: index) {
        case .fail, .otherRung, .otherLocation: throw error
        case .again: continue
        case .leaveOut:
          recordMissed?(error, range(of: index))
          return nil
        }
      }
    }
  }

  /// Returns the response of the first location that has one, beginning with the last location that did.
  private func fetch(
    _ url: URL, _ alternates: [URL], range: ByteRange?, purpose: FetchPurpose
  ) async throws -> FetchResponse {
    let urls = [url] + alternates
    let first = location.index < urls.count ? location.index : 0
    var step = 0
    while true {
      let index = (first + step) % urls.count
      do {
        let response = try await fetcher.fetch(
          FetchRequest(url: urls[index], range: range, headers: headers, purpose: purpose))
        if step > 0 { location.index = index }
        return response
      } catch let error as ReelError {
        step += 1
        guard location.roams, error.isOfLocation, step < urls.count else { throw error }
      }
    }
  }
}

/// The location to try first, of several with the same media. There is one value per track.
final class ServiceLocation: Sendable {
  /// True to try the next location at once after a failure; false to leave that decision to the caller.
  let roams: Bool
  private let value = Locked(0)

  init(roams: Bool = true) { self.roams = roams }

  var index: Int {
    get { value.withLock { $0 } }
    set { value.withLock { $0 = newValue } }
  }
}

extension ReelError {
  /// True if another location of the same bytes may succeed.
  fileprivate var isOfLocation: Bool {
    switch kind {
    case .server, .network, .timedOut, .noSuchFile: true
    default: false
    }
  }
}

extension SegmentReference {
  /// The segment's part of the timeline.
  var range: Range<MediaTime> { start..<start + max(.zero, duration) }

  /// Returns true if the segment continues the byte stream that `first` began.
  fileprivate func continues(_ first: SegmentReference) -> Bool {
    discontinuity == first.discontinuity && initialization == first.initialization && !isGap
  }
}

extension FetchResponse {
  /// Returns exactly the bytes of `range`, even if the server sent more.
  func ranged(_ range: ByteRange?) -> FetchBody {
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
