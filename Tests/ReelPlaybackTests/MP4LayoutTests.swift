import ReelFFmpeg
import ReelTestSupport
import Testing

@testable import ReelReading

@Suite("Layout of MP4 files")
struct MP4LayoutTests {
  /// A box that gives its size in 64 bits.
  private func longBox(_ type: String, _ body: [UInt8] = []) -> [UInt8] {
    longMP4Header(type, byteCount: UInt64(body.count + 16)) + body
  }

  private let brand = Array("isom0000".utf8)

  @Test("Matroska: tracks before the media, after it, or not in the first bytes")
  func matroska() throws {
    func layout(_ name: String, _ count: Int = 4096) throws -> MP4Layout {
      MP4Layout(prefix: Array(try Fixtures.bytes("media/\(name)").prefix(count)), format: .matroska)
    }
    #expect(try layout("h264.mkv") == .indexFirst(isFragmented: false))
    #expect(try layout("vp8.webm") == .indexFirst(isFragmented: false))
    #expect(try layout("h264-tracks-last.mkv") == .indexLast)
    for count in 0..<60 { #expect(try layout("h264-tracks-last.mkv", count) == .unknown, "\(count) bytes") }
    // An element of unknown size, and bytes that can't be read.
    let head: [UInt8] = [0x1a, 0x45, 0xdf, 0xa3, 0x80, 0x18, 0x53, 0x80, 0x67, 0x01]
    let unknown = [UInt8](repeating: 0xff, count: 7)
    let cluster: [UInt8] = [0x1f, 0x43, 0xb6, 0x75, 0xff]
    #expect(MP4Layout(matroskaPrefix: head + unknown + cluster) == .indexLast)
    #expect(MP4Layout(matroskaPrefix: head + unknown + [0xec, 0xff]) == .unknown)
    #expect(MP4Layout(matroskaPrefix: head + unknown + [0x00, 0x00, 0x00]) == .unknown)
    #expect(MP4Layout(matroskaPrefix: head + unknown + [0xec, 0x01] + unknown + cluster) == .unknown)
  }

  @Test("The index first")
  func indexFirst() {
    let file = mp4Box("ftyp", brand) + mp4Box("moov", mp4Box("mvhd")) + mp4Box("mdat")
    #expect(MP4Layout(prefix: file) == .indexFirst(isFragmented: false))
    #expect(
      MP4Layout(prefix: mp4Box("ftyp", brand) + mp4Box("free") + file) == .indexFirst(isFragmented: false))
    #expect(MP4Layout(prefix: longBox("ftyp", brand) + longBox("moov")) == .indexFirst(isFragmented: false))
    let endless = longMP4Header("moov", byteCount: UInt64(Int64.max))
    #expect(MP4Layout(prefix: mp4Box("ftyp", brand) + endless) == .indexFirst(isFragmented: false))
  }

  @Test("Fragments")
  func fragmented() {
    let moov = mp4Box(
      "moov",
      mp4Box("mvhd") + mp4Box("trak", [UInt8](repeating: 7, count: 100)) + mp4Box("mvex", mp4Box("trex")))
    #expect(MP4Layout(prefix: mp4Box("ftyp", brand) + moov) == .indexFirst(isFragmented: true))
    #expect(MP4Layout(prefix: mp4Box("styp") + mp4Box("moof")) == .indexFirst(isFragmented: true))
    #expect(MP4Layout(prefix: mp4Box("sidx") + mp4Box("moof")) == .indexFirst(isFragmented: true))
    #expect(MP4Layout(prefix: mp4Box("moof") + mp4Box("mdat")) == .indexFirst(isFragmented: true))
    // What stands behind the index is not its own.
    #expect(
      MP4Layout(prefix: mp4Box("moov", mp4Box("mvhd")) + mp4Box("mvex")) == .indexFirst(isFragmented: false))
  }

  @Test("Media first")
  func indexLast() {
    #expect(MP4Layout(prefix: mp4Box("ftyp", brand) + mp4Box("mdat", [1, 2, 3])) == .indexLast)
    #expect(MP4Layout(prefix: mp4Box("ftyp", brand) + mp4Box("wide") + mp4Box("mdat")) == .indexLast)
    // To the end of the file, and of 64 bits.
    #expect(
      MP4Layout(prefix: mp4Box("ftyp", brand) + bigEndian(0, bytes: 4) + Array("mdat".utf8)) == .indexLast)
    #expect(MP4Layout(prefix: mp4Box("ftyp", brand) + longBox("mdat")) == .indexLast)
  }

  @Test("What does not tell")
  func unknown() {
    #expect(MP4Layout(prefix: []) == .unknown)
    #expect(MP4Layout(prefix: mp4Box("ftyp", brand)) == .unknown)
    #expect(MP4Layout(prefix: Array(mp4Box("ftyp", brand).prefix(6))) == .unknown)
    // A box that goes beyond what is there.
    #expect(MP4Layout(prefix: bigEndian(100_000, bytes: 4) + Array("free".utf8)) == .unknown)
    // Sizes that make no sense.
    #expect(MP4Layout(prefix: bigEndian(3, bytes: 4) + Array("free".utf8) + mp4Box("moov")) == .unknown)
    #expect(MP4Layout(prefix: bigEndian(1, bytes: 4) + Array("free".utf8)) == .unknown)
    let huge = longMP4Header("free", byteCount: .max) + mp4Box("moov")
    #expect(MP4Layout(prefix: huge) == .unknown)
    let large = longMP4Header("free", byteCount: 1 << 62) + mp4Box("moov")
    #expect(MP4Layout(prefix: large) == .unknown)
  }

  @Test(
    "The fixtures",
    arguments: [
      ("h264-faststart.mp4", MP4Layout.indexFirst(isFragmented: false)), ("h264-moov-last.mp4", .indexLast),
      ("h264-fragmented.mp4", .indexFirst(isFragmented: true)),
      ("h264-fragmented-sidx.mp4", .indexFirst(isFragmented: true)), ("h264-quicktime.mov", .indexLast),
    ])
  func fixtures(name: String, layout: MP4Layout) throws {
    #expect(MP4Layout(prefix: try Fixtures.bytes("media/\(name)")) == layout)
  }

  @Test("Cut anywhere, a file never tells anything wrong")
  func prefixes() throws {
    let bytes = Array(try Fixtures.bytes("media/h264-moov-last.mp4").prefix(100))
    for count in 0...bytes.count {
      let layout = MP4Layout(prefix: Array(bytes.prefix(count)))
      #expect(layout == (count < 48 ? .unknown : .indexLast), "\(count) bytes")
    }
  }
}
