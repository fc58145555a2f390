import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

/// Compares the samples of segments that were decrypted in place with those of the clear original.
@Suite("Segments decrypted in place")
struct ProtectedSegmentTests {
  private typealias Kind = EncryptedContainerTests.Kind

  private static let keys: [KeyID: ContentKey] = {
    var keys: [KeyID: ContentKey] = [:]
    for (id, key) in [
      ("31323334353637383930313233343536", "32333435363738393031323334353637"),
      ("32333435363738393031323334353631", "33343536373839303132333435363732"),
      ("33343536373839303132333435363132", "34353637383930313233343536373233"),
    ] {
      if let id = KeyID(id), let key = ContentKey(key) { keys[id] = key }
    }
    return keys
  }()

  /// The types of boxes that only encrypted media has.
  private static let types = ["encv", "enca", "sinf", "pssh", "senc", "saiz", "saio"]

  private static func clear(
    _ bytes: [UInt8], at position: Int64 = 0, after initialization: [UInt8]? = nil,
    keys: [KeyID: ContentKey] = keys
  ) throws -> [UInt8] {
    try ProtectedSegment(bytes, at: position, initialization: initialization).decrypted(with: keys)
  }

  /// The initialization of a file with an index, its segments, and their positions.
  private static func parts(
    of bytes: [UInt8]
  ) throws -> (initialization: [UInt8], segments: [(position: Int, bytes: [UInt8])]) {
    let boxes = MP4Box.all(in: bytes[...])
    let movie = try #require(boxes.first { $0.type == "moov" })
    let fragments = boxes.filter { $0.type == "moof" }.map(\.start)
    try #require(fragments.count > 1)
    let ends = fragments.dropFirst() + [bytes.count]
    return (
      Array(bytes[..<movie.end]), zip(fragments, ends).map { ($0, Array(bytes[$0..<$1])) }
    )
  }

