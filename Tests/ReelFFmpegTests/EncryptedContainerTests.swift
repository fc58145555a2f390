import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

/// Supplies a container with keys by id.
final class TestKeys: SampleKeys {
  /// The keys of the fixtures. Key rotation rotates the id and the key by one byte.
  static let fixtures = TestKeys([
    "31323334353637383930313233343536": "32333435363738393031323334353637",
    "32333435363738393031323334353631": "33343536373839303132333435363732",
    "33343536373839303132333435363132": "34353637383930313233343536373233",
    "101112131415161718191a1b1c1d1e1f": "000102030405060708090a0b0c0d0e0f",
  ])

  private let keys: [KeyID: ContentKey]
  private let transport: (key: ContentKey, vector: [UInt8])?

  init(_ keys: [String: String], transport: (key: String, vector: String)? = nil) {
    var found: [KeyID: ContentKey] = [:]
    for (id, key) in keys {
      if let id = KeyID(id), let key = ContentKey(key) { found[id] = key }
    }
    self.keys = found
    if let transport, let key = ContentKey(transport.key), let vector = KeyID(transport.vector)?.bytes {
      self.transport = (key, vector)
    } else {
      self.transport = nil
    }
  }

  func key(for request: SampleKeyRequest) throws -> SampleKey {
    if let id = request.keyID {
      guard let key = keys[id] else { throw request.refusal() }
      return .key(key, vector: nil)
    }
    guard let transport else { throw request.refusal() }
    return .key(transport.key, vector: transport.vector)
  }
}

/// Compares the samples of encrypted containers with those of the clear original.
@Suite("Encrypted containers")
struct EncryptedContainerTests {
  enum Kind: CaseIterable { case video, audio }

  static func samples(
    _ bytes: [UInt8], _ kind: Kind, format: ContainerFormat = .mp4, keys: TestKeys? = .fixtures,
    isSeekable: Bool = false, chunkByteCount: Int = .max
  ) throws -> [[UInt8]] {
    var options = ContainerReader.Options()
    options.isSeekable = isSeekable
    options.wantsVideo = kind == .video
    options.wantsAudio = kind == .audio
    options.keys = keys
    let reader = try ContainerReader(
      source: MemorySource(bytes, chunkByteCount: chunkByteCount, isSeekable: isSeekable), format: format,
      options: options, name: "test", logger: silentLogger)
    var samples: [[UInt8]] = []
    while true {
      switch try reader.next() {
      case .video(let packet), .audio(let packet): samples.append(packet.bytes)
      case .programChanged: Issue.record("an odd unit")
      case .end: return samples
      }
    }
  }

  private static func bytes(_ paths: [String]) throws -> [UInt8] {
    try paths.flatMap { try Fixtures.bytes("encrypted/\($0)") }
  }

  private static func clear(_ kind: Kind) throws -> [[UInt8]] {
    try samples(Fixtures.bytes("encrypted/clear.mp4"), kind, keys: nil, isSeekable: true)
  }

  private static func name(_ kind: Kind) -> String { kind == .video ? "video" : "audio" }

  @Test(arguments: ["cenc", "cens", "cbc1", "cbcs", "clear-lead"], Kind.allCases)
  func `Every scheme gives the samples of the original`(folder: String, kind: Kind) throws {
    let bytes = try Self.bytes(["\(folder)/\(Self.name(kind)).mp4"])
    let clear = try Self.clear(kind)
    #expect(clear.count > 70)
    #expect(try Self.samples(bytes, kind) == clear)
    #expect(try Self.samples(bytes, kind, isSeekable: true) == clear)
    #expect(try Self.samples(bytes, kind, chunkByteCount: 7) == clear)
  }

  @Test(arguments: Kind.allCases)
  func `Keys of sample groups`(kind: Kind) throws {
    let letter = kind == .video ? "v" : "a"
    let bytes = try Self.bytes(["init.mp4", "1.m4s", "2.m4s", "3.m4s"].map { "rotation/\(letter)-\($0)" })
    #expect(try Self.samples(bytes, kind) == (try Self.clear(kind)))
    // Reading stops where a missing key is needed.
    let one = TestKeys(["31323334353637383930313233343536": "32333435363738393031323334353637"])
    let error = #expect(throws: ReelError.self) { _ = try Self.samples(bytes, kind, keys: one) }
    #expect(error?.reason.contains("key id 32333435363738393031323334353631") == true)
  }

  /// Without `senc`, vectors and maps are found through `saiz` and `saio`.
  @Test(arguments: ["cenc", "cens", "cbc1", "cbcs"], Kind.allCases)
  func `Auxiliary information in place of senc`(folder: String, kind: Kind) throws {
    var bytes = try Self.bytes(["\(folder)/\(Self.name(kind)).mp4"])
    #expect(replace("senc", by: "skip", in: &bytes) > 0)
    #expect(try Self.samples(bytes, kind) == (try Self.clear(kind)))
  }

  @Test func `A file without fragments`() throws {
    let bytes = try Fixtures.bytes("bad/encrypted-cenc.mp4")
    let samples = try Self.samples(bytes, .video, isSeekable: true)
    #expect(samples.count == 15)
    var other = bytes
    #expect(replace("senc", by: "skip", in: &other) > 0)
    #expect(try Self.samples(other, .video, isSeekable: true) == samples)
    // The NAL unit lengths fill each sample exactly.
    for sample in samples {
      var rest = sample[...]
      while rest.count >= 4 {
        let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(4 + length)
      }
      #expect(rest.isEmpty)
    }
  }

