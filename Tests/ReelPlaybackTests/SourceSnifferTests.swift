import ReelFFmpeg
import ReelManifest
import ReelReading
import ReelTestSupport
import Testing

@Suite("Sniffing")
struct SourceSnifferTests {
  private func kind(_ text: String) -> SourceKind { SourceSniffer.kind(of: Array(text.utf8)) }

  @Test(
    "Media files by their bytes",
    arguments: [
      ("media/h264-faststart.mp4", ContainerFormat.mp4), ("media/h264-moov-last.mp4", .mp4),
      ("media/h264-quicktime.mov", .mp4), ("media/h264-fragmented-sidx.mp4", .mp4),
      ("media/h264.ts", .mpegTS),
      ("media/h264.mkv", .matroska), ("media/vp9.webm", .matroska), ("media/h264.flv", .flv),
      ("media/annexb.h264", .h264), ("media/annexb-bframes.h264", .h264), ("media/annexb.hevc", .hevc),
      ("dash-number/0/segment-00001.m4s", .mp4), ("hls-fmp4/low/segment-0.m4s", .mp4),
      ("hls-ts/low/segment-0.ts", .mpegTS), ("bad/codec-dirac.ts", .mpegTS),
      ("media/mpeg2.mpg", .mpegPS), ("media/mpeg1.mpg", .mpegPS), ("media/mpeg2-ac3.vob", .mpegPS),
      ("media/mpeg4.avi", .avi), ("media/flv1.flv", .flv), ("media/vp8.webm", .matroska),
      ("media/h263.3gp", .mp4), ("media/prores.mov", .mp4), ("media/annexb-recovery-point.h264", .h264),
      ("media/annexb-no-sets.h264", .h264), ("bad/cut-in-first-frame.ts", .mpegTS),
      ("hls-packed/aac/0.aac", .aac), ("hls-packed/mp3/0.mp3", .mp3), ("hls-packed/ac3/0.ac3", .ac3),
      ("hls-packed/ec3/0.ec3", .eac3),
    ])
  func media(path: String, format: ContainerFormat) throws {
    let bytes = try Fixtures.bytes(path)
    for count in [SourceSniffer.byteCount, 1024] {
      #expect(SourceSniffer.kind(of: Array(bytes.prefix(count))) == .media(format), "\(count) bytes")
    }
  }

  @Test(
    "Manifests by their bytes",
    arguments: [
      ("hls-ts/master.m3u8", ManifestFormat.hls), ("hls-ts/low/index.m3u8", .hls),
      ("dash-number/manifest.mpd", .dash),
      ("dash-gpac/multirate.mpd", .dash), ("bad/no-period.mpd", .dash), ("bad/entities.mpd", .dash),
    ])
  func manifests(path: String, format: ManifestFormat) throws {
    #expect(SourceSniffer.kind(of: try Fixtures.bytes(path)) == .manifest(format))
  }

  @Test("Marks and white space before a manifest")
  func leadingBytes() {
    #expect(kind("\u{feff}#EXTM3U\n") == .manifest(.hls))
    #expect(kind("\r\n  #EXTM3U\n") == .manifest(.hls))
    #expect(kind("# by hand\n#\n\n#EXTM3U\n") == .manifest(.hls))
    #expect(kind("\u{feff}<?xml version=\"1.0\"?><MPD/>") == .manifest(.dash))
    #expect(kind("\n\n<MPD type=\"static\"/>") == .manifest(.dash))
    #expect(kind("<!-- a comment --><MPD/>") == .manifest(.dash))
    let wide = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-16\"?><MPD/>".utf16
    #expect(SourceSniffer.kind(of: wide.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] }) == .manifest(.dash))
    #expect(SourceSniffer.kind(of: wide.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }) == .manifest(.dash))
  }

  @Test("What is not media is told in words")
  func others() throws {
    func words(_ kind: SourceKind) -> String {
      if case .other(let words, _) = kind { return words }
      return "\(kind)"
    }
    #expect(words(SourceSniffer.kind(of: [])) == "empty")
    #expect(words(kind(" \n\t")) == "blank text")
    #expect(words(kind("<!DOCTYPE html><html></html>")) == "an HTML page")
    #expect(words(kind("  <html><head>")) == "an HTML page")
    #expect(words(kind("{\"error\": \"not found\"}")) == "JSON")
    #expect(words(kind("[1, 2]")) == "JSON")
    #expect(words(kind("<svg xmlns=\"x\"/>")) == "XML, but not an MPD")
    #expect(words(SourceSniffer.kind(of: try Fixtures.bytes("bad/text.mp4"))) == "plain text")
    #expect(
      words(SourceSniffer.kind(of: Array("OggS".utf8) + [UInt8](repeating: 0, count: 60))).contains("Ogg"))
    let noise = (0..<500).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 0x80) }
    #expect(words(SourceSniffer.kind(of: noise)) == "an unknown format")
  }

  @Test("Transport streams of other packet sizes, and with something in front")
  func transportStreams() {
    let packet = { (size: Int) -> [UInt8] in [0x47] + [UInt8](repeating: 0x11, count: size - 1) }
    for size in [188, 192, 204] {
      let stream = (0..<8).flatMap { _ in packet(size) }
      #expect(SourceSniffer.kind(of: stream) == .media(.mpegTS), "packets of \(size)")
      #expect(
        SourceSniffer.kind(of: Array(stream.dropFirst(size - 4))) == .media(.mpegTS), "packets of \(size)")
    }
    // Timecodes before each packet (M2TS).
    let timed: [UInt8] = (0..<8).flatMap { _ in [0, 1, 2, 3] + packet(188) }
    #expect(SourceSniffer.kind(of: timed) == .media(.mpegTS))
  }

  @Test("A letter G is no transport stream")
  func letterG() {
    #expect(SourceSniffer.kind(of: Array("Good morning, this is a text.\n".utf8)) != .media(.mpegTS))
    #expect(SourceSniffer.kind(of: Array("GG".utf8)) != .media(.mpegTS))
  }

  @Test("Other containers")
  func otherContainers() {
    #expect(
      SourceSniffer.kind(of: Array("RIFF".utf8) + [0, 1, 0, 0] + Array("AVI LIST".utf8)) == .media(.avi))
    #expect(
      SourceSniffer.kind(of: Array("RIFF".utf8) + [0, 1, 0, 0] + Array("WAVEfmt ".utf8)) != .media(.avi))
    #expect(SourceSniffer.kind(of: Array("DKIF".utf8) + [0, 0, 32, 0]) == .media(.ivf))
    for type in ["ftyp", "styp", "moov", "moof", "mdat", "sidx", "free", "skip", "wide", "emsg"] {
      #expect(SourceSniffer.kind(of: [0, 0, 0, 24] + Array(type.utf8) + [0, 0]) == .media(.mp4), "\(type)")
    }
  }
}
