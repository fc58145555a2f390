import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Decoding of sound")
struct AudioDecoderTests {
  private func decode(_ sound: SoundClip) throws -> (StreamInfo, [PCMBuffer]) {
    let (stream, packets) = try soundPackets(sound.clip)
    #expect(stream.audioCodec == sound.codec)
    guard sound.clip.format == .mpegTS else { return (stream, try decodeSound(stream, packets)) }
    return (
      stream, try decodeSound(stream, splitFrames(packets, codec: sound.codec, timeBase: stream.timeBase))
    )
  }

  @Test("Samples and times are those of ffmpeg", arguments: SoundClip.all + SoundClip.split)
  func golden(sound: SoundClip) throws {
    let golden = try sound.golden()
    let (stream, buffers) = try decode(sound)
    #expect(try buffers.map { try $0.md5() } == golden.frames.map(\.md5))
    // Timestamps are rounded to ticks where they are written, and by ffmpeg to samples, which it then counts from.
    let tolerance = 2 * (stream.timeBase.value + golden.timeBase.value)
    for (buffer, frame) in zip(buffers, golden.frames) {
      #expect(buffer.sampleRate == Int(golden.timeBase.denominator))
      let time = Double(try #require(buffer.ticks)) * stream.timeBase.value
      #expect(abs(time - Double(frame.ticks) * golden.timeBase.value) <= tolerance)
    }
  }

  @Test(
    "Channels and rates",
    arguments: [
      ("audio-aac-5.1.mp4", "5.1", 48000), ("audio-ac3.mp4", "5.1(side)", 48000),
      ("audio-aac.mp4", "stereo", 48000),
      ("audio-pcm-float.mov", "mono", 8000),
    ])
  func formats(name: String, layout: String, rate: Int) throws {
    let sound = try #require(SoundClip.all.first { $0.name == name })
    let (_, buffers) = try decode(sound)
    #expect(buffers.allSatisfy { $0.channelLayout == layout && $0.sampleRate == rate })
    #expect(buffers.allSatisfy { $0.samples.count == $0.frameCount * $0.channelCount })
    if layout == "5.1(side)" { #expect(buffers.first?.format.channelMask == 0x60f) }
  }

  @Test("Samples of more than 16 bits keep them")
  func wide() throws {
    let (_, buffers) = try decode(SoundClip(name: "audio-flac-24.mkv", codec: .flac))
    let scaled = buffers.flatMap(\.samples).map { $0 * 8_388_608 }
    #expect(scaled.allSatisfy { $0 == $0.rounded() })
    #expect(scaled.contains { $0.truncatingRemainder(dividingBy: 256) != 0 })
  }

  @Test("A drain gives what is left once; a flush makes the decoder new", arguments: SoundClip.all)
  func drainAndFlush(sound: SoundClip) throws {
    let (stream, packets) = try soundPackets(sound.clip)
    let decoder = try AudioDecoder(stream: stream, name: "test", logger: silentLogger)
    var first: [PCMBuffer] = []
    for packet in packets { first += try decoder.decode(packet) }
    first += try decoder.drain()
    #expect(try decoder.drain().isEmpty)
    try decoder.flush()
    var second: [PCMBuffer] = []
    for packet in packets { second += try decoder.decode(packet) }
    second += try decoder.drain()
    // How much of the start is not to be heard stands in the first packet, but in Matroska's Opus: there a new decoder
    // knows it, and a flushed one gives it with times before 0.
    let kept = sound.name == "audio-opus.mkv" ? 1 : 0
    #expect(first.dropFirst(kept).map(\.frameCount) == second.dropFirst(kept).map(\.frameCount))
    #expect(first.dropFirst(kept).map(\.ticks) == second.dropFirst(kept).map(\.ticks))
    // Others fill in what they lack with noise of their own, or start from what they had.
    if [.flac, .alac, .pcm].contains(sound.codec) {
      #expect(first.map(\.samples) == second.map(\.samples))
    }
    #expect(decoder.rejectedPacketCount == 0)
  }

  @Test("After a flush in the middle the times are those of the next packets")
  func seek() throws {
    let (stream, packets) = try soundPackets(Clip("media/audio-flac.mp4"))
    let whole = try decodeSound(stream, packets)
    let decoder = try AudioDecoder(stream: stream, name: "test", logger: silentLogger)
    _ = try decoder.decode(packets[0])
    try decoder.flush()
    let buffers = try decoder.decode(packets[5])
    try #require(whole.count > 5)
    #expect(buffers.map(\.ticks) == [whole[5].ticks])
    #expect(buffers.map(\.samples) == [whole[5].samples])
  }

  @Test("Frames without a timestamp follow the one before")
  func missingTimestamps() throws {
    let (stream, packets) = try soundPackets(Clip("media/audio-flac.mp4"))
    let whole = try decodeSound(stream, packets)
    for packet in packets.dropFirst() {
      packet.setTimestamps(presentationTicks: nil, decodingTicks: nil, isKey: true, isCorrupt: false)
    }
    #expect(try decodeSound(stream, packets).map(\.ticks) == whole.map(\.ticks))
    packets[0].setTimestamps(
      presentationTicks: nil, decodingTicks: nil, isKey: true, isCorrupt: false)
    #expect(try decodeSound(stream, packets).allSatisfy { $0.ticks == nil })
  }

  @Test("A frame of which the decoder conceals errors is counted")
  func concealed() throws {
    let (stream, packets) = try soundPackets(Clip("media/audio-ac3.mp4"))
    let decoder = try AudioDecoder(stream: stream, name: "test", logger: silentLogger)
    for (index, packet) in packets.enumerated() {
      guard index == 20 else {
        _ = try decoder.decode(packet)
        continue
      }
      var bytes = packet.withBytes { Array($0) }
      for place in bytes.count / 2..<bytes.count { bytes[place] ^= 0x5a }
      _ = try decoder.decode(try makePacket(bytes, ticks: packet.presentationTicks))
      #expect(decoder.rejectedPacketCount == 1)
    }
    #expect(decoder.rejectedPacketCount == 1)
  }

  @Test("A packet that is no frame is counted and passed over", arguments: SoundClip.split)
  func damagedPacket(sound: SoundClip) throws {
    guard sound.codec != .opus else { return }
    let (stream, packets) = try soundPackets(sound.clip)
    let frames = try splitFrames(packets, codec: sound.codec, timeBase: stream.timeBase)
    let decoder = try AudioDecoder(stream: stream, name: "test", logger: silentLogger)
    var count = 0
    for (index, frame) in frames.enumerated() {
      if index == 20 {
        let noise = try makePacket(
          [UInt8](repeating: 0x5a, count: 300), ticks: frame.presentationTicks)
        #expect(try decoder.decode(noise).isEmpty)
        #expect(decoder.rejectedPacketCount == 1)
      } else {
        count += try decoder.decode(frame).count
      }
    }
    count += try decoder.drain().count
    #expect(decoder.rejectedPacketCount == 1)
    // A frame that needs what the one before left for it may be missing as well.
    #expect(count >= frames.count - 2)
  }

  @Test("Where rate and channels change, the buffers say so")
  func formatChange() throws {
    let (stream, first) = try soundPackets(Clip("media/audio-aac.ts"))
    let (_, second) = try soundPackets(Clip("media/h264.ts"))
    let buffers = try decodeSound(
      stream, splitFrames(first, codec: .aac) + splitFrames(second, codec: .aac))
    let formats = buffers.map(\.format)
    let change = try #require(formats.firstIndex { $0.sampleRate == 48000 })
    #expect(formats[..<change].allSatisfy { $0.sampleRate == 44100 && $0.channelLayout == "stereo" })
    #expect(formats[change...].allSatisfy { $0.sampleRate == 48000 && $0.channelLayout == "mono" })
    #expect(formats.count - change > 20)
  }
}
