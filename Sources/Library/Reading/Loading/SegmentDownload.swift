internal import Foundation
internal import HTTPTypes
internal import ReelCore
package import ReelManifest
internal import ReelSources

/// One segment on its way: a task requests it, with its key and at the beginning of a span with the initialization,
/// checks and decrypts it, and writes it into a pipe.
///
/// It ends with its scope, or with this object. After a failure nothing is tried again here.
final class SegmentDownload: Sendable {
  struct Options: Sendable {
    /// The number of unread bytes at which the task waits.
    var capacity = BytePipe.usualCapacity
    var keyFrameAction = KeyFrameAction.readOn
  }

  /// The action at the end of the key frame at the start of a segment of fragmented MP4, if the fragment's index
  /// states that position.
  enum KeyFrameAction: Sendable {
    case readOn
    /// Wait until the reader wants more. The transfer of H.264 ends, as with `end`: none of its frames is shown
    /// before the key frame.
    case wait
    /// End the transfer. If the reader wants more, the rest of the segment is requested.
    case end
  }

  /// Facts from the initialization about the segments after it.
  struct Form: Sendable {
    let initializationByteCount: Int64
    /// Checks a segment; nil for none.
    let sanitizer: SegmentSanitizer?
    let isH264: Bool

    /// - Parameter bytes: The initialization; empty if there is none.
    init(initialization bytes: [UInt8], isChecked: Bool) {
      initializationByteCount = Int64(bytes.count)
      isH264 = bytes.firstRange(of: Array("avcC".utf8)) != nil
      sanitizer =
        if !isChecked {
          nil
        } else if bytes.isEmpty {
          .stream(StreamSanitizer())
        } else if bytes.dropFirst(4).prefix(4).elementsEqual("ftyp".utf8) {
          .fragments(FragmentSanitizer())
        } else {
          nil
        }
    }
  }

  /// Messages from the task to the reader, besides the bytes.
  fileprivate struct Progress {
    var form: Form?
    var isDamaged = false
    var hasFoundKeyFrame = false
  }

  let index: Int
  let segment: SegmentReference
  private let transfer: PipeTask
  private let progress = Locked(Progress())

  /// - Parameters:
  ///   - form: What the span's initialization says; nil if that has to be fetched.
  ///   - file: A transfer that may deliver the segment without a request.
  init(
    _ loader: SegmentLoader, index: Int, _ segment: SegmentReference, form: Form?, of file: FileTransfer?,
    scope: LoadScope, _ options: Options
  ) {
    self.index = index
    self.segment = segment
    let progress = progress
    transfer = PipeTask(in: scope, capacity: options.capacity) { pipe in
      // Both requests are sent before either response is awaited.
      async let initialization = form == nil ? loader.initialization(of: segment) : nil
      async let opened = loader.open(segment, of: file)
      var form = form
      if let bytes = try await initialization {
        let new = Form(initialization: bytes, isChecked: loader.recordDamage != nil)
        form = new
        progress.withLock { $0.form = new }
        try await pipe.write(bytes)
      }
      let copying = SegmentCopying(
        loader: loader, index: index, segment: segment, answer: try await opened, pipe: pipe,
        progress: progress)
      try await copying.run(form, options.keyFrameAction)
    }
  }

  var pipe: BytePipe { transfer.pipe }
  /// Nil until the initialization has come, or if it was known.
  var form: Form? { progress.withLock { $0.form } }
  /// True if damage to the segment was recorded.
  var isDamaged: Bool { progress.withLock { $0.isDamaged } }
  /// True if everything up to the end of the segment's first key frame was written at once.
  var hasFoundKeyFrame: Bool { progress.withLock { $0.hasFoundKeyFrame } }

  /// Ends the download with this scope too.
  func end(with scope: LoadScope) { transfer.end(with: scope) }
}

/// Copies a segment from its response into a pipe.
private struct SegmentCopying {
  let loader: SegmentLoader
  let index: Int
  let segment: SegmentReference
  let answer: SegmentLoader.Answer
  let pipe: BytePipe
  let progress: Locked<SegmentDownload.Progress>

  /// The maximum delay of a reader that keeps up. A longer wait means that it holds the transfer back.
  private static let holdBackLimit = Duration.milliseconds(20)
  /// The maximum size of a key frame that is collected. A larger one is passed on as it arrives.
  private static let keyFrameLimit: Int64 = 1 << 20

