import Foundation
import HTTPTypes
import ReelCore
import ReelFFmpeg
import ReelManifest
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelReading
@testable import ReelSources
@testable import ReelStills

@Suite("Transfers that end at key frames", .hangLimit)
struct KeyFrameTransferTests {
  private func url(_ path: String) throws -> URL { try #require(URL(string: "http://host/\(path)")) }

  private func poster(
    of path: String, _ fetcher: FixtureFetcher, size: SizeLimit? = .square(320),
    gate: (any DecodingGate)? = nil
  ) async throws -> Poster {
    let extractor = StillExtractor(
      TrackOpener(
        fetcher: fetcher, configuration: LoadingConfiguration(), gate: gate, logger: silentLogger),
      size: size)
    return try await extractor.poster(.best(of: 6), of: MediaSource(argument: "http://host/\(path)")) { _ in }
      .poster
  }

  // MARK: Where the key frame ends

  private func fragment(
    headerFlags: UInt64 = 0x20000, header: [UInt8] = [], runFlags: UInt64 = 0x205, run: [UInt8],
    copies: Int = 1
  ) -> [UInt8] {
    let track = mp4Box(
      "traf",
      mp4Box("tfhd", bigEndian(headerFlags, bytes: 4) + bigEndian(1, bytes: 4) + header)
        + mp4Box("trun", bigEndian(runFlags, bytes: 4) + bigEndian(2, bytes: 4) + run))
    let tracks = Array(repeatElement(track, count: copies).joined())
    return mp4Box("moof", mp4Box("mfhd", [UInt8](repeating: 0, count: 8)) + tracks)
  }

  private func keyFrameEnd(_ fragment: [UInt8], inPiecesOf size: Int = 1000) throws -> Int64? {
    try sanitizer(after: fragment, inPiecesOf: size).keyFrameEnd
  }

  private func sanitizer(after fragment: [UInt8], inPiecesOf size: Int = 1000) throws -> FragmentSanitizer {
    var watch = FragmentSanitizer()
    var rest =
      (mp4Box("styp", Array("msdh".utf8)) + fragment + mp4Box("mdat", [UInt8](repeating: 1, count: 900)))[...]
    while !rest.isEmpty {
      _ = try watch.pass(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
    }
    return watch
  }

  /// Four bytes each.
  private func fields(_ values: UInt64...) -> [UInt8] { values.flatMap { bigEndian($0, bytes: 4) } }

  @Test("A fragment says where its first key frame ends", arguments: [1, 7, 64, 1000])
  func end(size: Int) throws {
    // `styp` has 12 bytes.
    #expect(
      try keyFrameEnd(fragment(run: fields(300, 0x200_0000, 500, 20)), inPiecesOf: size) == 12 + 300 + 500)
    // Duration, size, flags and offset of each sample.
    let all = fields(300, 1, 400, 0x200_0000, 0, 1, 20, 0x101_0000, 0)
    #expect(try keyFrameEnd(fragment(runFlags: 0xf01, run: all), inPiecesOf: size) == 12 + 300 + 400)
    // The same size for all.
    let same = fragment(headerFlags: 0x20030, header: fields(77, 0x200_0000), runFlags: 0x1, run: fields(300))
    #expect(try keyFrameEnd(same, inPiecesOf: size) == 12 + 300 + 77)
  }

  @Test("Where it does not, or begins with another frame, there is none")
  func noEnd() throws {
    #expect(try keyFrameEnd(fragment(run: fields(300, 0x101_0000, 500, 20))) == nil)
    #expect(try keyFrameEnd(fragment(run: fields(300, 0x200_0000, 500, 20), copies: 2)) == nil)
    // No size, no place, a place in the file, a place in the box, and a box that ends too early.
    #expect(try keyFrameEnd(fragment(runFlags: 0x5, run: fields(300, 0x200_0000))) == nil)
    #expect(try keyFrameEnd(fragment(runFlags: 0x204, run: fields(0x200_0000, 500, 20))) == nil)
    #expect(
      try keyFrameEnd(fragment(headerFlags: 0x1, header: fields(0, 0), run: fields(300, 0, 500, 20))) == nil)
    #expect(try keyFrameEnd(fragment(run: fields(0, 0x200_0000, 5, 20))) == nil)
    #expect(try keyFrameEnd(fragment(run: fields(300, 0x200_0000))) == nil)
  }

  @Test("The first frame ends with the first sample of any kind, or else the media begins with it")
  func firstFrame() throws {
    func end(_ fragment: [UInt8]) throws -> Int64? { try sanitizer(after: fragment).firstFrameEnd }
    #expect(try end(fragment(run: fields(300, 0x101_0000, 500, 20))) == 12 + 300 + 500)
    #expect(try end(fragment(run: fields(300, 0x200_0000, 500, 20), copies: 2)) == 12 + 300 + 500)
    let unstated = fragment(runFlags: 0x5, run: fields(300, 0x200_0000))
    #expect(try end(unstated) == Int64(12 + unstated.count))
  }

  // MARK: Segments

