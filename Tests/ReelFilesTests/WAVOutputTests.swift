import Foundation
import Logging
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg
@testable import ReelFiles
@testable import ReelPlayback
@testable import ReelReading

@Suite("Sound as a WAVE file")
struct WAVOutputTests {
  private let stereo = PCMFormat(sampleRate: 48000, channelCount: 2)
  private let mono = PCMFormat(sampleRate: 1000, channelCount: 1)

  /// A folder that is there while `body` runs.
  private func withFolder<Result>(_ body: (URL) throws -> Result) throws -> Result {
    let folder = FileManager.default.temporaryDirectory.appending(path: "wav-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try body(folder)
  }

  /// What an output makes of `body`'s calls.
  private func write(
    _ sampleFormat: WAVOutput.SampleFormat = .int16, _ body: (WAVOutput) throws -> Void
  ) throws -> WAVContent {
    try withFolder { folder in
      let url = folder.appending(path: "out.wav")
      let output = try WAVOutput(path: url.path, sampleFormat: sampleFormat)
      try body(output)
      #expect(!FileManager.default.fileExists(atPath: url.path))
      try output.finish()
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["out.wav"])
      return try WAVContent(Array(Data(contentsOf: url)))
    }
  }

  private func buffer(_ format: PCMFormat, _ value: Float, frameCount: Int) -> PCMBuffer {
    PCMBuffer(format: format, samples: [Float](repeating: value, count: frameCount * format.channelCount))
  }

  private func milliseconds(_ value: Int64) -> MediaTime { MediaTime(value: value, timescale: 1000) }

  /// Values and how often they follow each other.
  private func spans(_ samples: [Int16]) -> [[Int]] {
    var spans: [[Int]] = []
    for sample in samples {
      if spans.last?[0] == Int(sample) {
        spans[spans.count - 1][1] += 1
      } else {
        spans.append([Int(sample), 1])
      }
    }
    return spans
  }