  @Test func `Blocks of WebM`() throws {
    let clear = try Self.samples(
      Fixtures.bytes("encrypted/clear.webm"), .video, format: .matroska, keys: nil)
    let bytes = try Self.bytes(["webm/video.webm"])
    #expect(try Self.samples(bytes, .video, format: .matroska) == clear)
    let error = #expect(throws: ReelError.self) {
      _ = try Self.samples(bytes, .video, format: .matroska, keys: nil)
    }
    #expect(error?.reason.contains("WebM; key id 31323334353637383930313233343536") == true)
  }

  // MARK: MPEG-TS

  private static let transport = TestKeys(
    [:], transport: ("32333435363738393031323334353637", "01020304050607080910111213141516"))

  @Test(arguments: [("a", "clear.mp4"), ("ac3", "clear-ac3.mp4"), ("ec3", "clear-eac3.mp4")])
  func `Audio of transport streams`(letters: String, original: String) throws {
    let clear = try Self.samples(
      Fixtures.bytes("encrypted/\(original)"), .audio, keys: nil, isSeekable: true)
    let segments = letters == "a" ? 1...3 : 1...1
    let bytes = try Self.bytes(segments.map { "hls-ts/\(letters)-\($0).ts" })
    let samples = try Self.samples(bytes, .audio, format: .mpegTS, keys: Self.transport)
    // In a transport stream, each AAC frame has a header.
    #expect(samples.map { letters == "a" ? Array($0.dropFirst(7)) : $0 } == clear)
  }

  @Test func `Video of transport streams`() throws {
    let bytes = try Self.bytes((1...3).map { "hls-ts/v-\($0).ts" })
    let samples = try Self.samples(bytes, .video, format: .mpegTS, keys: Self.transport)
    let slices = samples.map { Self.slices($0, framing: .annexB) }
    #expect(slices == (try Self.clear(.video).map { Self.slices($0, framing: .lengthPrefixed(4)) }))
  }

  private static func slices(_ sample: [UInt8], framing: NALFraming) -> [[UInt8]] {
    var slices: [[UInt8]] = []
    sample.withUnsafeBytes { bytes in
      bytes.forEachNALUnit(framing: framing) { unit in
        guard [1, 5].contains((unit.first ?? 0) & 0x1f) else { return true }
        var slice = Array(unit)
        while slice.last == 0 { slice.removeLast() }
        slices.append(slice)
        return true
      }
    }
    return slices
  }

  // MARK: Without keys

  @Test func `What is in the clear before an encrypted sample is given`() throws {
    let bytes = try Self.bytes(["clear-lead/video.mp4"])
    var options = ContainerReader.Options()
    options.isSeekable = false
    let reader = try ContainerReader(
      source: MemorySource(bytes, isSeekable: false), format: .mp4, options: options, name: "test",
      logger: silentLogger)
    for sample in try Self.clear(.video).prefix(25) {
      guard case .video(let packet) = try reader.next() else {
        Issue.record("no sample")
        return
      }
      #expect(packet.bytes == sample)
      let isDecrypted = packet.isDecrypted
      #expect(!isDecrypted)
    }
    #expect(reader.refusal == nil)
    let error = #expect(throws: ReelError.self) { _ = try reader.next() }
    #expect(error?.kind == .unsupported)
    for word in ["h264", "cbcs", "PlayReady, Widevine", "key id 31323334353637383930313233343536"] {
      #expect(error?.reason.contains(word) == true, "\(error?.reason ?? "")")
    }
    #expect(reader.refusal == error)
  }

  // MARK: Damage

  /// Changes the bytes of the encryption boxes one by one. Each change gives an error or different bytes, but no
  /// crash.
  @Test(arguments: ["cenc/video.mp4", "cbcs/video.mp4", "rotation"])
  func `Damaged descriptions`(path: String) throws {
    let paths =
      path == "rotation" ? ["init.mp4", "1.m4s", "2.m4s", "3.m4s"].map { "rotation/v-\($0)" } : [path]
    let bytes = try Self.bytes(paths)
    var random = SplitMix(seed: 12)
    for type in [
      "senc", "tenc", "sgpd", "sbgp", "saiz", "saio", "sinf", "schm", "frma", "tfhd", "trun", "pssh",
    ] {
      for place in bytes.places(of: type).prefix(2) {
        for offset in stride(from: 5, to: 32, by: 2) where place + offset < bytes.count {
          var damaged = bytes
          damaged[place + offset] = UInt8(truncatingIfNeeded: random.next())
          if offset.isMultiple(of: 3) { replace("senc", by: "skip", in: &damaged) }
          _ = try? Self.samples(damaged, .video, isSeekable: offset.isMultiple(of: 5))
        }
      }
    }
  }

  @discardableResult private func replace(_ type: String, by other: String, in bytes: inout [UInt8]) -> Int {
    let found = bytes.places(of: type)
    for place in found { bytes.rename(place, other) }
    return found.count
  }
}