  @Test(
    "If the reader wants more than the key frame, the rest of the segment is requested",
    arguments: [true, false])
  func rest(hasRange: Bool) async throws {
    let fetcher = FixtureFetcher(chunkByteCount: 512)
    let path = "stills/high/segment-2.m4s"
    let whole = try Fixtures.bytes(path)
    let segment = SegmentReference(
      number: 0, url: try url(path),
      byteRange: hasRange ? ByteRange(offset: 0, length: Int64(whole.count)) : nil,
      start: .zero, duration: MediaTime(value: 1, timescale: 1),
      initialization: InitializationReference(url: try url("stills/high/init.mp4")))
    let loader = SegmentLoader(
      fetcher: fetcher,
      keys: KeyStore(fetcher: fetcher), location: ServiceLocation(),
      recorder: StartupRecorder(),
      recordDamage: { error, _ in Issue.record(error) })
    let track = RungTrack(
      rung: Rung(id: "0", bitsPerSecond: nil, media: .segments(SegmentList([segment]))),
      supply: .list(SegmentList([segment])),
      loader: loader)
    let read = try await BlockingThread.run(named: "test") {
      let stream = SegmentStream(
        track, from: 0, segment, readsAhead: false, scope: LoadScope(),
        options: SegmentDownload.Options(capacity: 1024, keyFrameAction: .end), goesOn: { _ in false })
      var bytes: [UInt8] = []
      while true {
        let count = try withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
          let count = try stream.read(into: buffer)
          bytes.append(contentsOf: buffer.prefix(count))
          return count
        }
        guard count > 0 else { break }
      }
      return bytes
    }
    #expect(try read == Fixtures.bytes("stills/high/init.mp4") + whole)
    let ranges = fetcher.requests.filter { $0.url == segment.url }.map(\.range)
    #expect(ranges.count == 2)
    #expect(ranges.last??.offset ?? 0 > 0)
    #expect(fetcher.underWayCount == 0)
  }

  @Test("Of a segment, only the bytes up to the end of its key frame are read")
  func segmentBytes() async throws {
    let fetcher = FixtureFetcher(chunkByteCount: 1024)
    let poster = try await poster(of: "stills/master.m3u8", fetcher)
    #expect(poster.candidates.count == 6)
    let traffic = poster.traffic
    let floor =
      (traffic.manifestByteCount ?? 0) + (traffic.initializationByteCount ?? 0) + traffic.keyFrameByteCount
    // The boxes before the key frame, and the rest of a chunk.
    #expect(traffic.readByteCount <= floor + 6 * (600 + 1024), "\(traffic)")
    #expect(Set(fetcher.keys).count == fetcher.keys.count)
    try await until { fetcher.heldCount == 0 }
  }

  @Test("Planned segments are requested side by side")
  func sideBySide() async throws {
    let first = try url("stills/high/segment-0.m4s")
    let fetcher = FixtureFetcher { request, _ in
      request.url.pathExtension == "m4s" && request.url != first ? .hold : .none
    }
    async let poster = poster(of: "stills/master.m3u8", fetcher)
    try await until { fetcher.requests.count { $0.url.pathExtension == "m4s" } == 6 }
    fetcher.release()
    #expect(try await poster.candidates.map(\.time.seconds) == [0, 1, 2, 3, 4, 5])
  }

  // MARK: Decoding

  @Test(
    "One decoder decodes all key frames",
    arguments: ["stills/master.m3u8", "stills/poor-start.mp4", "hls-ts/master.m3u8"])
  func decoder(path: String) async throws {
    var configuration = LoadingConfiguration()
    configuration.reading = .keyFrames(endsTransfers: false, skipsRefused: false)
    let opener = TrackOpener(
      fetcher: makeFetcher(), configuration: configuration, gate: nil, logger: silentLogger)
    let counts = try await opener.use(MediaSource(argument: Fixtures.path(path)), readsAhead: false) {
      opening in
      try await BlockingThread.run(named: "test") {
        let reader = FrameReader(opening)
        guard try reader.firstFrame() != nil else { return (0, 0) }
        let (decoder, places) = (reader.decoder.decoder, reader.source.keyFramePlaces { _ in false } ?? [])
        var sameCount = 0
        for place in places {
          try reader.seek(to: place)
          if try reader.keyFrame() != nil, reader.decoder.decoder === decoder { sameCount += 1 }
        }
        return (places.count, sameCount)
      }
    }
    #expect(counts.0 > 1)
    #expect(counts.1 == counts.0)
  }

  @Test("Frames that are shown at half their size are decoded without deblocking")
  func deblocking() async throws {
    func frame(_ size: SizeLimit?) async throws -> String {
      let poster = try await poster(of: "stills/poor-start.mp4", FixtureFetcher(), size: size)
      return try poster.frame.md5()
    }
    let width = try await poster(of: "stills/poor-start.mp4", FixtureFetcher(), size: nil).frame.size.width
    let whole = try await frame(nil)
    #expect(try await frame(.square(width / 2 + 2)) == whole)
    #expect(try await frame(.square(width / 2)) != whole)
  }
}
