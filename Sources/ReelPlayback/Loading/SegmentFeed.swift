internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// A run of segments that belong together (one initialization, no discontinuity between them) as one stream of
/// bytes.
///
/// Init and first segment are asked for at the same time, on two connections; later segments one after the other, the
/// next one's answer being awaited while the one before is read where `readsAhead` says so.
final class SegmentFeed: ByteSource {
  let byteCount: Int64? = nil
  let isSeekable = false
  /// Index of the first segment of the run.
  let firstIndex: Int

  private let transfer: PipeTask
  private let progress: FeedProgress
  private let scope: LoadScope
  private let recorder: StartupRecorder
  /// Nil where nobody asks how reading could go on with another demuxer.
  private var fragments: FragmentMemory?

  /// - Parameter endsAtFailures: a segment of which nothing has come ends the run, with `failure`, so that all before it
  ///   is read whole; else its error is thrown by `read`.
  init(
    _ loader: SegmentLoader, from first: Int, readsAhead: Bool, scope: LoadScope, recorder: StartupRecorder,
    endsAtFailures: Bool = false, goesOn: @escaping @Sendable (Int) async -> Bool = { _ in true }
  ) {
    firstIndex = first
    self.scope = scope
    self.recorder = recorder
    let progress = FeedProgress(nextIndex: first)
    self.progress = progress
    transfer = PipeTask(in: scope) { pipe in
      do {
        try await loader.load(
          from: first, readsAhead: readsAhead, into: pipe, telling: progress, goesOn: goesOn)
      } catch let error as ReelError where endsAtFailures && progress.isBetweenSegments {
        progress.fail(error)
      }
    }
  }

  /// The segment after the last one that belongs to the run, as far as it has been loaded.
  var nextIndex: Int { progress.values.withLock { $0.nextIndex } }

  /// Why the segment after the last one that was read could not be had.
  var failure: ReelError? { progress.values.withLock { $0.failure } }

  /// The segment that the byte at `offset` of the stream came from; nil before anything was begun.
  func part(at offset: Int64) -> FeedProgress.Part? { progress.part(at: offset) }

  /// The keys for the stream's samples.
  func keys(_ store: KeyStore, protection: ContentProtection?, context: TrackContext) -> ContainerKeys {
    ContainerKeys(
      context: context, protection: protection, location: context.name, scope: scope, store: store
    ) { [progress] in progress.part(at: $0)?.encryption }
  }

  /// True where reading has met a failure of what loads the stream.
  private(set) var hasFailed = false

  /// Remembers from here on, which is to be before the first read, what another demuxer needs to go on.
  func rememberFragments() { fragments = FragmentMemory() }

  /// For another demuxer that goes on at the byte at `offset` of the stream, which was read, as `unread` was behind it.
  func resumed(at offset: Int64, unread: [UInt8]) -> SegmentResumption? {
    guard let (head, count) = fragments?.resumption(at: offset) else { return nil }
    return SegmentResumption(head: head, skippedByteCount: count, unread: unread, offset: offset)
  }

  /// The first bytes, without taking them.
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
    fragments?.note(UnsafeRawBufferPointer(buffer).prefix(count).rebased)
    return count
  }

  func seek(to offset: Int64) throws {
    throw ReelError(.internalFault, "a stream of segments can't be sought")
  }
}

/// How the reading of a stream of segments goes on that was left in the middle.
struct SegmentResumption {
  let head: [UInt8]
  /// Media between the head and the place, which was demuxed before.
  let skippedByteCount: Int64
  let unread: [UInt8]
  /// The place in the stream.
  let offset: Int64

  /// Where the place is in the bytes that the new demuxer gets.
  var resumedOffset: Int64 { Int64(head.count) + skippedByteCount }
}

extension Slice<UnsafeRawBufferPointer> {
  fileprivate var rebased: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self) }
}
