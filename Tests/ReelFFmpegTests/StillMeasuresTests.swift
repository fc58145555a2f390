import ReelCore
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
}
