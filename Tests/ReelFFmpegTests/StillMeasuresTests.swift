import CFFmpeg
import ReelCore
import ReelStills
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Measures of a still")
struct StillMeasuresTests {
  private let size = PixelSize(width: 160, height: 90)

  private func measures(_ value: (_ x: Int, _ y: Int) -> Double) -> StillMeasures {
    var samples: [Float] = []
    for y in 0..<size.height { for x in 0..<size.width { samples.append(Float(value(x, y))) } }
    return StillMeasures(LumaPlane(size: size, samples: samples))
  }

  /// The luma of a clip's first frame.
  private func plane(_ path: String) throws -> LumaPlane {
    guard let frame = try makeReader(Clip(path)).firstFrame() else {
      throw ReelError(.badMedia, "no frame in \(path)")
    }
    return try LumaPlane(frame)
  }

  /// Blocks of eight samples with random values.
  private func blocks(from low: Double = 0, to high: Double = 1) -> StillMeasures {
    var random = SplitMix(seed: 7)
    let values = (0..<300).map { _ in low + (high - low) * Double.random(in: 0...1, using: &random) }
    return measures { x, y in values[(y / 8) * 20 + x / 8] }
  }

  @Test("A picture with contrast and detail is good")
  func good() {
    let good = blocks()
    #expect(good.flaws.isEmpty, "\(good)")
    #expect(abs(good.mean - 0.5) < 0.1)
    #expect(abs(good.deviation - 0.29) < 0.03)
    #expect(good.score > 0.7)
  }

  @Test("Black, and black with a few bright samples")
  func black() {
    #expect(measures { _, _ in 0 }.flaws.contains(.black))
    #expect(measures { x, y in x == 5 && y < 40 ? 1 : 0.02 }.flaws.contains(.black))
    #expect(!measures { x, _ in x < 40 ? 0.9 : 0.02 }.flaws.contains(.black))
  }

  @Test("One color")
  func uniform() {
    let white = measures { _, _ in 1 }
    #expect(white.flaws == [.uniform, .faded])
    #expect(white.uniformShare == 1)
    #expect(white.entropy == 0)
    #expect(white.sharpness == 0)
    // A logo on white.
    #expect(measures { x, y in x < 30 && y < 30 ? Double(x % 7) / 7 : 0.95 }.flaws == [.uniform])
  }

  @Test("A fade leaves little contrast")
  func faded() {
    #expect(blocks(from: 0.4, to: 0.6).flaws == [.faded])
    #expect(blocks(from: 0.02, to: 0.2).flaws.contains(.faded))
    #expect(abs(blocks(from: 0.2, to: 0.6).contrast - 0.4) < 0.03)
  }

  @Test("A smooth gradient is blurred, stripes are not")
  func blurred() {
    #expect(measures { x, _ in Double(x) / 160 }.flaws == [.blurred])
    #expect(measures { x, _ in x % 2 == 0 ? 0.1 : 0.9 }.flaws.isEmpty)
  }

