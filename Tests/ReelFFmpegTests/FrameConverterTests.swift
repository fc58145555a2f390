import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Converting frames to RGB")
struct FrameConverterTests {
  /// The first frame of a clip, converted as its stream says, or otherwise.
  private func image(
    _ path: String, orientation: Orientation? = nil, target: PixelSize? = nil,
    gravity: VideoGravity = .resizeAspect, converter: FrameConverter = FrameConverter()
  ) throws -> RGBImage {
    let reader = try makeReader(Clip(path))
    guard let frame = try reader.firstFrame() else { throw ReelError(.badMedia, "no frame in \(path)") }
    let orientation =
      orientation ?? Orientation(rotation: reader.stream.rotation, isMirrored: reader.stream.isMirrored)
    let geometry = FrameGeometry(
      stored: frame.size, sampleAspectRatio: reader.stream.sampleAspectRatio ?? frame.sampleAspectRatio,
      orientation: orientation, target: target, gravity: gravity)
    let image = try converter.convert(frame, geometry: geometry, orientation: orientation)
    #expect(image.pixels.count == image.size.width * image.size.height * 3)
    return image
  }

  private func pixel(_ image: RGBImage, _ x: Int, _ y: Int) -> [Int] {
    let offset = (y * image.size.width + x) * 3
    return image.pixels[offset..<(offset + 3)].map(Int.init)
  }

  private func difference(_ left: [Int], _ right: [Int]) -> Int {
    zip(left, right).map { abs($0 - $1) }.max() ?? 0
  }

  // MARK: Colour

  /// Places of testsrc2 where nine pixels around have one colour.
  private static let flatPlaces: [(x: Int, y: Int, rgb: [Int])] = [
    (116, 5, [255, 0, 255]), (137, 5, [0, 255, 255]), (86, 20, [0, 0, 63]), (6, 23, [63, 0, 0]),
    (31, 31, [0, 63, 0]), (5, 42, [255, 0, 0]), (31, 42, [0, 255, 0]), (57, 42, [255, 255, 0]),
    (84, 46, [0, 0, 255]),
  ]

  private static let colourClips = [
    "601-limited", "601-full", "709-limited", "709-full", "2020-limited", "unspecified",
  ]

  @Test("Colours come back through every matrix and range", arguments: colourClips)
  func flatColours(name: String) throws {
    let converted = try image("media/colour-\(name).mp4")
    for place in Self.flatPlaces {
      let found = pixel(converted, place.x, place.y)
      #expect(difference(found, place.rgb) <= 14, "\(found) at \(place.x), \(place.y), not \(place.rgb)")
    }
  }

  @Test("All matrices and ranges look the same", arguments: colourClips.dropFirst())
  func sameColours(name: String) throws {
    let reference = try image("media/colour-601-limited.mp4")
    let converted = try image("media/colour-\(name).mp4")
    #expect(converted.size == reference.size)
    let differences = zip(reference.pixels, converted.pixels).map { abs(Int($0) - Int($1)) }
    let far = differences.count { $0 > 14 }
    #expect(far * 25 < differences.count, "\(far) of \(differences.count) samples are off by more than 14")
    #expect(differences.reduce(0, +) < 4 * differences.count)
  }

  @Test("Without a stated matrix it is BT.601 below 720 lines")
  func unspecified() throws {
    #expect(try image("media/colour-unspecified.mp4") == image("media/colour-601-limited.mp4"))
    let reader = try makeReader(Clip("media/colour-unspecified.mp4"))
    let color = try #require(try colour(of: reader))
    #expect(color.matrix == nil)
    #expect(color.assumedMatrix == "smpte170m")
  }

  @Test(
    "What a frame says of its colour",
    arguments: [
      ("601-limited", "smpte170m", "smpte170m", false, 8, false),
      ("601-full", "smpte170m", "smpte170m", true, 8, false),
      ("709-limited", "bt709", "bt709", false, 8, false), ("709-full", "bt709", "bt709", true, 8, false),
      ("2020-limited", "bt2020nc", "bt2020-10", false, 8, false),
      ("hdr10-pq", "bt2020nc", "smpte2084", false, 10, true),
      ("hlg", "bt2020nc", "arib-std-b67", false, 10, true),
    ])
  func description(
    name: String, matrix: String, transfer: String, isFullRange: Bool, bitDepth: Int, isHDR: Bool
  ) throws {
    let color = try #require(try colour(of: makeReader(Clip("media/colour-\(name).mp4"))))
    #expect(color.matrix == matrix)
    #expect(color.assumedMatrix == matrix)
    #expect(color.transfer == transfer)
    #expect(color.isFullRange == isFullRange)
    #expect(color.bitDepth == bitDepth)
    #expect(color.isHDR == isHDR)
  }

  private func colour(of reader: ClipReader) throws -> ColorDescription? {
    try reader.firstFrame()?.color
  }

