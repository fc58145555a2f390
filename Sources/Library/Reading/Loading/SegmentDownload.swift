internal import Foundation
internal import ReelCore
internal import ReelManifest
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
    var statedByteCount: Int64?
    var firstFrameEnd: Int64?
  }

  let index: Int
  let segment: SegmentReference
  private let transfer: PipeTask
  private let progress = Locked(Progress())

  /// - Parameters:
  ///   - next: The segment after it; nil if that is not known.
  ///   - form: What the span's initialization says; nil if that has to be fetched.
  ///   - file: A transfer that may deliver the segment without a request.
  init(
    _ loader: SegmentLoader, index: Int, _ segment: SegmentReference, before next: SegmentReference?,
    form: Form?, of file: FileTransfer?, scope: LoadScope, _ options: Options
  ) {
    self.index = index
    self.segment = segment
    let progress = progress
    transfer = PipeTask(in: scope, capacity: options.capacity) { pipe in
      // The tasks that request end with this call, and free their stacks, before the transfer may be held back.
      let (form, answer) = try await Self.open(
        segment, before: next, form: form, of: file, loader, progress, pipe)
      let now = loader.recorder.clock.now
      progress.withLock { progress in
        progress.statedByteCount = answer.byteCount
        if form?.sanitizer == nil { progress.firstFrameEnd = 0 }
      }
      var copying = SegmentCopying(
        loader: loader, segment: segment, answer: answer, pipe: pipe, progress: progress,
        sanitizer: form?.sanitizer,
        transfer: SegmentTransfer(
          index: index, began: answer.asked ?? now, answered: answer.answered ?? now,
          requestCount: answer.requestCount),
        body: answer.body,
        collectsKeyFrame: options.keyFrameAction != .readOn && !answer.isDecrypted,
        endsAtKeyFrame: options.keyFrameAction == .end || form?.isH264 ?? false)
      try await copying.run()
    }
  }

  var pipe: BytePipe { transfer.pipe }
  /// Nil until the initialization has come, or if it was known.
  var form: Form? { progress.withLock { $0.form } }
  /// True if damage to the segment was recorded.
  var isDamaged: Bool { progress.withLock { $0.isDamaged } }
  /// True if everything up to the end of the segment's first key frame was written at once.
  var hasFoundKeyFrame: Bool { progress.withLock { $0.hasFoundKeyFrame } }

  /// The size of the segment as the manifest or the response states it; nil if neither does, or not yet.
  var statedByteCount: Int64? { progress.withLock { $0.statedByteCount } }
  /// The property of `SegmentSanitizer`; 0 for a segment that is not checked.
  var firstFrameEnd: Int64? { progress.withLock { $0.firstFrameEnd } }

  /// Ends the download with this scope too.
  func end(with scope: LoadScope) { transfer.end(with: scope) }

  /// Sends the requests, and writes the initialization.
  private static func open(
    _ segment: SegmentReference, before next: SegmentReference?, form: Form?, of file: FileTransfer?,
    _ loader: SegmentLoader, _ progress: Locked<Progress>, _ pipe: BytePipe
  ) async throws -> (form: Form?, answer: SegmentLoader.Answer) {
    // Both requests are sent before either response is awaited.
    async let initialization = form == nil ? loader.initialization(of: segment) : nil
    async let opened = loader.open(segment, before: next, of: file)
    guard let bytes = try await initialization else { return (form, try await opened) }
    let form = Form(initialization: bytes, isChecked: loader.recordDamage != nil)
    progress.withLock { $0.form = form }
    try await pipe.write(bytes)
    return (form, try await opened)
  }
}

/// Copies a segment from its response into a pipe: the key frame at its start at once if that is wanted, so that the
/// reader wakes once, and the rest as it arrives.
private struct SegmentCopying {
  let loader: SegmentLoader
  let segment: SegmentReference
  let answer: SegmentLoader.Answer
  let pipe: BytePipe
  let progress: Locked<SegmentDownload.Progress>
  var sanitizer: SegmentSanitizer?
  var transfer: SegmentTransfer
  /// Nil once nothing is left to request.
  var body: FetchBody?
  /// True until the key frame has been written.
  var collectsKeyFrame: Bool
  /// True if the transfer ends at the end of the key frame.
  let endsAtKeyFrame: Bool
  /// The beginning of the segment, up to the end of the key frame.
  var held: [UInt8] = []
  /// The number of bytes that were checked.
  var checkedCount: Int64 = 0
  /// True once the end of the first frame is known.
  var hasFirstFrame = false