  func run(_ form: SegmentDownload.Form?, _ keyFrameAction: SegmentDownload.KeyFrameAction) async throws {
    let (clock, isChecked) = (loader.recorder.clock, loader.recordDamage != nil)
    var transfer = SegmentTransfer(
      index: index, began: answer.asked ?? clock.now, answered: answer.answered ?? clock.now,
      requestCount: answer.requestCount)
    defer { loader.record?(transfer) }
    var sanitizer = form?.sanitizer
    var body = answer.body
    let endsAtKeyFrame =
      switch keyFrameAction {
      case .readOn: false
      case .wait: form?.isH264 ?? false
      case .end: true
      }
    var findsKeyFrame = keyFrameAction != .readOn && !answer.isDecrypted
    // The beginning of the segment, up to the end of the key frame. It is written at once, so the reader wakes
    // once.
    var (held, passedCount) = ([UInt8](), Int64(0))
    func writeHeld() async throws {
      let bytes = held
      held = []
      try await pipe.write(bytes)
    }
    let byteLimit = loader.byteLimit(of: segment)
    do {
      do {
        while let received = try await body.next() {
          transfer.add(received.count, at: clock.now)
          guard transfer.byteCount <= byteLimit else {
            answer.close()
            throw ReelError(.badMedia, "the segment has more than \(byteLimit) bytes")
          }
          let chunk = try sanitizer?.pass(received) ?? received
          guard !chunk.isEmpty else { continue }
          passedCount += Int64(chunk.count)
          guard findsKeyFrame, let end = sanitizer?.keyFrameEnd, end <= Self.keyFrameLimit else {
            let written = clock.now
            if try await pipe.writeWaiting(chunk), clock.now - written > Self.holdBackLimit {
              transfer.isHeldBack = true
            }
            continue
          }
          held += chunk
          guard passedCount >= end else { continue }
          findsKeyFrame = false
          let rest = Array(held.suffix(Int(passedCount - end)))
          held.removeLast(rest.count)
          let ends = endsAtKeyFrame && answer.byteCount != transfer.byteCount
          if ends { answer.close() }
          progress.withLock { $0.hasFoundKeyFrame = true }
          try await writeHeld()
          try await pipe.drain()
          held = rest
          try await writeHeld()
          guard ends else { continue }
          guard let next = try await loader.rest(of: segment, from: transfer.byteCount) else { break }
          body = next
        }
        try await writeHeld()
      } catch let error as ReelError where error.isOfEarlyEnd && transfer.byteCount > 0 && isChecked {
        try await writeHeld()
        report(error)
      }
      if isChecked, transfer.byteCount == 0 { throw ReelError(.badMedia, "the segment is empty") }
      if let ending = try sanitizer?.finish() {
        if let damage = ending.damage, !progress.withLock({ $0.isDamaged }) { report(damage) }
        try await pipe.write(ending.bytes)
      }
    } catch let error as ReelError {
      try await writeHeld()
      var located = error.located(at: segment.url.reelName)
      if answer.isDecrypted, error.kind == .badMedia, error.advice == nil {
        located.advice = "it was decrypted, but the key may be wrong"
      }
      throw located
    }
  }

  private func report(_ damage: ReelError) {
    progress.withLock { $0.isDamaged = true }
    loader.recordDamage?(damage.located(at: segment.url.reelName), segment.range)
  }
}

/// One rung's segments and their loader.
package struct RungTrack: Sendable {
  package let rung: Rung
  let supply: SegmentSupply
  let loader: SegmentLoader
  /// The position at which playback begins by default; nil if no playlist states one.
  var startOffset: StartOffset?
}

/// Sends the requests for segments, and for the initializations and keys that they need.
struct SegmentLoader: Sendable {
  let fetcher: any Fetching
  let keys: KeyStore
  let location: ServiceLocation
  let recorder: StartupRecorder
  /// The store of initialization segments; nil keeps none.
  var initializations: InitializationStore?
  /// The transfer that delivered the index of a file. It continues with the file's segments if loading begins
  /// there.
  var opening: FileTransfer?
  /// The largest size of a segment (`LoadingConfiguration.segmentByteRate`).
  var byteRate = LoadingConfiguration().segmentByteRate
  /// Receives the damage of a segment that is passed on nevertheless, with its URL, and the segment's time.
  /// Nil disables the checks of `SegmentSanitizer`, which keep a damaged segment from affecting others.
  var recordDamage: (@Sendable (ReelError, Range<MediaTime>?) -> Void)?
  /// Receives the error and the time of a segment of a live track that is skipped.
  var recordMissed: (@Sendable (ReelError, Range<MediaTime>?) -> Void)?
  /// Receives a report on each transfer of a segment.
  var record: (@Sendable (SegmentTransfer) -> Void)?

  /// The maximum size of an initialization segment.
  private static let initializationByteLimit = 8 << 20

