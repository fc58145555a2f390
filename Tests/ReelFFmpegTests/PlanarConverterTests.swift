import CFFmpeg
import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("Converting frames to planar images of one format")
struct PlanarConverterTests {
  /// The first frame of a clip, converted.
  private func image(
    _ path: String, to format: PlanarConverter.Format, orientation: Orientation = .upright,
    converter: PlanarConverter = PlanarConverter()
  ) throws -> PlanarImage {
    let reader = try makeReader(Clip("media/\(path)"))
    guard let frame = try reader.firstFrame() else { throw ReelError(.badMedia, "no frame in \(path)") }
    let image = try converter.convert(
      frame, orientation: orientation,
      sampleAspectRatio: reader.stream.sampleAspectRatio ?? frame.sampleAspectRatio, to: format)
    #expect(image.size == format.size)
    #expect(image.chroma == format.chroma)
    #expect(image.bitDepth == format.bitDepth)
    #expect(image.isFullRange == format.isFullRange)
    let halves = (width: (format.size.width + 1) / 2, height: (format.size.height + 1) / 2)
    let luma = format.size.width * format.size.height
    let chroma =
      switch format.chroma {
      case .none: 0
      case .c420: halves.width * halves.height
      case .c422: halves.width * format.size.height
      case .c444: luma
      }
    let sampleBytes = format.bitDepth > 8 ? 2 : 1
    let counts = format.chroma == .none ? [luma] : [luma, chroma, chroma]
    #expect(image.planes.map(\.count) == counts.map { $0 * sampleBytes })
    return image
  }

  /// The first frame of a clip as decoded.
  private func decoded(_ path: String, orientation: Orientation = .upright) throws -> PlanarImage {
    let reader = try makeReader(Clip("media/\(path)"))
    guard let frame = try reader.firstFrame() else { throw ReelError(.badMedia, "no frame in \(path)") }
    return try PlanarImage(frame, orientation: orientation)
  }

  private func format(
    _ width: Int = 160, _ height: Int = 96, chroma: PlanarImage.Chroma = .c420(.left), bitDepth: Int = 8,
    isFullRange: Bool = false, matrix: String = "smpte170m", aspect: Rational = Rational(1, 1)
  ) -> PlanarConverter.Format {
    PlanarConverter.Format(
      size: PixelSize(width: width, height: height), chroma: chroma, bitDepth: bitDepth,
      isFullRange: isFullRange, matrix: matrix, sampleAspectRatio: aspect)
  }

  private func samples(_ plane: [UInt8], bitDepth: Int) -> [Int] {
    guard bitDepth > 8 else { return plane.map(Int.init) }
    return stride(from: 0, to: plane.count, by: 2).map { Int(plane[$0]) | Int(plane[$0 + 1]) << 8 }
  }

  /// The mean difference of each plane, in steps of 8 bits.
  private func differences(_ left: PlanarImage, _ right: PlanarImage) -> [Double] {
    zip(left.planes, right.planes).map { first, second in
      let (scaleLeft, scaleRight) = (Double(1 << (left.bitDepth - 8)), Double(1 << (right.bitDepth - 8)))
      let pairs = zip(samples(first, bitDepth: left.bitDepth), samples(second, bitDepth: right.bitDepth))
      let values = pairs.map { abs(Double($0) / scaleLeft - Double($1) / scaleRight) }
      return values.reduce(0, +) / Double(max(1, values.count))
    }
  }

  /// How far `converted` is from what `expected` makes of the samples of `original`, at most.
  private func largestError(
    _ original: [UInt8], _ converted: [UInt8], expected: (Double) -> Double
  ) -> Double {
    let errors = zip(original, converted).map { abs(expected(Double($0)) - Double($1)) }
    return errors.max() ?? .infinity
  }

