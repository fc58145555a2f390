import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Reading the units of a container", .hangLimit)
struct ContainerReaderTests {
  private enum Kind: Hashable {
    case video
    case audio
  }

  private struct Unit: Hashable {
    let kind: Kind
    let pts: Int64?
    let dts: Int64?
    let byteCount: Int

    init(_ kind: Kind, _ packet: Packet) {
      self.kind = kind
      pts = packet.presentationTicks
      dts = packet.decodingTicks
      byteCount = packet.byteCount
    }
  }

  @Test(
    "A container without an index that ends inside a packet says so",
    arguments: [
      ("media/h264.ts", 30_000, ContainerFormat.mpegTS), ("media/mpeg2.mpg", 60_000, .mpegPS),
      ("media/h264.flv", 20_000, .flv),
    ])
  func cut(path: String, count: Int, format: ContainerFormat) throws {
    let bytes = try Fixtures.bytes(path)
    var streams = [(bytes, false), (Array(bytes.prefix(count)), true)]
    // Other bytes after the last packet are no part of one.
    if format == .mpegTS { streams.append((bytes + [UInt8](repeating: 0, count: 100), false)) }
    for (bytes, isCut) in streams {
      let reader = try ContainerReader(
        source: MemorySource(bytes, isSeekable: false), format: format, name: path, logger: silentLogger)
      reading: while true { if case .end = try reader.next() { break reading } }
      #expect(reader.cut?.contains("inside a packet") == (isCut ? true : nil))
      #expect(reader.takeDamage() == nil)
      #expect(!reader.isTruncated)
    }
  }

  private func makeReader(
    _ clip: Clip, isSeekable: Bool? = nil, chunkByteCount: Int = .max,
    change: (inout ContainerReader.Options) -> Void = { _ in }
  ) throws -> ContainerReader {
    var options = ContainerReader.Options()
    options.isSeekable = try isSeekable ?? !clip.canBeReadForward()
    options.wantsAudio = true
    change(&options)
    return try ContainerReader(
      source: MemorySource(clip.bytes(), chunkByteCount: chunkByteCount, isSeekable: options.isSeekable),
      format: clip.format, options: options, name: clip.path, logger: silentLogger)
  }

  private func units(_ reader: ContainerReader, limit: Int = .max) throws -> [Unit] {
    var units: [Unit] = []
    while units.count < limit {
      switch try reader.next() {
      case .video(let packet): units.append(Unit(.video, packet))
      case .audio(let packet): units.append(Unit(.audio, packet))
      case .programChanged: Issue.record("a change of a program that does not change")
      case .end: return units
      }
    }
    return units
  }

  /// Clips whose timestamps the container states, and from which no edit list or decoder drops a frame.
  private static let plain = Clip.sound.filter { clip in
    clip.hasTimestamps && !clip.path.contains("editlist") && !clip.path.contains("interlaced-bff")
      && !["-mid.ts", "joined-late.ts"].contains { clip.path.hasSuffix($0) }
  }

  @Test("Each frame of a clip is one unit with its timestamp", arguments: plain)
  func video(clip: Clip) throws {
    let units = try units(makeReader(clip)).filter { $0.kind == .video }
    let golden = try clip.golden()
    #expect(units.compactMap(\.pts).sorted() == golden.frames.map(\.ticks))
    #expect(units.count == golden.frames.count)
  }