  @Test("Monochrome is grey")
  func grey() throws {
    let converted = try image("media/h264-gray.mp4")
    let isGrey = stride(from: 0, to: converted.pixels.count, by: 3).allSatisfy { index in
      let rgb = converted.pixels[index..<(index + 3)].map(Int.init)
      return rgb.max()! - rgb.min()! <= 2
    }
    #expect(isGrey)
    #expect(Set(converted.pixels).count > 50)
  }

  // MARK: Orientation

  /// Turns an image clockwise, and mirrors it before, pixel by pixel.
  private func turned(_ image: RGBImage, rotation: Int, isMirrored: Bool = false) -> RGBImage {
    var image = image
    if isMirrored {
      image = map(image, to: image.size) { [width = image.size.width] x, y in (width - 1 - x, y) }
    }
    for _ in 0..<(rotation / 90) {
      // What was the left column, from the bottom up, is the top row.
      image = map(image, to: image.size.transposed) { [height = image.size.height] x, y in (y, height - 1 - x)
      }
    }
    return image
  }

  private func map(_ image: RGBImage, to size: PixelSize, from: (Int, Int) -> (Int, Int)) -> RGBImage {
    var pixels: [UInt8] = []
    pixels.reserveCapacity(image.pixels.count)
    for y in 0..<size.height {
      for x in 0..<size.width {
        let (column, row) = from(x, y)
        let offset = (row * image.size.width + column) * 3
        pixels += image.pixels[offset..<(offset + 3)]
      }
    }
    return RGBImage(size: size, pixels: pixels)
  }

  @Test(
    "Frames are turned and mirrored upright as ffmpeg does it",
    arguments: [("rotate-90", 90), ("rotate-180", 180), ("rotate-270", 270), ("mirror", 0)])
  func upright(name: String, degrees: Int) throws {
    let stored = try image("media/\(name).mp4", orientation: .upright)
    #expect(stored.size == PixelSize(width: 160, height: 96))
    let turned = turned(stored, rotation: degrees, isMirrored: name == "mirror")
    #expect(try image("media/\(name).mp4") == turned)
    #expect(turned != stored)
  }

  @Test("Every orientation, also where the frame is scaled", arguments: [0, 90, 180, 270], [false, true])
  func everyOrientation(rotation: Int, isMirrored: Bool) throws {
    let orientation = Orientation(rotation: rotation, isMirrored: isMirrored)
    let small = PixelSize(width: 80, height: 45)
    let stored = try image("media/odd-444-161x91.mp4", orientation: .upright, target: small, gravity: .resize)
    let found = try image(
      "media/odd-444-161x91.mp4", orientation: orientation,
      target: orientation.swapsAxes ? small.transposed : small)
    #expect(found == turned(stored, rotation: rotation, isMirrored: isMirrored))
  }

  // MARK: Size

  @Test(
    "Frames that are scaled have the chroma of each pixel, as with 16 bits",
    arguments: [(80, 46), (192, 108), (37, 91), (320, 180)])
  func scaledChroma(width: Int, height: Int) throws {
    for name in ["colour-709-full.mp4", "colour-601-limited.mp4", "hevc-main10.mp4", "mjpeg-422.mov"] {
      let size = PixelSize(width: width, height: height)
      #expect(try error(of: name, at: size) < 2, "\(name)")
    }
  }

  @Test("So do frames of 10 bits, and stills, that keep their size")
  func exactChroma() throws {
    #expect(try error(of: "hevc-main10.mp4", at: nil) < 2)
    for name in ["colour-709-full.mp4", "colour-601-limited.mp4", "mjpeg-422.mov"] {
      #expect(try error(of: name, at: nil, isStill: true) < 2, "\(name)")
    }
  }

  /// The difference between 8 bits and 16, at most, in 255ths.
  private func error(of name: String, at size: PixelSize?, isStill: Bool = false) throws -> Double {
    guard let frame = try makeReader(Clip("media/\(name)")).firstFrame() else {
      throw ReelError(.badMedia, "no frame in \(name)")
    }
    let geometry = FrameGeometry(
      stored: frame.size, sampleAspectRatio: nil, orientation: .upright, target: size ?? frame.size,
      gravity: .resize)
    let converter = FrameConverter()
    let deep = try converter.convertDeep(frame, geometry: geometry, orientation: .upright)
    // A fast routine takes frames of 8 bits that keep their size.
    let image =
      try isStill || size == frame.size
      ? converter.convertExactly(frame, geometry: geometry, orientation: .upright)
      : converter.convert(frame, geometry: geometry, orientation: .upright)
    return zip(image.pixels, deep).map { abs(Double($0) - Double($1) / 257) }.max() ?? .infinity
  }