  private static func samples(_ bytes: [UInt8], _ kind: Kind) throws -> [[UInt8]] {
    // Without boxes that describe encryption, no key is requested.
    for type in types { #expect(bytes.places(of: type).isEmpty, "\(type)") }
    return try EncryptedContainerTests.samples(bytes, kind, keys: nil)
  }

  private static func original(_ kind: Kind) throws -> [[UInt8]] {
    try EncryptedContainerTests.samples(
      Fixtures.bytes("encrypted/clear.mp4"), kind, keys: nil, isSeekable: true)
  }

  @Test(
    arguments: ["cenc", "cens", "cbc1", "cbcs", "clear-lead"], EncryptedContainerTests.Kind.allCases)
  func `Every scheme gives the samples of the original`(
    folder: String, kind: EncryptedContainerTests.Kind
  ) throws {
    let bytes = try Fixtures.bytes("encrypted/\(folder)/\(kind == .video ? "video" : "audio").mp4")
    // A file with all segments.
    let whole = try Self.clear(bytes)
    #expect(whole.count == bytes.count)
    #expect(try Self.samples(whole, kind) == Self.original(kind))
    // One segment after the other, at its position in the file or as a file of its own.
    let (initialization, segments) = try Self.parts(of: bytes)
    for isFile in [false, true] {
      var joined = try ProtectedSegment.clearInitialization(initialization)
      #expect(joined.count == initialization.count)
      for segment in segments {
        let clear = try Self.clear(
          segment.bytes, at: isFile ? 0 : Int64(segment.position), after: initialization)
        #expect(clear.count == segment.bytes.count)
        joined += clear
      }
      #expect(try Self.samples(joined, kind) == Self.original(kind))
    }
  }

  /// Vectors and subsample maps are found through `saiz` and `saio`, too.
  @Test(arguments: ["cenc", "cens", "cbc1", "cbcs"])
  func `Auxiliary information in place of senc`(folder: String) throws {
    var bytes = try Fixtures.bytes("encrypted/\(folder)/video.mp4")
    for place in bytes.places(of: "senc") { bytes.rename(place, "skip") }
    #expect(try Self.samples(Self.clear(bytes), .video) == Self.original(.video))
  }

  @Test func `Keys of sample groups, and boxes that stay`() throws {
    let initialization = try Fixtures.bytes("encrypted/rotation/v-init.mp4")
    var joined = try ProtectedSegment.clearInitialization(initialization)
    let event = mp4Box("emsg", [UInt8](repeating: 7, count: 20))
    let time = longMP4Header("prft", byteCount: 40) + [UInt8](repeating: 8, count: 24)
    for number in 1...3 {
      let bytes = event + time + (try Fixtures.bytes("encrypted/rotation/v-\(number).m4s"))
      let request = try ProtectedSegment(bytes, at: 0, initialization: initialization).requests
      #expect(request.count == (number == 1 ? 0 : 1))
      let clear = try Self.clear(bytes, after: initialization)
      #expect(clear.starts(with: event + time))
      #expect(clear.places(of: "sbgp").isEmpty && clear.places(of: "sgpd").isEmpty)
      joined += clear
    }
    #expect(try Self.samples(joined, .video) == Self.original(.video))
  }

  @Test func `Sizes of 64 bits`() throws {
    let (initialization, segments) = try Self.parts(of: Fixtures.bytes("encrypted/cbcs/video.mp4"))
    var joined = try ProtectedSegment.clearInitialization(initialization)
    for segment in segments {
      var bytes = segment.bytes
      let media = try #require(MP4Box.all(in: bytes[...]).first { $0.type == "mdat" })
      let run = try #require(TrackFragment.all(in: bytes[..<media.start]).first?.runs.first)
      let offset = try #require(run.dataOffset)
      bytes.replaceSubrange(
        offset.index..<offset.index + 4, with: bigEndian(UInt64(offset.value + 8), bytes: 4))
      let header = longMP4Header("mdat", byteCount: UInt64(media.body.count + 16))
      bytes.replaceSubrange(media.start..<media.body.lowerBound, with: header)
      joined += try Self.clear(bytes, after: initialization)
    }
    #expect(try Self.samples(joined, .video) == Self.original(.video))
  }

  @Test(arguments: ["cenc", "cens", "cbc1", "cbcs"])
  func `Two tracks in a segment`(folder: String) throws {
    let video = try Self.parts(of: Fixtures.bytes("encrypted/\(folder)/video.mp4"))
    let audio = try Self.parts(of: Fixtures.bytes("encrypted/\(folder)/audio.mp4"))
    func box(_ path: [FourCC], of bytes: [UInt8]) throws -> [UInt8] {
      let box = try #require(MP4Box.all(path, in: bytes[...]).first)
      return Array(bytes[box.start..<box.end])
    }
    /// Writes a number of four bytes, so many bytes after the type of a box.
    func set(_ value: Int, _ offset: Int, after type: String, in bytes: inout [UInt8]) throws {
      let place = try #require(bytes.places(of: type).first) + 4 + offset
      bytes.replaceSubrange(place..<place + 4, with: bigEndian(UInt64(value), bytes: 4))
    }
    var track = try box(["moov", "trak"], of: audio.initialization)
    try set(2, 16, after: "tkhd", in: &track)
    var defaults = try box(["moov", "mvex", "trex"], of: audio.initialization)
    try set(2, 8, after: "trex", in: &defaults)
    let movie = try mp4Box(
      "moov",
      box(["moov", "mvhd"], of: video.initialization) + box(["moov", "trak"], of: video.initialization)
        + track
        + mp4Box("mvex", box(["moov", "mvex", "trex"], of: video.initialization) + defaults))
    let initialization = try box(["ftyp"], of: video.initialization) + movie
    var joined = try ProtectedSegment.clearInitialization(initialization)
    for (index, pair) in zip(video.segments, audio.segments).enumerated() {
      let header = mp4Box("mfhd", [0, 0, 0, 0] + bigEndian(UInt64(index + 1), bytes: 4))
      let media = try [pair.0.bytes, pair.1.bytes].map { Array(try box(["mdat"], of: $0).dropFirst(8)) }
      var fragments = try [pair.0.bytes, pair.1.bytes].map { try box(["moof", "traf"], of: $0) }
      try set(2, 8, after: "tfhd", in: &fragments[1])
      let size = 8 + header.count + fragments[0].count + fragments[1].count
      for (number, start) in [8 + header.count, 8 + header.count + fragments[0].count].enumerated() {
        let offset = size + 8 + (number == 0 ? 0 : media[0].count)
        try set(offset, 12, after: "trun", in: &fragments[number])
        // The auxiliary information is in `senc`. The audio of `cbcs` has none.
        guard !fragments[number].places(of: "saio").isEmpty,
          let place = fragments[number].places(of: "senc").first
        else { continue }
        try set(start + place + 16, 12, after: "saio", in: &fragments[number])
      }
      let fragment = mp4Box("moof", header + fragments[0] + fragments[1])
      joined += try Self.clear(fragment + mp4Box("mdat", media[0] + media[1]), after: initialization)
    }
    for kind in Kind.allCases { #expect(try Self.samples(joined, kind) == Self.original(kind)) }
  }

  @Test func `Media in the clear stays as it is`() throws {
    let bytes = try Fixtures.bytes("dash-ondemand/low.mp4")
    #expect(try Self.clear(bytes, keys: [:]) == bytes)
    let (initialization, segments) = try Self.parts(of: bytes)
    #expect(try ProtectedSegment.clearInitialization(initialization) == initialization)
    for segment in segments {
      #expect(try Self.clear(segment.bytes, after: initialization, keys: [:]) == segment.bytes)
    }
  }

  // MARK: Errors

  private static func reason(
    _ bytes: [UInt8], after initialization: [UInt8]?, keys: [KeyID: ContentKey] = keys
  ) -> String {
    let error = #expect(throws: ReelError.self) {
      _ = try Self.clear(bytes, after: initialization, keys: keys)
    }
    return error?.reason ?? ""
  }

  @Test func `A missing key is named by its id`() throws {
    let (initialization, segments) = try Self.parts(of: Fixtures.bytes("encrypted/cenc/video.mp4"))
    let reason = Self.reason(segments[0].bytes, after: initialization, keys: [:])
    #expect(reason.contains("avc1 samples are encrypted"))
    #expect(reason.contains("cenc"))
    #expect(reason.contains("key id 31323334353637383930313233343536"))
    #expect(!reason.contains("32333435363738393031323334353637"))
  }

  @Test func `What can't be decrypted is refused`() throws {
    let (initialization, segments) = try Self.parts(of: Fixtures.bytes("encrypted/cbcs/video.mp4"))
    let segment = segments[0].bytes
    func renamed(_ bytes: [UInt8], _ type: String, _ other: String) throws -> [UInt8] {
      var bytes = bytes
      bytes.rename(try #require(bytes.places(of: type).first), other)
      return bytes
    }
    for (type, other, words) in [
      ("cbcs", "abcd", "'abcd' can't be decrypted"), ("tenc", "skip", "can't be decrypted"),
      ("sinf", "skip", "'encv' track can't be read"), ("schm", "skip", "no original format (frma) or scheme"),
      ("encv", "enct", "'enct' track can't be read"), ("moov", "skip", "0 movie boxes (moov)"),
    ] {
      let damaged = try renamed(initialization, type, other)
      #expect(Self.reason(segment, after: damaged).contains(words), "\(type)")
      #expect(throws: ReelError.self) { try ProtectedSegment.clearInitialization(damaged) }
    }
    for (type, other, words) in [
      ("moof", "skip", "no movie fragment (moof)"), ("tfhd", "skip", "no header (tfhd)"),
    ] {
      #expect(
        Self.reason(try renamed(segment, type, other), after: initialization).contains(words), "\(type)")
    }
    // Samples with vectors of their own.
    let counted = try Self.parts(of: Fixtures.bytes("encrypted/cenc/video.mp4"))
    var bytes = try renamed(counted.segments[0].bytes, "senc", "skip")
    bytes = try renamed(bytes, "saio", "skip")
    #expect(Self.reason(bytes, after: counted.initialization).contains("no initialization vector"))
    #expect(Self.reason(Array("<!DOCTYPE html>".utf8), after: initialization).contains("ends within a box"))
    #expect(Self.reason([], after: initialization).contains("no movie fragment"))
    #expect(Self.reason(segment, after: Array("not found".utf8)).contains("initialization"))
    // The initialization of a track in the clear.
    let other = try Self.parts(of: Fixtures.bytes("dash-ondemand/low.mp4")).initialization
    #expect(
      Self.reason(segment, after: other).contains("are encrypted, which the initialization does not state"))
    // A file without fragments.
    let file = try Fixtures.bytes("bad/encrypted-cenc.mp4")
    #expect(Self.reason(file, after: nil).contains("no movie fragment (moof)"))
  }