  @Test("A good frame has a higher score than a poor one")
  func order() {
    let poor = [measures { _, _ in 0 }, measures { _, _ in 1 }, blocks(from: 0.4, to: 0.6)]
    for measures in poor { #expect(measures.score < blocks().score) }
  }

  @Test(
    "Luma comes from every pixel format",
    arguments: [
      "media/h264-faststart.mp4", "media/hevc-main10.mp4", "media/h264-gray.mp4", "media/prores-alpha.mov",
      "media/mjpeg-422.mov", "media/colour-709-full.mp4",
    ])
  func planes(path: String) throws {
    let plane = try plane(path)
    #expect(plane.size.width >= 90)
    let measures = StillMeasures(plane)
    #expect(measures.contrast > 0.5, "\(measures)")
    #expect(measures.flaws.isEmpty, "\(measures)")
  }

  @Test("Full and limited range measure the same")
  func ranges() throws {
    let means = try ["709-full", "709-limited"].map { name in
      StillMeasures(try plane("media/colour-\(name).mp4")).mean
    }
    #expect(abs(means[0] - means[1]) < 0.01)
  }

  /// Noise in the lower half of the range.
  private func noise(_ width: Int, _ height: Int, depth: Int) -> [UInt16] {
    var random = SplitMix(seed: UInt64(width * height))
    return (0..<(width * height)).map { _ in UInt16(truncatingIfNeeded: random.next()) >> UInt16(17 - depth) }
  }

  private func plane<Sample>(
    of samples: [Sample], _ width: Int, _ height: Int, _ format: AVPixelFormat
  ) throws -> LumaPlane {
    let frame = try ImageCodec.frame(size: PixelSize(width: width, height: height), format: format)
    frame.fill(samples, rowBytes: width * MemoryLayout<Sample>.stride)
    return try LumaPlane(frame)
  }

  /// The difference between a plane and the means of the samples that it stands for, at most.
  private func error(
    of plane: LumaPlane, from samples: [UInt16], _ width: Int, _ height: Int, depth: Int
  ) -> Double {
    let unit = Double(1 << (depth - 8))
    var error = 0.0
    for row in 0..<plane.size.height {
      let rows = (row * height / plane.size.height)..<((row + 1) * height / plane.size.height)
      for column in 0..<plane.size.width {
        let columns = (column * width / plane.size.width)..<((column + 1) * width / plane.size.width)
        var sum = 0
        for y in rows { for x in columns { sum += Int(samples[y * width + x]) } }
        let mean = (Double(sum) / Double(rows.count * columns.count) - 16 * unit) / (219 * unit)
        let found = Double(plane.samples[row * plane.size.width + column])
        error = max(error, abs(found - min(max(mean, 0), 1)))
      }
    }
    return error
  }

  @Test(
    "A plane has the means of the frame's samples",
    arguments: [
      (160, 90), (640, 360), (720, 1280), (960, 540), (1920, 1080), (854, 480), (321, 200), (700, 2),
      (1, 90_000),
    ])
  func means(width: Int, height: Int) throws {
    let eight = noise(width, height, depth: 8)
    let small = try plane(of: eight.map { UInt8($0) }, width, height, AV_PIX_FMT_GRAY8)
    #expect(max(small.size.width, small.size.height) == min(320, max(width, height)))
    #expect(error(of: small, from: eight, width, height, depth: 8) < 1e-5)
    let ten = noise(width, height, depth: 10)
    let other = try plane(of: ten, width, height, AV_PIX_FMT_GRAY10LE)
    #expect(error(of: other, from: ten, width, height, depth: 10) < 1e-5)
  }

  @Test("The measures are those of the formulas", arguments: [(61, 37), (64, 8), (3, 3), (11, 4)])
  func formulas(width: Int, height: Int) {
    var random = SplitMix(seed: 3)
    let samples = (0..<(width * height)).map { _ in Float.random(in: 0...1, using: &random) }
    let measures = StillMeasures(LumaPlane(size: PixelSize(width: width, height: height), samples: samples))
    let (values, count) = (samples.map { Double($0) }, Double(samples.count))
    let mean = values.reduce(0, +) / count
    let variance = values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / count
    #expect(abs(measures.mean - mean) < 1e-9)
    #expect(abs(measures.deviation - variance.squareRoot()) < 1e-9)
    #expect(measures.darkShare == Double(samples.count { $0 < 0.08 }) / count)
    var energy = 0.0
    for y in 1..<(height - 1) {
      for x in 1..<(width - 1) {
        let at = y * width + x
        let around = (values[at - 1] + values[at + 1] + values[at - width] + values[at + width]) / 4
        energy += (values[at] - around) * (values[at] - around)
      }
    }
    let sharpness = energy / Double((width - 2) * (height - 2)) / variance
    #expect(abs(measures.sharpness - sharpness) < 1e-5 * sharpness)
  }
}
