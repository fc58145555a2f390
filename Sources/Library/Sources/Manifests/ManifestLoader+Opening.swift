package import Foundation
package import ReelCore
package import ReelManifest

/// Opening of a file whose segments are listed in an index.
extension ManifestLoader {
  /// Returns the segments of a rung that is read from its beginning. Like `segments`, but a file is read in
  /// one transfer, which continues with its segments. An index that is not at the beginning is requested at
  /// the same time. A file without a readable index is one segment.
  ///
  /// - Parameters:
  ///   - initializations: Gets the file's initialization.
  ///   - location: The location to request the file from first; updated to the one that delivered it.
  package func opening(
    of rung: Rung, variables: [String: String], initializations: InitializationStore,
    location: ServiceLocation
  ) async throws -> RungSegments {
    guard case .index(let reference) = rung.media else {
      return try await segments(of: rung, variables: variables)
    }
    return try await location.first(of: [reference.url] + reference.alternateURLs) { url in
      try await opening(of: reference, at: url, initializations)
    }
  }

  /// Returns a fragmented MP4 file as a presentation of its fragments, if an index before the media (`sidx`)
  /// lists them and they can be read by themselves; otherwise nil.
  ///
  /// - Parameters:
  ///   - response: The response to a request for the whole file.
  ///   - known: The first bytes, which have been taken from the response's body; those that were read for the index are added.
  package func presentation(
    ofFile response: FetchResponse, at url: URL, known: inout [UInt8]
  ) async throws -> ResolvedPresentation? {
    var head = FileHead(response, read: known)
    defer { known = head.bytes }
    let reference = SegmentIndexReference(
      url: url, indexRange: nil, initialization: nil, start: .zero, duration: nil, timestampOffset: .zero)
    let list: SegmentList
    do {
      list = try await index(reference, in: &head, of: url)
    } catch let error as ReelError where error.kind == .badMedia {
      // There is no index, or it can't be read.
      return nil
    }
    recorder.add(.manifest, bytes: Int64(head.bytes.count - known.count))
    guard list.count > 1, list.isPlausible(byteCount: response.resourceByteCount) else { return nil }
    let rung = Rung(id: "0", bitsPerSecond: nil, media: .segments(list))
    let group = TrackGroup(
      id: nil, kind: .video, language: nil, label: nil, roles: [], isDefault: true, rungs: [rung])
    let period = Period(id: nil, start: .zero, duration: nil, trackGroups: [group])
    return ResolvedPresentation(
      presentation: Presentation(format: .dash, duration: list.end, periods: [period]), url: url,
      clock: configuration.clock)
  }

  // MARK: - Private

  private func opening(
    of reference: SegmentIndexReference, at url: URL, _ initializations: InitializationStore
  ) async throws -> RungSegments {
    async let distant = distantIndex(of: reference, at: url)
    let asked = recorder.clock.now
    let response = try await fetcher.fetch(FetchRequest(url: url, purpose: .segment))
    let answered = recorder.clock.now
    recorder.add(.segment, requests: response.requestCount)
    var head = FileHead(response)
    let list: SegmentList
    var indexFault: ReelError?
    do {
      list = try await index(reference, in: &head, of: response.url, known: try await distant)
    } catch let error as ReelError where error.concernsOneResource {
      if reference.indexRange != nil { indexFault = error }
      list = SegmentList([wholeFile(reference)])
    }
    if !list.isEmpty, let initialization = list[0].initialization, initialization.url == reference.url,
      let range = initialization.byteRange, let bytes = try await head.bytes(in: range)
    {
      initializations[initialization] = bytes
    }
    return RungSegments(
      list: list,
      transfer: FileTransfer(
        response, head: head.bytes, url: reference.url, asked: asked, answered: answered),
      indexFault: indexFault)
  }