  @Test("16-bit samples under a plain header")
  func int16() throws {
    let content = try write {
      try $0.write(PCMBuffer(format: stereo, samples: [0.5, -0.5, 2, -2]), at: .zero)
      try $0.write(PCMBuffer(format: stereo, samples: [0, 1 / 32768]), at: .zero)
    }
    #expect(content.magic == "RIFF")
    #expect(content.chunkNames == ["JUNK", "fmt ", "data"])
    #expect(
      content.format == [1, 0, 2, 0, 0x80, 0xbb, 0, 0, 0, 0xee, 2, 0, 4, 0, 16, 0])
    #expect(content.int16Samples == [16384, -16384, 32767, -32768, 0, 1])
  }

  @Test("Floating-point samples are written as they are")
  func float32() throws {
    let samples: [Float] = [0.1, -3, .leastNonzeroMagnitude, 1]
    let content = try write(.float32) {
      try $0.write(PCMBuffer(format: stereo, samples: samples), at: .zero)
    }
    #expect(content.chunkNames == ["JUNK", "fmt ", "fact", "data"])
    #expect(Array(content.format.prefix(4)) == [3, 0, 2, 0])
    #expect(content.fact == [2, 0, 0, 0])
    #expect(content.floatSamples == samples)
  }

  @Test("More than two channels are named")
  func channels() throws {
    let format = PCMFormat(sampleRate: 48000, channelCount: 6)
    let content = try write { try $0.write(buffer(format, 0.5, frameCount: 3), at: .zero) }
    #expect(content.format.count == 40)
    #expect(Array(content.format.prefix(4)) == [0xfe, 0xff, 6, 0])
    #expect(Array(content.format[20..<26]) == [0x3f, 0, 0, 0, 1, 0])
    #expect(content.int16Samples == [Int16](repeating: 16384, count: 18))
  }

  @Test("A forward step of more than 10 ms is silence; what goes back by more is left out")
  func gaps() throws {
    func gap(_ length: Int64) throws -> [[Int]] {
      let content = try write {
        try $0.write(buffer(mono, 0.5, frameCount: 100), at: .zero)
        try $0.write(buffer(mono, 0.25, frameCount: 50), at: milliseconds(100 + length))
      }
      return spans(content.int16Samples)
    }
    #expect(try gap(0) == [[16384, 100], [8192, 50]])
    #expect(try gap(10) == [[16384, 100], [8192, 50]])
    #expect(try gap(11) == [[16384, 100], [0, 11], [8192, 50]])
    #expect(try gap(59_000) == [[16384, 100], [0, 59_000], [8192, 50]])
    #expect(try gap(-10) == [[16384, 100], [8192, 50]])
    #expect(try gap(-11) == [[16384, 100], [8192, 39]])
    #expect(try gap(-100) == [[16384, 100]])
  }

  @Test("Small gaps add up until they are heard")
  func smallGaps() throws {
    let content = try write {
      for index in 0..<10 {
        try $0.write(buffer(mono, 0.5, frameCount: 100), at: milliseconds(Int64(index) * 105))
      }
    }
    // 5 ms each: the third makes it 15 ms.
    #expect(
      spans(content.int16Samples)
        == [[16384, 300], [0, 15], [16384, 300], [0, 15], [16384, 300], [0, 15], [16384, 100]])
  }

  @Test("A small gap that stays is silence after some buffers")
  func lastingGap() throws {
    let content = try write {
      try $0.write(buffer(mono, 0.5, frameCount: 100), at: .zero)
      for index in 1..<20 {
        try $0.write(buffer(mono, 0.5, frameCount: 100), at: milliseconds(Int64(index) * 100 + 9))
      }
    }
    #expect(spans(content.int16Samples) == [[16384, 700], [0, 9], [16384, 1300]])
  }

  @Test("The file begins at 0 and ends when it is told to, with silence or cut")
  func bounds() throws {
    let late = try write {
      try $0.write(buffer(mono, 0.5, frameCount: 100), at: milliseconds(250))
      $0.ended(at: milliseconds(1000))
    }
    #expect(spans(late.int16Samples) == [[0, 250], [16384, 100], [0, 650]])
    let early = try write {
      try $0.write(buffer(mono, 0.5, frameCount: 100), at: milliseconds(-130))
      try $0.write(buffer(mono, 0.25, frameCount: 100), at: milliseconds(-30))
      $0.ended(at: milliseconds(20))
    }
    #expect(spans(early.int16Samples) == [[8192, 70]])
  }

  @Test("Timestamps that are rounded to milliseconds leave no trace")
  func rounding() throws {
    let format = PCMFormat(sampleRate: 44100, channelCount: 1)
    let content = try write {
      for index in 0..<500 {
        try $0.write(
          buffer(format, 0.5, frameCount: 1024), at: milliseconds(Int64(index * 1_024_000 / 44100)))
      }
    }
    #expect(spans(content.int16Samples) == [[16384, 512_000]])
  }

  @Test("Sound of another rate and other channels is converted to the first's")
  func formatChange() throws {
    let other = PCMFormat(sampleRate: 44100, channelCount: 1)
    let content = try write(.float32) {
      try $0.write(buffer(stereo, 0.5, frameCount: 4800), at: .zero)
      for index in 0..<10 {
        try $0.write(buffer(other, 0.25, frameCount: 4410), at: milliseconds(100 + Int64(index) * 100))
      }
      try $0.write(buffer(stereo, 0.5, frameCount: 4800), at: milliseconds(1100))
    }
    try #require(content.format.count > 2)
    #expect(content.format[2] == 2)
    let samples = content.floatSamples
    #expect(abs(samples.count / 2 - 57600) <= 2)
    // Neither silence between the parts nor a lost one.
    #expect(samples[..<9600].allSatisfy { $0 == 0.5 })
    #expect(samples[10_000..<105_000].allSatisfy { abs($0 - 0.25) < 0.01 || abs($0 - 0.1768) < 0.01 })
    #expect(samples.suffix(9600).allSatisfy { $0 == 0.5 })
  }

  @Test("A gap after converted sound stands behind the last of it")
  func gapAfterConversion() throws {
    let other = PCMFormat(sampleRate: 44100, channelCount: 2)
    let content = try write(.float32) {
      try $0.write(buffer(stereo, 0.5, frameCount: 480), at: .zero)
      try $0.write(buffer(other, 0.5, frameCount: 4410), at: milliseconds(10))
      try $0.write(buffer(other, 0.5, frameCount: 4410), at: milliseconds(210))
    }
    let samples = content.floatSamples
    let silent = samples.indices.filter { samples[$0] == 0 }
    let first = try #require(silent.first)
    #expect(abs(first / 2 - 5280) <= 2)
    #expect(abs(silent.count / 2 - 4800) <= 2)
    #expect(silent.last == first + silent.count - 1)
    #expect(abs(samples.count / 2 - 14_880) <= 4)
  }

  @Test("Sizes beyond 32 bits make it RF64")
  func large() {
    let header = WAVHeader(format: stereo, sampleFormat: .int16)
    let (small, big) = (Int64(1000), Int64(5) << 30)
    let bytes = header.bytes(dataByteCount: big)
    #expect(bytes.count == header.bytes(dataByteCount: small).count)
    #expect(bytes.count == header.bytes(dataByteCount: nil).count)
    #expect(Array(bytes[..<8]) == Array("RF64".utf8) + [0xff, 0xff, 0xff, 0xff])
    #expect(Array(bytes[12..<20]) == Array("ds64".utf8) + [28, 0, 0, 0])
    func number(_ offset: Int) -> Int64 { (0..<8).reduce(0) { $0 | Int64(bytes[offset + $1]) << (8 * $1) } }
    #expect(number(20) == big + Int64(bytes.count) - 8)
    #expect(number(28) == big)
    #expect(number(36) == big / 4)
    #expect(Array(bytes.suffix(8)) == Array("data".utf8) + [0xff, 0xff, 0xff, 0xff])
    // The largest that fits is what its size says.
    let fitting = Int64(UInt32.max) - Int64(bytes.count) + 8
    #expect(
      Array(header.bytes(dataByteCount: fitting)[..<8]) == Array("RIFF".utf8) + [0xff, 0xff, 0xff, 0xff])
    #expect(Array(header.bytes(dataByteCount: fitting + 1)[..<4]) == Array("RF64".utf8))
  }

  @Test("An output that was given nothing is a file without samples; a second end does nothing")
  func empty() throws {
    let content = try write { _ in }
    #expect(content.magic == "RIFF")
    #expect(content.data.isEmpty)
    try withFolder { folder in
      let url = folder.appending(path: "out.wav")
      let output = try WAVOutput(path: url.path)
      try output.finish()
      try FileManager.default.removeItem(at: url)
      try output.finish()
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
      let error = #expect(throws: ReelError.self) {
        try output.write(buffer(stereo, 0, frameCount: 1), at: .zero)
      }
      #expect(error?.kind == .usage)
    }
  }

  @Test("An output that is let go of leaves nothing behind, and what was there before stays")
  func abandoned() throws {
    try withFolder { folder in
      let url = folder.appending(path: "out.wav")
      try Data("before".utf8).write(to: url)
      do {
        let output = try WAVOutput(path: url.path)
        try output.write(buffer(stereo, 0.5, frameCount: 100), at: .zero)
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["out.wav"])
      #expect(try Data(contentsOf: url) == Data("before".utf8))
    }
  }

  @Test("A file that can't be made is an error at once")
  func noFolder() throws {
    try withFolder { folder in
      let error = #expect(throws: ReelError.self) {
        _ = try WAVOutput(path: folder.appending(path: "none/out.wav").path)
      }
      #expect(error?.kind == .cannotCreateOutput)
    }
  }

  @Test("A write that fails is an error, and so is all that follows", .enabled(if: hasFullDevice))
  func fullDevice() throws {
    let output = try WAVOutput(path: "/dev/full")
    for _ in 0..<2 {
      let error = #expect(throws: ReelError.self) {
        try output.write(buffer(stereo, 0.5, frameCount: 100), at: .zero)
      }
      #expect(error?.kind == .cannotWriteOutput)
      #expect(error?.location == "/dev/full")
    }
    #expect(throws: ReelError.self) { try output.finish() }
  }

  private static let hasFullDevice = FileManager.default.fileExists(atPath: "/dev/full")

  @Test(
    "A clip's sound is the file's, sample by sample",
    arguments: [
      "audio-aac.mp4", "audio-aac.mkv", "audio-aac.ts", "audio-aac.flv", "audio-mp3.mkv", "audio-mp3.ts",
      "audio-ac3.mp4", "audio-opus.mkv", "audio-opus.mp4", "audio-vorbis.mkv", "audio-flac.mp4",
    ])
  func clip(name: String) throws {
    var wanted: [Int16] = []
    var first: MediaTime?
    let content = try write { output in
      try decode(name) { buffer, time in
        wanted += buffer.int16Samples
        let start = first ?? time
        first = start
        try output.write(buffer, at: time - start)
      }
    }
    #expect(wanted.count > 10_000)
    #expect(content.int16Samples == wanted)
  }

  /// Decodes the sound of a fixture.
  private func decode(_ name: String, _ body: (PCMBuffer, MediaTime) throws -> Void) throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Fixtures/media")
    let formats: [String: ContainerFormat] = ["ts": .mpegTS, "mkv": .matroska, "flv": .flv]
    let format = formats[String(name.suffix(3).drop { $0 == "." })] ?? .mp4
    let demuxer = try Demuxer(
      source: FileByteSource(path: folder.appending(path: name).path), format: format, name: name,
      logger: silentLogger)
    var decoder: AudioDecoder?
    var splitter: AudioFrameSplitter?
    var streamOfDecoder: StreamInfo?
    func give(_ buffers: [PCMBuffer]) throws {
      let stream = try #require(streamOfDecoder)
      for buffer in buffers { try body(buffer, stream.time(ticks: #require(buffer.ticks))) }
    }
    while let packet = try demuxer.nextPacket() {
      // FLV tells the parameters of its codec just before the first packet.
      if streamOfDecoder == nil { try demuxer.refreshStreams() }
      let stream = demuxer.streams[packet.streamIndex]
      guard let codec = stream.audioCodec else { continue }
      if decoder == nil {
        streamOfDecoder = stream
        decoder = try AudioDecoder(
          stream: stream, name: name, logger: silentLogger)
        if format == .mpegTS {
          splitter = AudioFrameSplitter(codec: codec, streamIndex: stream.index, timeBase: stream.timeBase)
        }
      }
      guard let decoder else { continue }
      guard let splitter else {
        try give(decoder.decode(packet))
        continue
      }
      splitter.append(packet)
      while let frame = try splitter.next() { try give(decoder.decode(frame)) }
    }
    while let frame = try splitter?.flush() { try give(decoder?.decode(frame) ?? []) }
    try give(decoder?.drain() ?? [])
  }
}

extension WAVOutput {
  /// Writes samples at an output time.
  fileprivate func write(_ buffer: PCMBuffer, at time: MediaTime) throws {
    try write(TimedAudio(buffer, time: time))
  }
}

/// A WAVE file taken apart.
private struct WAVContent {
  let magic: String
  private(set) var chunkNames: [String] = []
  private(set) var format: [UInt8] = []
  private(set) var fact: [UInt8] = []
  private(set) var data: [UInt8] = []

  init(_ bytes: [UInt8]) throws {
    func number(_ offset: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) } }
    func text(_ offset: Int) -> String { String(decoding: bytes[offset..<(offset + 4)], as: UTF8.self) }
    try #require(bytes.count >= 12)
    magic = text(0)
    try #require(number(4) == bytes.count - 8)
    try #require(text(8) == "WAVE")
    var offset = 12
    while offset < bytes.count {
      try #require(offset + 8 <= bytes.count)
      let (name, size) = (text(offset), number(offset + 4))
      try #require(offset + 8 + size <= bytes.count)
      let content = Array(bytes[(offset + 8)..<(offset + 8 + size)])
      chunkNames.append(name)
      switch name {
      case "fmt ": format = content
      case "fact": fact = content
      case "data": data = content
      default: break
      }
      offset += 8 + size
    }
  }

  var int16Samples: [Int16] {
    stride(from: 0, to: data.count, by: 2).map {
      Int16(bitPattern: UInt16(data[$0]) | UInt16(data[$0 + 1]) << 8)
    }
  }

  var floatSamples: [Float] {
    stride(from: 0, to: data.count, by: 4).map { offset in
      Float(bitPattern: (0..<4).reduce(0) { $0 | UInt32(data[offset + $1]) << UInt32(8 * $1) })
    }
  }
}
