import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("Decoding of sound")
struct AudioDecoderTests {
  private func decode(_ sound: SoundClip) throws -> (StreamInfo, [PCMBuffer]) {
    let (stream, packets) = try soundPackets(sound.clip)
    #expect(stream.audioCodec == sound.codec)
    guard sound.clip.format == .mpegTS else { return (stream, try decodeSound(stream, packets)) }
    return (
      stream, try decodeSound(stream, split(packets, codec: sound.codec, timeBase: stream.timeBase))
    )
  }

  @Test("Samples and times are those of ffmpeg", arguments: SoundClip.all + SoundClip.split)
  func golden(sound: SoundClip) throws {
    let golden = try sound.golden()
    let (stream, buffers) = try decode(sound)
    #expect(try buffers.map { try $0.md5() } == golden.pictures.map(\.md5))
    // Timestamps are rounded to ticks where they are written, and by ffmpeg to samples, which it then counts from.
    let tolerance = 2 * (stream.timeBase.value + golden.timeBase.value)
    for (buffer, picture) in zip(buffers, golden.pictures) {
      #expect(buffer.sampleRate == Int(golden.timeBase.denominator))
      let time = Double(try #require(buffer.ticks)) * stream.timeBase.value
      #expect(abs(time - Double(picture.ticks) * golden.timeBase.value) <= tolerance)
    }
  }
}
