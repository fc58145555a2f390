import Logging
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Demuxing")
struct DemuxerTests {
  private func hasPacket(_ demuxer: Demuxer) throws -> Bool { try demuxer.nextPacket() != nil }

  @Test("Bytes of another container are refused", arguments: ContainerFormat.allCases)
  func wrongContainer(format: ContainerFormat) throws {
    // A playlist, a subtitle script, and a list of files for ffmpeg's concat demuxer: things that name other things.
    for text in [
      "#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n", "ffconcat version 1.0\nfile '/etc/hostname'\n",
      "[Script Info]\nScriptType: v4.00+\n",
    ] {
      let source = MemorySource(Array(text.utf8))
      do {
        let demuxer = try Demuxer(source: source, format: format, name: "t", logger: silentLogger)
        let isThere = try hasPacket(demuxer)
        // Raw streams take whatever comes as packets of theirs.
        #expect(!isThere || [.h264, .hevc, .ac3, .eac3].contains(format))
      } catch let error as ReelError {
        #expect(error.kind == .badMedia, "\(format): \(error)")
      }
    }
  }

  @Test("Nothing outside of the allow lists is there")
  func allowLists() {
    let formats = Set(ContainerFormat.allowList.split(separator: ","))
    #expect(
      formats.isDisjoint(with: ["hls", "dash", "concat", "image2", "lavfi", "tty", "sdp", "rtsp", "imf"]))
    #expect(
      VideoCodec.allowList.split(separator: ",").sorted() == [
        "flv", "h263", "h263p", "h264", "hevc", "libaom-av1", "libdav1d", "mjpeg", "mpeg1video", "mpeg2video",
        "mpeg4", "prores", "vp8", "vp9",
      ])
  }

  @Test("A QuickTime file that names another file is not followed")
  func externalReference() throws {
    // `alis` in place of `url `, not self-contained: the samples would stand in another file.
    var bytes = try Clip("media/h264-quicktime.mov").bytes()
    let marker = Array("url ".utf8)
    let reference = try #require(
      bytes.indices.first { index in
        index + 8 <= bytes.count && bytes[index..<(index + 4)].elementsEqual(marker)
          && bytes[(index + 4)..<(index + 8)].elementsEqual([0, 0, 0, 1])
      })
    bytes.replaceSubrange(reference..<(reference + 8), with: Array("alis".utf8) + [0, 0, 0, 0])
    let collector = LogCollector()
    let demuxer = try? Demuxer(
      source: MemorySource(bytes), format: .mp4, name: "t", logger: collector.makeLogger())
    while let demuxer, try hasPacket(demuxer) {}
    #expect(!collector.lines.contains { $0.text.contains("Opening") })
  }

  @Test("Log lines go to swift-log under the source's name")
  func logLines() throws {
    let collector = LogCollector()
    let clip = Clip("bad/damaged-lengths.mp4")
    let reader = try ClipReader(
      source: MemorySource(clip.bytes()), format: clip.format, name: "the source",
      logger: collector.makeLogger())
    _ = try reader.rest()
    #expect(collector.lines.contains { $0.text.contains("Invalid NAL unit size") })
    #expect(collector.lines.allSatisfy { $0.source == "the source" })
    // What FFmpeg calls an error is a property of the media.
    #expect(collector.lines.allSatisfy { $0.level < .warning })
  }

  @Test("The log lines of two sources are told apart")
  func logLinesOfTwo() throws {
    let (first, second) = (LogCollector(), LogCollector())
    let damaged = try makeReader(Clip("bad/damaged-lengths.mp4"), logger: first.makeLogger())
    let sound = try makeReader(Clip("media/h264-gops.mp4"), logger: second.makeLogger())
    while try damaged.next() != nil, try sound.next() != nil {}
    #expect(!first.lines.isEmpty)
    #expect(!second.lines.contains { $0.text.contains("Invalid NAL unit size") })
  }
}
