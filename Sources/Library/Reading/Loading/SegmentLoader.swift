internal import Foundation
internal import HTTPTypes
internal import ReelCore
package import ReelManifest
internal import ReelSources

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
  /// The description of the rung in requests.
  var media: RequestedMedia?
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
  func byteLimit(of segment: SegmentReference) -> Int64 {
    Int64(min(max(4, segment.duration.seconds), 1e6)) * byteRate
  }

  /// Returns the initialization before the segment; empty if there is none.
  func initialization(of segment: SegmentReference) async throws -> [UInt8] {
    guard let reference = segment.initialization else { return [] }
    if let kept = initializations?[reference] { return kept }
    let start = recorder.clock.now
    let decryption = try await keys.decryption(for: reference.encryption, at: reference.url)
    let response = try await fetch(
      reference.url, reference.alternateURLs, range: reference.byteRange, purpose: .initialization, media)
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
  /// - Parameters:
  ///   - next: The segment after this one; nil if it is not known.
  ///   - file: A transfer that may deliver the segment without a request.
  func open(
    _ segment: SegmentReference, before next: SegmentReference? = nil, of file: FileTransfer? = nil
  ) async throws -> Answer {
    if let file {
      if let answer = answer(to: segment, of: file) { return answer }
      file.close()
    }
    try KeyStore.check(segment.encryption, at: segment.url)
    // The key is requested at the same time as the segment.
    async let decryption = keys.decryption(for: segment.encryption, at: segment.url)
    let asked = recorder.clock.now
    recorder.add(.segment, requests: 1)
    var media = media
    media?.duration = segment.duration
    media?.next = next.map { RequestedMedia.Next(url: $0.url, range: $0.byteRange) }
    var response = try await fetch(
      segment.url, segment.alternateURLs, range: segment.byteRange, purpose: .segment, media)
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
  func rest(of segment: SegmentReference, from offset: Int64) async throws -> FetchBody? {
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
    _ url: URL, _ alternates: [URL], range: ByteRange?, purpose: FetchPurpose, _ media: RequestedMedia?
  ) async throws -> FetchResponse {
    try await location.first(of: [url] + alternates, where: { location.roams && $0.isOfLocation }) { url in
      var request = FetchRequest(url: url, range: range, purpose: purpose)
      request.media = media
      return try await fetcher.fetch(request)
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
