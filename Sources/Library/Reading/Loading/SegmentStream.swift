internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelSources

/// The bytes of a span: segments of one rung with one initialization and no discontinuity, as one stream.
///
/// Its reader drives it: a thread by `read(into:)`, or a task that only counts the bytes by `arrival()`. When a
/// segment has been read, this type decides whether the span goes on, waits for the next segment of a live track,
/// and decides what follows a failure. Another task brings one segment (`SegmentDownload`). The next one is
/// requested when the reader needs it or, with `readsAhead`, as soon as the current one arrives.
///
/// Confined to its reader.
final class SegmentStream: ByteSource {
  /// A part of the stream: a segment, or the initialization before it, which has the segment's index.
  struct Part: Sendable {
    /// The offset of its first byte.
    let offset: Int64
    let index: Int
    let url: URL
    let encryption: SegmentEncryption?
  }

  /// More of a segment, as `arrival()` returns it.
  struct Arrival {
    let index: Int
    let segment: SegmentReference
    /// The number of bytes that have arrived since the last one.
    let byteCount: Int
    /// How much of the segment has arrived, from 0 to 1.
    let share: Double
    let hasFirstFrame: Bool
  }

  let byteCount: Int64? = nil
  /// The index of the first segment.
  let firstIndex: Int
  /// The index of the segment after the last one that was read to its end.
  private(set) var nextIndex: Int
  /// The error of the segment after the last one. The stream ends before it, so that everything until there is read.
  private(set) var failure: ReelError?
  /// True if a read has thrown.
  private(set) var hasFailed = false

  private let track: RungTrack
  private let first: SegmentReference
  private let readsAhead: Bool
  private let options: SegmentDownload.Options
  private let goesOn: (SegmentReference) -> Bool
  private var scope: LoadScope
  /// The transfer of a file whose parts the segments are, as long as they are adjacent.
  private let file: FileTransfer?
  /// The segment that is read, then the one that is requested ahead. None at the end.
  private var downloads: [SegmentDownload] = []
  private var readCount: Int64 = 0
  /// The offset at which the current segment begins.
  private var boundary: Int64 = 0
  /// The contents of the initialization; nil until it has arrived.
  private var form: SegmentDownload.Form?
  private var hasLookedAhead = false
  /// True if the last arrival was the end of its segment.
  private var hasAllArrived = false
  private var hasReadKeyFrame = false
  private var damagedIndexes: Set<Int> = []
  /// The last parts, in order. Also asked for keys, through a type that is `Sendable`.
  private let parts = Locked<[Part]>([])
  /// The number of parts to remember. A demuxer does not read far ahead of the packets that it returns.
  private static let partLimit = 64
  /// Nil if no other demuxer has to resume the stream.
  private var fragments: FragmentMemory?

  /// Requests the initialization and the first segment.
  ///
  /// - Parameters:
  ///   - readsAhead: Whether the next segment is requested while the current one is read.
  ///   - goesOn: Returns false if the span ends before a segment, although that continues the stream.
  init(
    _ track: RungTrack, from index: Int, _ segment: SegmentReference, readsAhead: Bool, scope: LoadScope,
    options: SegmentDownload.Options, goesOn: @escaping (SegmentReference) -> Bool
  ) {
    self.track = track
    firstIndex = index
    nextIndex = index
    first = segment
    self.readsAhead = readsAhead
    self.options = options
    self.goesOn = goesOn
    self.scope = scope
    file = track.loader.opening?.claim()
    begin(index, segment)
  }

  deinit { file?.close() }