  @Test(arguments: ["cenc", "cbcs"])
  func `Truncated segments are refused`(folder: String) throws {
    let (initialization, segments) = try Self.parts(of: Fixtures.bytes("encrypted/\(folder)/video.mp4"))
    for count in stride(from: 1, to: segments[0].bytes.count - 1, by: 131) {
      #expect(throws: ReelError.self) {
        try Self.clear(Array(segments[0].bytes.prefix(count)), after: initialization)
      }
    }
    for count in 0..<initialization.count - 1 {
      #expect(throws: ReelError.self) {
        try Self.clear(segments[0].bytes, after: Array(initialization.prefix(count)))
      }
    }
  }

  /// Changes bytes of boxes at random. Each change gives an error, or a segment of the same size.
  @Test(arguments: ["cenc/video.mp4", "cbcs/video.mp4", "rotation"])
  func `Damaged descriptions`(path: String) throws {
    let paths = path == "rotation" ? ["init.mp4", "1.m4s", "2.m4s"].map { "rotation/v-\($0)" } : [path]
    let bytes = try paths.flatMap { try Fixtures.bytes("encrypted/\($0)") }
    var random = SplitMix(seed: 5)
    for type in Self.types + [
      "tenc", "moov", "moof", "traf", "tfhd", "trun", "trex", "stsd", "sgpd", "sbgp", "mdat",
    ] {
      for place in bytes.places(of: type).prefix(2) {
        for offset in stride(from: 0, to: 36, by: 2) where place + offset < bytes.count {
          var damaged = bytes
          damaged[place + offset] = offset.isMultiple(of: 3) ? 0xff : UInt8(truncatingIfNeeded: random.next())
          guard let clear = try? Self.clear(damaged) else { continue }
          #expect(clear.count == damaged.count)
        }
      }
    }
  }

  /// A few bytes can state millions of samples. Reading ends before it takes long.
  @Test func `Samples without bytes`() throws {
    let initialization = try Self.parts(of: Fixtures.bytes("encrypted/cbcs/audio.mp4")).initialization
    let header = mp4Box("tfhd", [0, 2, 0, 0x10, 0, 0, 0, 1] + bigEndian(0, bytes: 4))
    let run = mp4Box("trun", [0, 0, 0, 0] + bigEndian(1 << 20, bytes: 4))
    let fragment = mp4Box("moof", mp4Box("mfhd", [0, 0, 0, 0, 0, 0, 0, 1]) + mp4Box("traf", header + run))
    let bytes = [[UInt8]](repeating: fragment, count: 1000).flatMap { $0 } + mp4Box("mdat")
    #expect(throws: ReelError.self) { try Self.clear(bytes, after: initialization) }
  }
}