  @Test("A frame of the format is left as decoded, turned too")
  func unchanged() throws {
    let stored = try image("rotate-90.mp4", to: format())
    #expect(try stored.planes == decoded("rotate-90.mp4").planes)
    let turned = Orientation(rotation: 90, isMirrored: true)
    #expect(
      try image("rotate-90.mp4", to: format(96, 160), orientation: turned).planes
        == decoded("rotate-90.mp4", orientation: turned).planes)
    let odd = format(161, 91, chroma: .c444, matrix: "smpte170m")
    #expect(try image("odd-444-161x91.mp4", to: odd).planes == decoded("odd-444-161x91.mp4").planes)
  }

  @Test(
    "One frame in every matrix and range comes out the same",
    arguments: ["601-limited", "601-full", "709-limited", "709-full", "2020-limited"],
    [("smpte170m", false, "601-limited"), ("bt709", true, "709-full"), ("bt709", false, "709-limited")])
  func colours(name: String, target: (matrix: String, isFullRange: Bool, name: String)) throws {
    let wanted = format(isFullRange: target.isFullRange, matrix: target.matrix)
    let converted = try image("colour-\(name).mp4", to: wanted)
    let found = differences(converted, try decoded("colour-\(target.name).mp4"))
    #expect(found.allSatisfy { $0 < 3 }, "\(found)")
    if name != target.name {
      // It is not the frame as it came.
      #expect(try converted.planes != decoded("colour-\(name).mp4").planes)
    }
  }

  @Test("Range and matrix without a change of size change the samples as they should")
  func exactRange() throws {
    let full = try decoded("colour-601-full.mp4")
    let limited = try image("colour-601-full.mp4", to: format())
    try #require(full.planes.count > 1)
    try #require(limited.planes.count > 1)
    let lumaError = largestError(full.planes[0], limited.planes[0]) { 16 + $0 * (219.0 / 255) }
    let chromaError = largestError(full.planes[1], limited.planes[1]) {
      128 + ($0 - 128) * (224.0 / 255)
    }
    #expect(lumaError <= 1.5)
    #expect(chromaError <= 1.5)
  }

  /// A frame of grey samples, each column's value by `sample`.
  private func greyFrame(
    width: Int, height: Int, bitDepth: Int, isFullRange: Bool, sample: (Int) -> Int
  ) throws -> Frame {
    let frame = try Frame()
    frame.pointer.pointee.width = Int32(width)
    frame.pointer.pointee.height = Int32(height)
    frame.pointer.pointee.format = av_get_pix_fmt(bitDepth > 8 ? "gray\(bitDepth)le" : "gray").rawValue
    frame.pointer.pointee.color_range = isFullRange ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG
    try #require(av_frame_get_buffer(frame.pointer, 0) == 0)
    let base = try #require(frame.pointer.pointee.data.0)
    let stride = Int(frame.pointer.pointee.linesize.0)
    for y in 0..<height {
      for x in 0..<width {
        if bitDepth == 8 {
          base[y * stride + x] = UInt8(sample(x))
        } else {
          base[y * stride + x * 2] = UInt8(truncatingIfNeeded: sample(x))
          base[y * stride + x * 2 + 1] = UInt8(sample(x) >> 8)
        }
      }
    }
    return frame
  }

  @Test(
    "Grey of one range stays as it is, in every depth and size",
    arguments: [(8, 8), (8, 10), (10, 8), (10, 10), (12, 8)], [false, true])
  func grey(depths: (from: Int, to: Int), isFullRange: Bool) throws {
    let (from, to) = depths
    for height in [96, 48] {
      let frame = try greyFrame(width: 192, height: 96, bitDepth: from, isFullRange: isFullRange) { x in
        (20 + x) << (from - 8)
      }
      let wanted = format(height * 2, height, bitDepth: to, isFullRange: isFullRange)
      let converted = try PlanarConverter().convert(
        frame, orientation: .upright, sampleAspectRatio: nil, to: wanted)
      try #require(!converted.planes.isEmpty)
      let luma = samples(converted.planes[0], bitDepth: to).prefix(height * 2)
      let scale = Double(1 << (to - 8))
      let errors = luma.enumerated().map { x, value in
        abs(Double(value) / scale - (20 + (Double(x) + 0.5) * 96 / Double(height) - 0.5))
      }
      #expect(errors.max() ?? 255 <= 1, "\(errors)")
      for plane in converted.planes.dropFirst() {
        #expect(Set(samples(plane, bitDepth: to)) == [1 << (to - 1)], "\(height)")
      }
    }
  }

  @Test("The luma of a frame in grey is its own", arguments: [8, 10])
  func toGrey(bitDepth: Int) throws {
    let converted = try image("h264-high10.mp4", to: format(192, 108, chroma: .none, bitDepth: bitDepth))
    let original = try decoded("h264-high10.mp4")
    #expect(differences(converted, original)[0] < 0.6)
  }

  @Test(
    "Every chroma format and depth",
    arguments: [PlanarImage.Chroma.none, .c420(.left), .c420(.topLeft), .c420(.other), .c422, .c444],
    [8, 9, 10, 12, 14, 16])
  func everyFormat(chroma: PlanarImage.Chroma, bitDepth: Int) throws {
    let reference = try image("h264-high10.mp4", to: format(192, 108, chroma: chroma))
    let converted = try image("h264-high10.mp4", to: format(192, 108, chroma: chroma, bitDepth: bitDepth))
    #expect(differences(converted, reference).allSatisfy { $0 < 1 })
    // Odd sizes, a scaled frame.
    _ = try image("h264-high10.mp4", to: format(101, 57, chroma: chroma, bitDepth: bitDepth))
  }

  @Test("A quarter turn of 4:2:2, which Y4M can hold when it was scaled", arguments: [8, 10])
  func turned422(bitDepth: Int) throws {
    let wanted = format(96, 160, chroma: .c422, bitDepth: bitDepth)
    let turned = Orientation(rotation: 90, isMirrored: false)
    let converted = try image("rotate-90.mp4", to: wanted, orientation: turned)
    let expected = try decoded("rotate-90.mp4", orientation: turned)
    #expect(differences(converted, expected)[0] < 1)
  }

  // MARK: Shape

  @Test("A size that was rounded has no bars")
  func rounded() throws {
    let small = try image("h264.ts", to: format(100, 57))
    try #require(!small.planes.isEmpty)
    #expect(small.planes[0].prefix(100).contains { $0 > 40 })
    #expect(small.planes[0].suffix(100).contains { $0 > 40 })
  }

  @Test(
    "Bars are black in every range and depth", arguments: [(8, false), (8, true), (10, false), (10, true)])
  func bars(bitDepth: Int, isFullRange: Bool) throws {
    let wanted = format(192, 192, bitDepth: bitDepth, isFullRange: isFullRange)
    let converted = try image("h264.ts", to: wanted)
    try #require(converted.planes.count > 2)
    let luma = samples(converted.planes[0], bitDepth: bitDepth)
    let black = isFullRange ? 0 : 16 << (bitDepth - 8)
    #expect(luma.prefix(42 * 192).allSatisfy { $0 == black })
    #expect(luma.suffix(42 * 192).allSatisfy { $0 == black })
    #expect(luma.dropFirst(42 * 192).prefix(192).contains { $0 != black })
    let chroma = samples(converted.planes[1], bitDepth: bitDepth)
    #expect(chroma.prefix(21 * 96).allSatisfy { $0 == 1 << (bitDepth - 1) })
    if bitDepth == 8, !isFullRange {
      let own = try decoded("h264.ts")
      try #require(own.planes.count > 2)
      #expect(Array(converted.planes[0][(42 * 192)..<(150 * 192)]) == own.planes[0])
      #expect(Array(converted.planes[2][(21 * 96)..<(75 * 96)]) == own.planes[2])
    }
  }

  @Test("Aspect ratios of samples count, those of the format too")
  func aspect() throws {
    // 160x120 in samples of 9:8 is 180x120.
    let square = try image("sar-9-8.mp4", to: format(180, 120))
    try #require(!square.planes.isEmpty)
    #expect(square.planes[0].prefix(180).contains { $0 > 40 })
    #expect(square.planes[0].suffix(180).contains { $0 > 40 })
    let own = try image("sar-9-8.mp4", to: format(160, 120, aspect: Rational(9, 8)))
    #expect(try own.planes == decoded("sar-9-8.mp4").planes)
    // As square samples it is as wide as 180: bars above and below in 160x120.
    let boxed = try image("sar-9-8.mp4", to: format(160, 120))
    try #require(!boxed.planes.isEmpty)
    #expect(boxed.planes[0].prefix(160 * 6).allSatisfy { $0 == 16 })
    #expect(boxed.planes[0].suffix(160 * 6).allSatisfy { $0 == 16 })
  }

  @Test("Very small and odd images", arguments: [(1, 1), (3, 2), (2, 9), (17, 1)])
  func tiny(width: Int, height: Int) throws {
    for chroma in [PlanarImage.Chroma.none, .c420(.left), .c422, .c444] {
      _ = try image("rotate-90.mp4", to: format(width, height, chroma: chroma))
    }
  }

  @Test("One converter does frames of different kinds by turns")
  func mixed() throws {
    let converter = PlanarConverter()
    for name in [
      "colour-601-full.mp4", "h264-high10.mp4", "colour-709-limited.mp4", "odd-444-161x91.mp4",
      "h264-gray.mp4", "colour-601-full.mp4",
    ] {
      #expect(try image(name, to: format(), converter: converter).planes == image(name, to: format()).planes)
    }
  }

  @Test("A depth that there is no pixel format for")
  func unknownDepth() throws {
    #expect(throws: ReelError.self) { try image("h264.ts", to: format(bitDepth: 11)) }
  }
}