  @Test(
    "Sizes come out square and upright",
    arguments: [
      ("sar-4-3.mp4", 192, 108), ("sar-9-8.mp4", 180, 120), ("sar-4-3-rotate-90.mp4", 108, 192),
      ("odd-444-161x91.mp4", 161, 91), ("odd-420-158x86.mp4", 158, 86), ("odd-420-158x86-hevc.mp4", 158, 86),
      ("odd-420-161x91.webm", 161, 91), ("portrait-90x160.mp4", 90, 160),
      ("rotate-90.mp4", 96, 160), ("rotate-180.mp4", 160, 96), ("h264-high10.mp4", 192, 108),
    ])
  func sizes(name: String, width: Int, height: Int) throws {
    #expect(try image("media/\(name)").size == PixelSize(width: width, height: height))
  }

  @Test("Nothing is written past the end of an image", arguments: [8, 40, 72, 96, 104, 360, 720])
  func end(width: Int) throws {
    let size = PixelSize(width: width, height: 16)
    let (count, spare) = (size.width * size.height * 3, 512)
    let still = Still(size: size, pixels: .eightBit([UInt8](repeating: 90, count: count)), color: .sRGB)
    let jpeg = try StillEncoder.encode(still, as: .jpeg, quality: 90)
    let frame = try StillImage(decoding: jpeg, name: "a.jpg", logger: silentLogger).frame
    let geometry = FrameGeometry(
      stored: frame.size, sampleAspectRatio: nil, orientation: .upright, target: size, gravity: .resize)
    var image = RGBImage.empty
    image.size = size
    image.pixels = [UInt8](repeating: 0xaa, count: count + spare)
    image.pixels.removeLast(spare)
    try FrameConverter().convert(frame, geometry: geometry, orientation: .upright, into: &image)
    let past = image.pixels.withUnsafeBufferPointer { pixels in
      pixels.baseAddress.map { Array(UnsafeBufferPointer(start: $0 + count, count: spare)) }
    }
    #expect(image.pixels.count == count && past == [UInt8](repeating: 0xaa, count: spare))
  }

  @Test("The last column and row of an odd frame are there")
  func oddEdges() throws {
    for name in ["odd-444-161x91.mp4", "odd-420-161x91.webm"] {
      let converted = try image("media/\(name)")
      // What was not written would be black, or whatever lay in memory; testsrc2 has bright edges.
      let edge = (0..<91).map { pixel(converted, 160, $0) }
      let inner = (0..<91).map { pixel(converted, 158, $0) }
      let distance = zip(edge, inner).map { difference($0, $1) }.reduce(0, +) / 91
      #expect(distance < 60, "\(name)")
    }
  }

  @Test("Fit leaves black bars, and the frame between them")
  func fit() throws {
    let own = try image("media/h264.ts")
    let boxed = try image("media/h264.ts", target: PixelSize(width: 192, height: 192))
    #expect(boxed.size == PixelSize(width: 192, height: 192))
    let rowBytes = 192 * 3
    #expect(boxed.pixels.prefix(42 * rowBytes).allSatisfy { $0 == 0 })
    #expect(boxed.pixels.suffix(42 * rowBytes).allSatisfy { $0 == 0 })
    #expect(Array(boxed.pixels[(42 * rowBytes)..<(150 * rowBytes)]) == own.pixels)
  }

  @Test("Fill cuts off what goes beyond the output")
  func fill() throws {
    let own = try image("media/h264.ts")
    let square = try image(
      "media/h264.ts", target: PixelSize(width: 108, height: 108), gravity: .resizeAspectFill)
    for y in [0, 50, 107] {
      for x in [0, 54, 107] { #expect(pixel(square, x, y) == pixel(own, x + 42, y)) }
    }
  }

  @Test("Stretch fills the output with all of the frame")
  func stretch() throws {
    let stretched = try image("media/h264.ts", target: PixelSize(width: 96, height: 216), gravity: .resize)
    #expect(stretched.size == PixelSize(width: 96, height: 216))
    #expect(!stretched.pixels.suffix(96 * 3).allSatisfy { $0 == 0 })
  }

  @Test("Very small outputs", arguments: VideoGravity.allCases)
  func tiny(gravity: VideoGravity) throws {
    for size in [
      PixelSize(width: 1, height: 1), PixelSize(width: 2, height: 9), PixelSize(width: 17, height: 1),
    ] {
      #expect(try image("media/rotate-90.mp4", target: size, gravity: gravity).size == size)
    }
  }

  @Test("One converter does frames of different kinds by turns")
  func mixed() throws {
    let converter = FrameConverter()
    for name in [
      "colour-601-full.mp4", "h264-high10.mp4", "colour-709-limited.mp4", "odd-444-161x91.mp4",
      "colour-601-full.mp4",
    ] {
      #expect(try image("media/\(name)", converter: converter) == image("media/\(name)"), "\(name)")
    }
  }
}