  // MARK: Reading

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    do {
      while let download = downloads.first {
        do {
          let count = try download.pipe.read(into: buffer)
          takeForm(of: download)
          if count > 0 {
            record(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer).prefix(count)))
            if readsAhead { lookAhead(of: download) }
            return count
          }
          if end(download) { try waitForNext() }
        } catch let error as ReelError {
          try recover(from: error, of: download, by: waitForRecovery(from: error, of: download))
        }
      }
      return 0
    } catch {
      hasFailed = true
      throw error
    }
  }

  /// Waits for bytes of a segment without blocking a thread, and discards them. Each segment ends with an arrival
  /// whose `share` is 1. Nil at the end of the stream. Throws like `read(into:)`.
  func arrival() async throws -> Arrival? {
    while let download = downloads.first {
      do {
        if !hasAllArrived {
          let count = try await download.pipe.discard()
          takeForm(of: download)
          readCount += Int64(count)
          track.loader.recorder.add(.segment, bytes: Int64(count))
          if count > 0, readsAhead { lookAhead(of: download) }
          hasAllArrived = count == 0
          if hasAllArrived || hasBytes { return arrival(of: download, count) }
        } else if end(download) {
          let found: (index: Int, segment: SegmentReference)?
          do {
            found = try await scope.perform { [supply = track.supply, nextIndex] in
              try await supply.segment(from: nextIndex)
            }
          } catch let error as ReelError {
            failure = error
            return nil
          }
          goOn(with: found)
        }
      } catch let error as ReelError {
        let recovery = try await scope.perform { [track, index = download.index] in
          try await Self.recovery(from: error, at: index, of: track)
        }
        try recover(from: error, of: download, by: recovery)
      }
    }
    return nil
  }

  /// Returns the first bytes, without taking them. They may be fewer than `count` if the first segment is shorter.
  func peek(_ count: Int) throws -> [UInt8] {
    while let download = downloads.first {
      do {
        return try download.pipe.peek(count)
      } catch let error as ReelError {
        try recover(from: error, of: download, by: waitForRecovery(from: error, of: download))
      }
    }
    return []
  }

  /// Returns enough bytes to detect the format, without taking them.
  func head() throws -> [UInt8] {
    var count = SourceSniffer.byteCount / 4
    var head = try peek(count)
    while head.count == count, SourceSniffer.needsMore(head) {
      count *= 2
      head = try peek(count)
    }
    return head
  }

  /// Ends reading with this scope too: that of the reader, if the downloads have a longer one.
  func end(with scope: LoadScope) {
    guard scope !== self.scope else { return }
    self.scope = scope
    for download in downloads { download.end(with: scope) }
  }

  // MARK: Contents

  /// Returns the part with the byte at `offset`; nil before the first one.
  func part(at offset: Int64) -> Part? { Self.part(at: offset, in: parts) }

  /// The URL of the last request, for the initialization or a segment.
  var lastURL: URL? {
    if let download = downloads.first { takeForm(of: download) }
    return parts.withLock { $0.last?.url }
  }

  /// True if the index of a fragment has determined the bytes of the first key frame.
  var hasFoundKeyFrame: Bool { hasReadKeyFrame || downloads.first?.hasFoundKeyFrame ?? false }

  /// Returns true if damage to the segment at `index` was recorded.
  func isDamaged(_ index: Int) -> Bool {
    damagedIndexes.contains(index) || downloads.contains { $0.index == index && $0.isDamaged }
  }

  /// Returns the keys for the stream's samples.
  func keys(_ store: KeyStore, protection: ContentProtection?, context: TrackContext) -> ContainerKeys {
    ContainerKeys(
      context: context, protection: protection, location: context.name, scope: scope, store: store
    ) { [parts] in Self.part(at: $0, in: parts)?.encryption }
  }

  // MARK: Resuming

  /// Enables another demuxer to resume the stream. Call it before the first read.
  func rememberFragments() { fragments = FragmentMemory() }

  /// Returns the state for another demuxer that resumes at the byte at `offset`. That byte was read before, and
  /// `unread` are the bytes after it.
  func resumed(at offset: Int64, unread: [UInt8]) -> SegmentResumption? {
    guard let (head, count) = fragments?.resumption(at: offset) else { return nil }
    return SegmentResumption(head: head, skippedByteCount: count, unread: unread, offset: offset)
  }

  // MARK: - Private

  private static func part(at offset: Int64, in parts: Locked<[Part]>) -> Part? {
    parts.withLock { parts in parts.last { $0.offset <= offset } ?? parts.first }
  }

  /// True if bytes of the current segment were read.
  private var hasBytes: Bool {
    guard let form else { return false }
    return readCount > max(boundary, form.initializationByteCount)
  }

  private func begin(_ index: Int, _ segment: SegmentReference) {
    let download = SegmentDownload(
      track.loader, index: index, segment, before: track.supply[index + 1], form: form, of: file,
      scope: scope, options)
    downloads.append(download)
    if downloads.count == 1 { addPart(of: download) }
  }

  private func addPart(of download: SegmentDownload) {
    let segment = download.segment
    let url = form == nil ? segment.initialization?.url ?? segment.url : segment.url
    add(Part(offset: readCount, index: download.index, url: url, encryption: segment.encryption))
  }

  private func add(_ part: Part) {
    parts.withLock {
      if $0.count == Self.partLimit { $0.removeFirst() }
      $0.append(part)
    }
  }

  /// Begins the part of the first segment, once the initialization before it has come.
  private func takeForm(of download: SegmentDownload) {
    guard form == nil, let form = download.form else { return }
    self.form = form
    let segment = download.segment
    add(
      Part(
        offset: form.initializationByteCount, index: download.index, url: segment.url,
        encryption: segment.encryption))
  }

  private func record(_ bytes: UnsafeRawBufferPointer) {
    readCount += Int64(bytes.count)
    track.loader.recorder.add(.segment, bytes: Int64(bytes.count))
    fragments?.record(bytes)
  }

  /// Requests the next segment, if it is known and the span goes on with it. Parts of a file come one after the other.
  private func lookAhead(of download: SegmentDownload) {
    guard hasBytes, !hasLookedAhead, file?.isClosed ?? true else { return }
    hasLookedAhead = true
    let index = download.index + 1
    if let segment = track.supply[index], segment.continues(first), goesOn(segment) { begin(index, segment) }
  }

  /// - Parameter count: The number of bytes that were just taken, perhaps with those of the initialization.
  private func arrival(of download: SegmentDownload, _ count: Int) -> Arrival {
    let arrived = readCount - max(boundary, form?.initializationByteCount ?? 0)
    var share = 1.0
    if !hasAllArrived {
      let rate = track.rung.averageBitsPerSecond ?? track.rung.bitsPerSecond ?? 0
      let byteCount =
        download.statedByteCount.map(Double.init) ?? download.segment.duration.seconds * Double(rate) / 8
      share = byteCount > 0 ? min(Double(arrived) / byteCount, 1) : 0
    }
    return Arrival(
      index: download.index, segment: download.segment, byteCount: min(count, Int(arrived)), share: share,
      hasFirstFrame: hasAllArrived || download.firstFrameEnd.map { arrived >= $0 } ?? false)
  }

  /// Goes on after a segment that was read to its end. Returns true if the next one has to be waited for.
  private func end(_ download: SegmentDownload) -> Bool {
    if case .live(let live, _) = track.supply { live.recordSuccess() }
    leave(download)
    if let next = downloads.first {
      addPart(of: next)
      return false
    }
    switch track.supply.peek(at: nextIndex) {
    case .end: return false
    case .element(let segment):
      goOn(with: (nextIndex, segment))
      return false
    case .wait: return true
    }
  }

  /// Requests the next segment, unless the span ends before it. Nil is the end of the media.
  private func goOn(with next: (index: Int, segment: SegmentReference)?) {
    guard let (index, segment) = next else { return }
    nextIndex = index
    if segment.continues(first), goesOn(segment) { begin(index, segment) }
  }

  private func waitForNext() throws {
    do {
      goOn(
        with: try BlockingThread.wait(scope: scope) { [supply = track.supply, nextIndex] in
          try await supply.segment(from: nextIndex)
        })
    } catch let error as ReelError {
      failure = error
    }
  }

  /// Ends a download, after which the stream continues or ends.
  private func leave(_ download: SegmentDownload) {
    downloads.removeFirst()
    hasReadKeyFrame = hasFoundKeyFrame || download.hasFoundKeyFrame
    if download.isDamaged { damagedIndexes.insert(download.index) }
    nextIndex = download.index + 1
    boundary = readCount
    hasLookedAhead = false
    hasAllArrived = false
  }

  /// Returns what a live track does after a failure; `fail` for a complete list.
  private static func recovery(
    from error: ReelError, at index: Int, of track: RungTrack
  ) async throws -> LiveRecovery {
    guard case .live(let live, _) = track.supply else { return .fail }
    return try await live.recovery(after: error, at: index)
  }

  private func waitForRecovery(from error: ReelError, of download: SegmentDownload) throws -> LiveRecovery {
    guard case .live = track.supply else { return .fail }
    return try BlockingThread.wait(scope: scope) { [track, index = download.index] in
      try await Self.recovery(from: error, at: index, of: track)
    }
  }

  /// Goes on after a failure, ends the stream, or throws the error.
  private func recover(from error: ReelError, of download: SegmentDownload, by recovery: LiveRecovery) throws
  {
    takeForm(of: download)
    let isBetween = boundary > 0 && readCount == boundary
    switch recovery {
    case .again where !hasBytes:
      downloads = []
      guard let segment = track.supply[download.index] else {
        throw ReelError(.network, "the segment left the live window before it was fetched")
      }
      begin(download.index, segment)
    case .again, .leaveOut:
      if case .leaveOut = recovery { track.loader.recordMissed?(error, download.segment.range) }
      leave(download)
      downloads = []
    case .fail:
      guard isBetween else { throw error }
      downloads = []
      failure = error
    }
  }
}

/// The state with which another demuxer resumes a stream of segments.
struct SegmentResumption {
  let head: [UInt8]
  /// The number of bytes of media between the head and the offset, which were demuxed before.
  let skippedByteCount: Int64
  let unread: [UInt8]
  /// The offset in the stream.
  let offset: Int64

  /// The offset in the bytes that the new demuxer gets.
  var resumedOffset: Int64 { Int64(head.count) + skippedByteCount }
}
