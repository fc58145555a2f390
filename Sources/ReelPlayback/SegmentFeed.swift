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

  private let pipe = BytePipe()
  private let progress = FeedProgress()
  private let scope: LoadScope
  private let recorder: StartupRecorder
  private var task: Task<Void, Never>?
  private var cancellation = 0

  init(
    segments: SegmentList, from first: Int, readsAhead: Bool, fetcher: any Fetching, headers: [HeaderField],
    scope: LoadScope, recorder: StartupRecorder
  ) {
    firstIndex = first
    self.scope = scope
    self.recorder = recorder
    let (pipe, progress) = (pipe, progress)
    progress.values.withLock { $0.nextIndex = first }
    let loader = SegmentLoader(fetcher: fetcher, headers: headers, recorder: recorder)
    let task = Task {
      do {
        try await loader.load(
          segments, from: first, readsAhead: readsAhead, into: pipe, telling: progress)
        pipe.finish()
      } catch {
        pipe.fail(error)
      }
    }
    self.task = task
    cancellation = scope.onCancel {
      task.cancel()
      pipe.close()
    }
  }

  deinit {
    task?.cancel()
    pipe.close()
    scope.forget(cancellation)
  }

  /// The segment after the last one that belongs to the run, as far as it has been loaded.
  var nextIndex: Int { progress.values.withLock { $0.nextIndex } }

  /// What the bytes that were read last came from.
  var currentURL: URL? {
    let offset = pipe.readCount - 1
    return progress.values.withLock { values in
      (values.parts.last { $0.offset <= offset } ?? values.parts.first)?.url
    }
  }

  /// The first bytes, without taking them.
  func peek(_ count: Int) throws -> [UInt8] { try pipe.peek(count) }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = try pipe.read(into: buffer)
    recorder.add(.segment, bytes: Int64(count))
    return count
  }

  func seek(to offset: Int64) throws {
    throw ReelError(.internalFault, "a stream of segments can't be sought")
  }
}

extension SegmentReference {
  /// True where the segment goes on with the byte stream that `first` began.
  fileprivate func continues(_ first: SegmentReference) -> Bool {
    discontinuity == first.discontinuity && initialization == first.initialization && !isGap
  }
}

/// What the task of a feed tells its reader.
private final class FeedProgress: Sendable {
  struct Values {
    var nextIndex: Int
    /// Where each part of the stream begins, and what it is.
    var parts: [(offset: Int64, url: URL)] = []
    var writtenCount: Int64 = 0
  }

  let values = Locked(Values(nextIndex: 0))

  /// What is written from now on comes from `url`.
  func begin(_ url: URL) { values.withLock { $0.parts.append(($0.writtenCount, url)) } }

  func add(_ count: Int) { values.withLock { $0.writtenCount += Int64(count) } }
}

/// Sends the requests for segments.
private struct SegmentLoader: Sendable {
  let fetcher: any Fetching
  let headers: [HeaderField]
  let recorder: StartupRecorder

  /// An initialization segment is larger than this only by mistake.
  private static let initializationByteLimit = 8 << 20

  /// Writes the run that begins with segment `first` into a pipe.
  func load(
    _ segments: SegmentList, from first: Int, readsAhead: Bool, into pipe: BytePipe,
    telling progress: FeedProgress
  ) async throws {
    let opening = segments[first]
    let initializationURL = opening.initialization?.url ?? opening.url
    progress.begin(initializationURL)
    // Both requests leave before either answer is awaited.
    async let initialization = initialization(of: opening)
    async let opened = open(opening)
    if let bytes = try await initialization {
      progress.add(bytes.count)
      try await pipe.write(bytes)
    }
    progress.begin(opening.url)
    var response = try await opened
    var index = first
    while true {
      let following = index + 1 < segments.count ? segments[index + 1] : nil
      let belongs = following.map { $0.continues(opening) } ?? false
      if readsAhead, belongs, let following {
        async let ahead = open(following)
        try await copy(response, to: pipe, telling: progress)
        progress.values.withLock { $0.nextIndex = index + 1 }
        progress.begin(following.url)
        response = try await ahead
      } else {
        try await copy(response, to: pipe, telling: progress)
        progress.values.withLock { $0.nextIndex = index + 1 }
        guard belongs, let following else { return }
        // The next segment may not be wanted at all.
        try await pipe.drain()
        progress.begin(following.url)
        response = try await open(following)
      }
      index += 1
    }
  }
  // MARK: - Private

  private func copy(_ response: FetchResponse, to pipe: BytePipe, telling progress: FeedProgress) async throws
  {
    for try await chunk in response.body {
      progress.add(chunk.count)
      try await pipe.write(chunk)
    }
  }

  /// The bytes that come before the segment; nil where there are none.
  private func initialization(of segment: SegmentReference) async throws -> [UInt8]? {
    guard let reference = segment.initialization else { return nil }
    try refuse(reference.encryption, at: reference.url)
    let start = ContinuousClock.now
    let response = try await fetcher.fetch(
      FetchRequest(url: reference.url, range: reference.byteRange, headers: headers, purpose: .initialization)
    )
    let bytes = try await response.ranged(reference.byteRange).collect(
      upTo: Self.initializationByteLimit)
    recorder.add(.initialization, ContinuousClock.now - start, requests: 1, bytes: Int64(bytes.count))
    return bytes
  }

  /// The answer to the segment's request, its body not yet read.
  private func open(_ segment: SegmentReference) async throws -> FetchResponse {
    try refuse(segment.encryption, at: segment.url)
    recorder.add(.segment, requests: 1)
    var response = try await fetcher.fetch(
      FetchRequest(url: segment.url, range: segment.byteRange, headers: headers, purpose: .segment))
    response.body = response.ranged(segment.byteRange)
    return response
  }

  private func refuse(_ encryption: SegmentEncryption?, at url: URL) throws(ReelError) {
    guard let encryption else { return }
    throw ReelError(.unsupported, "the segment is encrypted (\(encryption.method))", at: url.reelName)
  }
}

extension FetchResponse {
  /// The bytes of `range`, and no others, also where the server sent more than was asked for.
  fileprivate func ranged(_ range: ByteRange?) -> FetchBody {
    guard let range, bodyOffset != range.offset || bodyByteCount != range.length else { return body }
    let body = body
    let rest = Locked((skip: range.offset - bodyOffset, take: range.length))
    return FetchBody {
      var iterator = body.makeAsyncIterator()
      while let chunk = try await iterator.next() {
        let wanted = rest.withLock { rest -> [UInt8]? in
          let skipped = Int(clamping: Swift.min(rest.skip, Int64(chunk.count)))
          rest.skip -= Int64(skipped)
          var wanted = chunk.dropFirst(skipped)
          if let take = rest.take {
            if take == 0 { return nil }
            wanted = wanted.prefix(Int(clamping: take))
            rest.take = take - Int64(wanted.count)
          }
          return Array(wanted)
        }
        guard let wanted else { return nil }
        if !wanted.isEmpty { return wanted }
      }
      return nil
    }
  }
}