  /// The response to a segment's request, and the times at which the request was sent and the response
  /// received.
  struct Answer {
    let body: FetchBody
    /// The transfer that the body is a part of; nil if it has its own.
    var file: FileTransfer?
    let requestCount: Int
    /// Nil if unknown.
    let byteCount: Int64?
    /// True if the whole body was encrypted.
    var isDecrypted = false
    /// Nil for a part of a transfer that has already begun.
    var asked: Duration?
    var answered: Duration?

    /// Ends the transfer.
    func close() {
      body.close()
      file?.close()
    }
  }

  /// Returns the largest number of bytes of a segment, because a server may send without an end.
  fileprivate func byteLimit(of segment: SegmentReference) -> Int64 {
    Int64(min(max(4, segment.duration.seconds), 1e6)) * byteRate
  }

  /// Returns the initialization before the segment; empty if there is none.
  func initialization(of segment: SegmentReference) async throws -> [UInt8] {
    guard let reference = segment.initialization else { return [] }
    if let kept = initializations?[reference] { return kept }
    let start = recorder.clock.now
    let decryption = try await keys.decryption(for: reference.encryption, at: reference.url)
    let response = try await fetch(
      reference.url, reference.alternateURLs, range: reference.byteRange, purpose: .initialization)
    var body = response.ranged(reference.byteRange)
    if let decryption { body = try decryption.plain(body) }
    let bytes = InitializationStore.withoutMedia(
      try await body.collect(upTo: Self.initializationByteLimit))
    recorder.add(
      .initialization, recorder.clock.now - start, requests: response.requestCount,
      bytes: Int64(bytes.count))
    initializations?[reference] = bytes
    return bytes
  }

  /// Returns the answer to the segment's request, with its body not yet read.
  ///
  /// - Parameter file: A transfer that may deliver the segment without a request.
  func open(_ segment: SegmentReference, of file: FileTransfer? = nil) async throws -> Answer {
    if let file {
      if let answer = answer(to: segment, of: file) { return answer }
      file.close()
    }
    try KeyStore.check(segment.encryption, at: segment.url)
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
      isDecrypted: key != nil, asked: asked, answered: answered)
  }

  /// Requests the bytes of a segment from an offset on; nil if there are none.
  fileprivate func rest(of segment: SegmentReference, from offset: Int64) async throws -> FetchBody? {
    let length = segment.byteRange?.length.map { $0 - offset }
    if let length, length <= 0 { return nil }
    var rest = segment
    rest.byteRange = ByteRange(offset: (segment.byteRange?.offset ?? 0) + offset, length: length)
    do {
      return try await open(rest).body
    } catch let error as ReelError where error.isOfEarlyEnd {
      return nil
    }
  }

  // MARK: - Private

  /// Returns the segment as a part of a running transfer; nil if it is not.
  private func answer(to segment: SegmentReference, of file: FileTransfer) -> Answer? {
    guard segment.encryption == nil, segment.url == file.url || segment.alternateURLs.contains(file.url),
      let (body, isFirst) = file.part(segment.byteRange)
    else { return nil }
    var answer = Answer(
      body: body, file: file, requestCount: isFirst ? file.requestCount : 0,
      byteCount: segment.byteRange?.length)
    if isFirst { (answer.asked, answer.answered) = (file.asked, file.answered) }
    return answer
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
          FetchRequest(url: urls[index], range: range, purpose: purpose))
        if step > 0 { location.index = index }
        return response
      } catch let error as ReelError {
        step += 1
        guard location.roams, error.isOfLocation, step < urls.count else { throw error }
      }
    }
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

/// The transfer of one segment's body, by the player's clock.
package struct SegmentTransfer: Sendable {
  package let index: Int
  /// The times at which the request was sent, and the head of the response arrived.
  package let began: Duration
  package let answered: Duration
  /// The number of requests until the response arrived, including redirects and retries.
  package let requestCount: Int
  package private(set) var ended: Duration
  package private(set) var byteCount: Int64 = 0
  /// The number of bytes that had arrived when the reader first held the transfer back, and the time of that.
  package private(set) var freeByteCount: Int64 = 0
  package private(set) var freeEnd: Duration
  package var isHeldBack = false

  package init(index: Int, began: Duration, answered: Duration, requestCount: Int = 1) {
    self.index = index
    self.requestCount = requestCount
    self.began = began
    self.answered = answered
    ended = answered
    freeEnd = answered
  }

  /// - Parameter now: The time at which these bytes arrived.
  package mutating func add(_ count: Int, at now: Duration) {
    byteCount += Int64(count)
    ended = now
    guard !isHeldBack else { return }
    freeByteCount = byteCount
    freeEnd = ended
  }

  /// Returns the part that measures the network: everything until the reader held the transfer back.
  package func sample(at now: Duration) -> TransferSample {
    TransferSample(
      byteCount: freeByteCount, duration: freeEnd - began, latency: answered - began, endedAt: now)
  }
}
