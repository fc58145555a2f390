internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// A run of segments with one initialization and no discontinuity, as one stream of bytes.
///
/// The initialization and the first segment are requested at the same time, on two connections. Later segments
/// follow one by one. With `readsAhead`, the next one is requested while the current one is read.
final class SegmentFeed: ByteSource {
  let byteCount: Int64? = nil
  let isSeekable = false
  /// The index of the first segment of the run.
  let firstIndex: Int

  private let transfer: PipeTask
  private let progress: FeedProgress
  /// The scope that ends reading.
  private var scope: LoadScope
  private let recorder: StartupRecorder
  /// Nil if no other demuxer has to resume the stream.
  private var fragments: FragmentMemory?

  /// - Parameters:
  ///   - capacity: The number of unread bytes at which loading waits.
  ///   - endsAtFailures: Whether a segment that fails before its first byte ends the run, with `failure`, so that
  ///     everything before it is read. If false, `read` throws the error.
  ///   - keyFrameAction: The same as in `SegmentLoader.load`.
  init(
    _ loader: SegmentLoader, from first: Int, readsAhead: Bool, scope: LoadScope, recorder: StartupRecorder,
    capacity: Int = BytePipe.usualCapacity, endsAtFailures: Bool = false,
    keyFrameAction: SegmentLoader.KeyFrameAction = .readOn,
    continues: @escaping @Sendable (Int) async -> Bool = { _ in true }
  ) {
    firstIndex = first
    self.scope = scope
    self.recorder = recorder
    let progress = FeedProgress(nextIndex: first)
    self.progress = progress
    transfer = PipeTask(in: scope, capacity: capacity) { pipe in
      do {
        try await loader.load(
          from: first, readsAhead: readsAhead, into: pipe, telling: progress,
          keyFrameAction: keyFrameAction, continues: continues)
      } catch let error as ReelError where endsAtFailures && progress.isBetweenSegments {
        progress.fail(error)
      }
    }
  }

  /// The index of the segment after the last loaded one of the run.
  var nextIndex: Int { progress.values.withLock { $0.nextIndex } }

  /// True if the index of a fragment has determined the bytes of the first key frame.
  var hasFoundKeyFrame: Bool { progress.values.withLock { $0.hasFoundKeyFrame } }

  /// The error of the segment after the last loaded one.
  var failure: ReelError? { progress.values.withLock { $0.failure } }

  /// Returns the segment of the byte at `offset` of the stream; nil before the first one.
  func part(at offset: Int64) -> FeedProgress.Part? { progress.part(at: offset) }

  /// Returns true if damage to the segment at `index` was recorded.
  func isDamaged(_ index: Int) -> Bool { progress.isDamaged(index) }

  /// The URL of the last request, for the initialization or a segment; nil before the first.
  var lastURL: URL? { progress.values.withLock { $0.parts.last?.url } }

  /// Returns the keys for the stream's samples.
  func keys(_ store: KeyStore, protection: ContentProtection?, context: TrackContext) -> ContainerKeys {
    ContainerKeys(
      context: context, protection: protection, location: context.name, scope: scope, store: store
    ) { [progress] in progress.part(at: $0)?.encryption }
  }

  /// True if a read failed because the task that loads the stream failed.
  private(set) var hasFailed = false

  /// Enables another demuxer to resume the stream. Call it before the first read.
  func rememberFragments() { fragments = FragmentMemory() }

  /// Returns the state for another demuxer that resumes at the byte at `offset`. That byte was read before,
  /// and `unread` are the bytes after it.
  func resumed(at offset: Int64, unread: [UInt8]) -> SegmentResumption? {
    guard let (head, count) = fragments?.resumption(at: offset) else { return nil }
    return SegmentResumption(head: head, skippedByteCount: count, unread: unread, offset: offset)
  }

  /// Ends reading with this scope too: that of the reader, if loading has a longer scope.
  func end(with scope: LoadScope) {
    guard scope !== self.scope else { return }
    self.scope = scope
    transfer.end(with: scope)
  }

  /// Returns the first bytes, without taking them.
  func peek(_ count: Int) throws -> [UInt8] { try transfer.pipe.peek(count) }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count: Int
    do {
      count = try transfer.pipe.read(into: buffer)
    } catch {
      hasFailed = true
      throw error
    }
    recorder.add(.segment, bytes: Int64(count))
    fragments?.record(UnsafeRawBufferPointer(buffer).prefix(count).rebased)
    return count
  }

  func seek(to offset: Int64) throws {
    throw ReelError(.internalFault, "a stream of segments is not seekable")
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

extension Slice<UnsafeRawBufferPointer> {
  fileprivate var rebased: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self) }
}
