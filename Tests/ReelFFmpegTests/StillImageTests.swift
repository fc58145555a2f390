import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@Suite("Still images") struct StillImageTests {
  @Test(
    "An image is decoded as ffmpeg does it",
    arguments: [
      ("poster.jpg", 96, 54), ("poster.png", 96, 54), ("poster.webp", 96, 54), ("portrait.jpg", 54, 96),
    ])
  func decodes(_ name: String, _ width: Int, _ height: Int) throws {
    let image = try StillImage(
      decoding: try Fixtures.bytes("posters/\(name)"), name: name, logger: silentLogger)
    let (size, md5, codec) = (image.frame.size, try image.frame.md5(), image.stream.videoCodec)
    #expect(size == PixelSize(width: width, height: height))
    #expect(md5 == (try Golden(name)).frames.first?.md5)
    // What tells it from a video's frame.
    #expect(codec == nil)
  }

  @Test(
    "What is no image that is known is told so",
    arguments: ["media/h264-bframes.mp4", "bad/text.mp4", "bad/html.m3u8", "bad/empty.mp4"])
  func otherFormats(_ path: String) throws {
    let error = try failure(of: try Fixtures.bytes(path))
    #expect(error.kind == .unsupported)
    #expect(error.location == "image")
    #expect(error.advice != nil)
  }

  @Test(
    "Formats that ffmpeg knows as well are not taken",
    arguments: ["GIF89a", "BM", "II*\0", "RIFF0000WAVE", "<svg"])
  func unsupported(_ start: String) throws {
    #expect(try failure(of: Array(start.utf8) + [UInt8](repeating: 0, count: 100)).kind == .unsupported)
  }

  @Test("An image that is cut off is an error, or what there is of it", arguments: ["jpg", "png", "webp"])
  func cut(_ suffix: String) throws {
    let bytes = try Fixtures.bytes("posters/poster.\(suffix)")
    var failures = 0
    for length in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 60)) {
      do {
        let image = try StillImage(decoding: Array(bytes.prefix(length)), name: "image", logger: silentLogger)
        let size = image.frame.size
        #expect(size == PixelSize(width: 96, height: 54))
      } catch {
        failures += 1
        #expect([.badMedia, .unsupported].contains(error.kind))
      }
    }
    // Without its header there is nothing.
    #expect(failures > 0)
  }

  @Test("An image with wrong bytes in it never does harm", arguments: ["jpg", "png", "webp"])
  func damaged(_ suffix: String) throws {
    let bytes = try Fixtures.bytes("posters/poster.\(suffix)")
    for place in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 150)) {
      var bytes = bytes
      bytes[place] ^= 0xff
      do {
        let image = try StillImage(decoding: bytes, name: "image", logger: silentLogger)
        let size = image.frame.size
        #expect(size.width > 0)
      } catch {
        #expect([.badMedia, .unsupported].contains(error.kind))
      }
    }
  }

  @Test("A huge image is refused before memory is taken for it", arguments: [20_000, 65_000, 0x7fff_ffff])
  func huge(_ side: UInt32) throws {
    // Width and height of a PNG: bytes 16 to 23 (ISO/IEC 15948 11.2.2).
    var png = try Fixtures.bytes("posters/poster.png")
    let number = (0..<4).reversed().map { UInt8(truncatingIfNeeded: side >> ($0 * 8)) }
    png.replaceSubrange(16..<24, with: number + number)
    #expect(try failure(of: png).kind == .badMedia)
    // Height and width in a JPEG's SOF0 (ITU-T T.81 B.2.2) have 16 bits.
    guard side <= 65_000 else { return }
    var jpeg = try Fixtures.bytes("posters/poster.jpg")
    let header = try #require(jpeg.indices.first { jpeg[$0...].starts(with: [0xff, 0xc0]) })
    jpeg.replaceSubrange(header + 5..<header + 9, with: number.suffix(2) + number.suffix(2))
    #expect(try failure(of: jpeg).kind == .badMedia)
  }

  /// What the bytes are refused with.
  private func failure(of bytes: [UInt8]) throws -> ReelError {
    do {
      let image = try StillImage(decoding: bytes, name: "image", logger: silentLogger)
      let size = image.frame.size
      Issue.record("an image of \(size)")
      throw ReelError(.internalFault, "no failure")
    } catch let error as ReelError {
      return error
    }
  }
}
