import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Audio codecs")
struct AudioCodecTests {
  @Test("Only what is listed may be opened")
  func allowList() {
    let names = AudioCodec.allowList.split(separator: ",").map(String.init)
    #expect(Set(names).count == names.count)
    #expect(
      names.filter { !$0.hasPrefix("pcm_") }.sorted() == [
        "aac", "ac3", "alac", "eac3", "flac", "mp2", "mp2float", "mp3", "mp3float", "opus", "vorbis",
      ])
    #expect(names.contains("pcm_s16le"))
    #expect(!names.contains { $0.hasPrefix("pcm_bluray") || $0.hasPrefix("adpcm") || $0 == "libopus" })
  }

  @Test("A stream that is no audio has no audio codec, and has no decoder")
  func otherStreams() throws {
    let clip = Clip("media/audio-aac.mp4")
    let demuxer = try Demuxer(
      source: MemorySource(clip.bytes()), format: clip.format, name: "t", logger: silentLogger)
    let video = try #require(demuxer.streams.first { $0.kind == .video })
    #expect(video.audioCodec == nil)
    #expect(demuxer.streams.first { $0.kind == .audio }?.videoCodec == nil)
    let error = #expect(throws: ReelError.self) {
      _ = try AudioDecoder(stream: video, name: "t", logger: silentLogger)
    }
    #expect(error?.kind == .unsupported)
  }
}