  @Test("Each frame of the sound is one unit", arguments: SoundClip.split)
  func audio(sound: SoundClip) throws {
    let reader = try makeReader(sound.clip)
    let units = try units(reader).filter { $0.kind == .audio }
    let golden = try sound.golden()
    let stream = try #require(reader.audio)
    #expect(stream.audioCodec == sound.codec)
    #expect(units.allSatisfy { $0.pts != nil })
    // Golden files of sound count in samples, and a decoder may hold back or add a frame at either end.
    #expect(abs(units.count - golden.frames.count) <= 1)
    let first = stream.time(ticks: try #require(units.first?.pts ?? nil))
    let expected = MediaTime(
      value: golden.frames[0].ticks * Int64(golden.timeBase.numerator),
      timescale: golden.timeBase.denominator)
    #expect(abs((first - expected).seconds) < 0.03)
  }

  @Test("Bytes that trickle in make the same units", arguments: plain, [37, 1000])
  func chunks(clip: Clip, chunkByteCount: Int) throws {
    let whole = try units(makeReader(clip))
    #expect(try units(makeReader(clip, chunkByteCount: chunkByteCount)) == whole)
  }

  @Test(
    "A unit is returned as soon as the PES packet after it has begun",
    arguments: ["h264.ts", "hevc.ts", "h264-bframes.ts", "../transport/h264-cavlc-lengths.ts"],
    [37, 188, .max])
  func early(name: String, chunkByteCount: Int) throws {
    let bytes = try Fixtures.bytes("media/\(name)")
    let source = MemorySource(bytes, chunkByteCount: chunkByteCount, isSeekable: false)
    var options = ContainerReader.Options()
    options.isSeekable = false
    let reader = try ContainerReader(
      source: source, format: .mpegTS, options: options, name: name, logger: silentLogger)
    let video = try #require(reader.video)
    let first = try #require(try units(reader, limit: 1).first)
    #expect(first.kind == .video)
    // The transport packets that begin a PES packet of the stream.
    let begins = stride(from: 0, to: bytes.count, by: 188).filter { start in
      Int(bytes[start + 1] & 0x1f) << 8 | Int(bytes[start + 2]) == video.number
        && bytes[start + 1] & 0x40 != 0
    }
    try #require(begins.count > 2)
    // Reads no further ahead than the buffers in between.
    #expect(source.reach <= begins[1] + 188 + (chunkByteCount == .max ? 16 << 10 : 2 * chunkByteCount))
  }

  @Test(
    "The sound is dropped from one unit to the next, and taken up again",
    arguments: ["h264.ts", "h264-faststart.mp4"])
  func droppedAudio(name: String) throws {
    let clip = Clip("media/\(name)")
    let whole = try units(makeReader(clip))
    let reader = try makeReader(clip)
    reader.setDropsAudio(true)
    let silent = try units(reader, limit: 10)
    #expect(silent.allSatisfy { $0.kind == .video })
    reader.setDropsAudio(false)
    let rest = try units(reader)
    #expect(rest.contains { $0.kind == .audio })
    let video = (silent + rest).filter { $0.kind == .video }
    #expect(video == whole.filter { $0.kind == .video })
    let audio = rest.filter { $0.kind == .audio }
    #expect(Set(audio.map(\.pts)).isSubset(of: Set(whole.map(\.pts))))
  }

  @Test("Only what is wanted is read")
  func wanted() throws {
    let clip = Clip("media/h264-faststart.mp4")
    let silent = try makeReader(clip) { $0.wantsAudio = false }
    #expect(silent.audio == nil)
    #expect(try units(silent).allSatisfy { $0.kind == .video })
    let sound = try makeReader(clip) { $0.wantsVideo = false }
    #expect(sound.video == nil)
    let heard = try units(sound)
    #expect(!heard.isEmpty)
    #expect(heard.allSatisfy { $0.kind == .audio })
    #expect(throws: ReelError.self) {
      try makeReader(Clip("media/h264-bframes.mp4")) { $0.wantsVideo = false }
    }
  }

  @Test(
    "A seek goes to the key frame at or before a timestamp, and all that follows is as it was",
    arguments: ["h264-gops.mp4", "hevc-gops.mp4", "h264-bframes.mp4", "h264-faststart.mp4"])
  func seek(name: String) throws {
    let clip = Clip("media/\(name)")
    let reader = try makeReader(clip, isSeekable: true)
    var packets: [Packet] = []
    while true {
      let unit = try reader.next()
      if case .video(let packet) = unit { packets.append(packet) }
      if case .end = unit { break }
    }
    let stream = try #require(reader.video)
    for target in packets.compactMap(\.ticks).shuffled() {
      #expect(try reader.seek(toKeyFrameAtOrBefore: target, of: stream))
      let key = try #require(packets.lastIndex { $0.isKey && $0.ticks ?? .max <= target })
      let rest = try units(reader).filter { $0.kind == .video }
      #expect(rest == packets[key...].map { Unit(.video, $0) }, "to \(target)")
    }
  }

  // MARK: ffprobe

  private static let ffprobe = ["/usr/bin/ffprobe", "/usr/local/bin/ffprobe", "/opt/homebrew/bin/ffprobe"]
    .first {
      FileManager.default.isExecutableFile(atPath: $0)
    }

  /// The presentation timestamps of a stream's packets by ffprobe, which parses transport streams into frames.
  private func probe(_ clip: Clip, stream: String) throws -> [Int64?] {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: try #require(Self.ffprobe))
    process.arguments = [
      "-v", "error", "-select_streams", stream, "-show_entries", "packet=pts", "-of", "csv=p=0",
      Fixtures.folder.appending(path: clip.path).path,
    ]
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    return text.split(whereSeparator: \.isNewline).compactMap { $0.split(separator: ",").first }.map {
      Int64($0)
    }
  }

  @Test(
    "The units are ffprobe's packets", .enabled(if: ffprobe != nil, "no ffprobe here"),
    arguments: Clip.sound.filter { clip in
      [".ts", ".mkv", ".flv", "h264-faststart.mp4", "h264-fragmented.mp4", "editlist-bframes.mp4"]
        .contains { clip.path.hasSuffix($0) }
    })
  func packets(clip: Clip) throws {
    let reader = try makeReader(clip)
    let units = try units(reader)
    let ticks = { (kind: Kind) in units.filter { $0.kind == kind }.map(\.pts) }
    // ffprobe returns fields. Reel's units are frames, so that each has one time and one duration.
    let step = clip.path.contains("h264-fields") ? 2 : 1
    let video = try probe(clip, stream: "v:0")
    #expect(stride(from: 0, to: video.count, by: step).map { video[$0] } == ticks(.video))
    guard reader.audio != nil else { return }
    let (own, probed) = (ticks(.audio), try probe(clip, stream: "a:0"))
    #expect(own.count == probed.count)
    // Within a PES packet ffprobe rounds the length of each frame down.
    #expect(zip(own, probed).allSatisfy { abs(($0 ?? 0) - ($1 ?? 0)) <= 8 })
  }
}