  /// Returns the bytes of an index that is not at the beginning of its file; nil for others.
  private func distantIndex(of reference: SegmentIndexReference, at url: URL) async throws -> [UInt8]? {
    guard let range = reference.indexRange, !reference.hasIndexFirst else { return nil }
    return try await document(at: url, range: range).bytes
  }

  /// Like `index`, but uses the part of it that the beginning of the file contains.
  ///
  /// - Parameter known: The bytes of the index's range, if they have been fetched.
  private func index(
    _ reference: SegmentIndexReference, in head: inout FileHead, of url: URL, known: [UInt8]? = nil
  ) async throws -> SegmentList {
    var reader = SegmentIndexReader(reference: reference, limits: configuration.manifestLimits)
    if let known, let range = reader.missing { try reader.add(known, at: range.offset) }
    if reference.indexRange == nil {
      // The end of the index is unknown, so wait only for the bytes that are needed to read it.
      while let range = reader.missing, range.offset == 0, try await head.readOn() {
        var attempt = reader
        do throws(ReelError) {
          try attempt.add(head.bytes, at: 0)
          reader = attempt
        } catch {
          if head.bytes.count >= range.length ?? 0 || head.hasMedia(at: error.place) { throw error }
        }
      }
    }
    while let range = reader.missing {
      if let bytes = try await head.bytes(in: range) {
        try reader.add(bytes, at: range.offset)
      } else {
        let (bytes, _) = try await document(at: url, range: range)
        try reader.add(bytes, at: range.offset)
      }
    }
    return try reader.segments()
  }
}

/// The beginning of a file, read from its response as far as needed.
private struct FileHead {
  private(set) var bytes: [UInt8] = []
  private let body: FetchBody

  /// The maximum number of bytes read for an index.
  static let byteLimit = 1 << 20

  /// - Parameter read: The first bytes, which have been taken from the body.
  init(_ response: FetchResponse, read: [UInt8] = []) {
    body = response.body
    bytes = read
  }

  /// Waits for more bytes; false at the end.
  mutating func readOn() async throws -> Bool {
    guard let chunk = try await body.next() else { return false }
    bytes.append(contentsOf: chunk)
    return true
  }

  /// Returns true if the media of a fragment or sample box is at a position.
  func hasMedia(at place: ReelError.Place?) -> Bool {
    guard case .byte(let offset)? = place, offset >= 0, offset <= bytes.count - 8 else { return false }
    let type = bytes[(Int(offset) + 4)..<(Int(offset) + 8)]
    return type.elementsEqual("moof".utf8) || type.elementsEqual("mdat".utf8)
  }

  /// Waits for the bytes in `range`; nil if they are too far from the beginning, or missing.
  mutating func bytes(in range: ByteRange) async throws -> [UInt8]? {
    guard let length = range.length, range.offset >= 0, length <= Self.byteLimit,
      range.offset <= Int64(Self.byteLimit) - length
    else { return nil }
    let end = Int(range.offset + length)
    while bytes.count < end {
      guard try await readOn() else { break }
    }
    guard bytes.count > range.offset else { return nil }
    return Array(bytes[Int(range.offset)..<min(end, bytes.count)])
  }
}

extension SegmentIndexReference {
  /// True if the index is expected at the beginning of the file, before the media.
  fileprivate var hasIndexFirst: Bool {
    guard let indexRange else { return true }
    guard let initialization, initialization.url == url, let end = initialization.byteRange?.end else {
      return indexRange.offset <= 256 << 10
    }
    return indexRange.offset <= end + (16 << 10)
  }
}

extension SegmentList {
  /// Returns false for the segments of a damaged index: longer than an hour, or with bytes beyond the end of
  /// the file.
  fileprivate func isPlausible(byteCount: Int64?) -> Bool {
    let hour = MediaTime(value: 3600, timescale: 1)
    return (0..<count).allSatisfy { index in
      let segment = self[index]
      let end = segment.byteRange?.end ?? 0
      return segment.duration <= hour && end <= byteCount ?? .max
    }
  }
}