  /// The maximum delay of a reader that keeps up. A longer wait means that it holds the transfer back.
  private static let holdBackLimit = Duration.milliseconds(20)
  /// The maximum size of a key frame that is collected. A larger one is passed on as it arrives.
  private static let keyFrameLimit: Int64 = 1 << 20

  mutating func run() async throws {
    defer { loader.record?(transfer) }
    do {
      try await copyBody()
      try await finish()
    } catch let error as ReelError {
      try await writeHeld()
      var described = error.located(at: segment.url.reelName)
      if answer.isDecrypted, error.kind == .badMedia, error.advice == nil {
        described.advice = "it was decrypted, but the key may be wrong"
      }
      throw described
    }
  }

  // MARK: - Private

  private var clock: any MonotonicClock { loader.recorder.clock }
  private var isChecked: Bool { loader.recordDamage != nil }

  /// Copies the body. One that ends early is passed on as it is, if damage is recorded.
  private mutating func copyBody() async throws {
    do {
      while let chunk = try await next() {
        guard let end = keyFrameEnd else {
          try await pass(chunk)
          continue
        }
        held += chunk
        if checkedCount >= end { try await writeKeyFrame(endingAt: end) }
      }
      try await writeHeld()
    } catch let error as ReelError where error.isOfEarlyEnd && transfer.byteCount > 0 && isChecked {
      try await writeHeld()
      report(error)
    }
  }

  /// Returns the next bytes, checked; nil at the end of the body.
  private mutating func next() async throws -> [UInt8]? {
    let byteLimit = loader.byteLimit(of: segment)
    while let received = try await body?.next() {
      transfer.add(received.count, at: clock.now)
      guard transfer.byteCount <= byteLimit else {
        answer.close()
        throw ReelError(.badMedia, "the segment has more than \(byteLimit) bytes")
      }
      let chunk = try sanitizer?.pass(received) ?? received
      checkedCount += Int64(chunk.count)
      if !hasFirstFrame, let end = sanitizer?.firstFrameEnd {
        hasFirstFrame = true
        progress.withLock { $0.firstFrameEnd = end }
      }
      if !chunk.isEmpty { return chunk }
    }
    return nil
  }

  /// Where the key frame ends up to which bytes are collected; nil if they are passed on as they arrive.
  private var keyFrameEnd: Int64? {
    guard collectsKeyFrame, let end = sanitizer?.keyFrameEnd, end <= Self.keyFrameLimit else { return nil }
    return end
  }

  private mutating func pass(_ chunk: [UInt8]) async throws {
    let written = clock.now
    if try await pipe.writeWaiting(chunk), clock.now - written > Self.holdBackLimit {
      transfer.isHeldBack = true
    }
  }

  /// Writes the key frame, and continues when the reader wants more.
  private mutating func writeKeyFrame(endingAt end: Int64) async throws {
    collectsKeyFrame = false
    let rest = Array(held.suffix(Int(checkedCount - end)))
    held.removeLast(rest.count)
    let ends = endsAtKeyFrame && answer.byteCount != transfer.byteCount
    if ends { answer.close() }
    progress.withLock { $0.hasFoundKeyFrame = true }
    try await writeHeld()
    try await pipe.drain()
    held = rest
    try await writeHeld()
    if ends { body = try await loader.rest(of: segment, from: transfer.byteCount) }
  }

  private mutating func writeHeld() async throws {
    let bytes = held
    held = []
    try await pipe.write(bytes)
  }

  /// Checks the segment as a whole, and writes what the sanitizer still holds.
  private mutating func finish() async throws {
    if isChecked, transfer.byteCount == 0 { throw ReelError(.badMedia, "the segment is empty") }
    guard let ending = try sanitizer?.finish() else { return }
    if let damage = ending.damage, !progress.withLock({ $0.isDamaged }) { report(damage) }
    try await pipe.write(ending.bytes)
  }

  private func report(_ damage: ReelError) {
    progress.withLock { $0.isDamaged = true }
    loader.recordDamage?(damage.located(at: segment.url.reelName), segment.range)
  }
}
