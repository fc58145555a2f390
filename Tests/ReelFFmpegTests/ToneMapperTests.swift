import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("HDR to SDR")
struct ToneMapperTests {
  /// The sixteen-bit PQ value of a luminance.
  private func code(_ luminance: Double) -> UInt16 {
    UInt16((ToneMapper.pqCode(luminance) * 65535).rounded())
  }

  private func gray(_ luminance: Double, peak: Double? = nil) -> [UInt8] {
    ToneMapper(.pq, peak: peak).map([UInt16](repeating: code(luminance), count: 3))
  }

  @Test("PQ as in SMPTE ST 2084")
  func pq() {
    // BT.2408, Table 1: 203 cd/m² is 58 %, 1000 cd/m² is 75 %.
    #expect(abs(ToneMapper.pqCode(203) - 0.5807) < 0.0001)
    #expect(abs(ToneMapper.pqCode(1000) - 0.7518) < 0.0001)
    #expect(abs(ToneMapper.pqCode(10_000) - 1) < 1e-9)
    for luminance in [0.01, 1, 100, 5000] {
      #expect(abs(ToneMapper.pqLuminance(ToneMapper.pqCode(luminance)) - luminance) < luminance * 1e-6)
    }
  }

  @Test(
    "The curve of BT.2390: unchanged up to its knee, the peak at white, and rising",
    arguments: [400.0, 1000, 4000])
  func curve(peak: Double) {
    #expect(abs(ToneMapper.mapped(peak, peak: peak) - 203) < 0.01)
    #expect(ToneMapper.mapped(peak * 2, peak: peak) <= 203.01)
    let knee = 1.5 * ToneMapper.pqCode(203) - 0.5 * ToneMapper.pqCode(peak)
    let under = ToneMapper.pqLuminance(knee) * 0.99
    #expect(ToneMapper.mapped(under, peak: peak) == under)
    let values = stride(from: 0, through: peak, by: peak / 500).map { ToneMapper.mapped($0, peak: peak) }
    #expect(values == values.sorted())
  }

  @Test("Gray stays gray, black stays black, and the peak is white")
  func grays() {
    #expect(gray(0) == [0, 0, 0])
    #expect(gray(1000) == [255, 255, 255])
    #expect(gray(10_000) == [255, 255, 255])
    for luminance in [1.0, 20, 50, 90, 203, 500] {
      let pixel = gray(luminance)
      #expect((pixel.max() ?? 0) - (pixel.min() ?? 0) <= 1, "\(pixel)")
    }
    // Under the knee: a quarter of white, as sRGB encodes it.
    #expect(abs(Int(gray(50.75)[0]) - 137) <= 1)
    // SDR content in HDR is not mapped.
    #expect(abs(Int(gray(203, peak: 203)[0]) - 255) <= 1)
  }

  @Test("Colors of BT.709 keep their hue")
  func colors() {
    // Red of BT.709 at 50 cd/m², in BT.2020 (ITU-R BT.2087).
    let light = [0.6274 * 50, 0.0691 * 50, 0.0164 * 50]
    let pixel = ToneMapper(.pq).map(light.map(code))
    #expect(pixel[1] <= 3 && pixel[2] <= 3, "\(pixel)")
    #expect(abs(Int(pixel[0]) - 136) <= 2, "\(pixel)")
  }

  @Test("HLG: its reference white is near SDR white, its peak is white")
  func hlg() {
    func gray(_ share: Double) -> [UInt8] {
      ToneMapper(.hlg).map([UInt16](repeating: UInt16(share * 65535), count: 3))
    }
    #expect(gray(0) == [0, 0, 0])
    #expect(gray(1) == [255, 255, 255])
    // BT.2408, Table 1: 75 % of HLG is 203 cd/m² on a display of 1000.
    let white = Int(gray(0.75)[0])
    #expect(abs(white - Int(self.gray(203)[0])) <= 2)
    let values = stride(from: 0, through: 1, by: 0.01).map { gray($0)[0] }
    #expect(values == values.sorted())
  }

  @Test("SDR: neutral colors stay as they are")
  func sdr() {
    for value in stride(from: 0, through: 255, by: 5) {
      let pixel = ToneMapper(.sdr).map([UInt16](repeating: UInt16(value * 257), count: 3))
      #expect(pixel.allSatisfy { abs(Int($0) - value) <= 1 }, "\(value) became \(pixel)")
    }
  }

  @Test("Frames are mapped, or kept in sixteen bits", arguments: ["hdr10-pq", "hlg"])
  func frames(name: String) throws {
    guard let frame = try makeReader(Clip("media/colour-\(name).mp4")).firstFrame() else {
      throw ReelError(.badMedia, "no frame")
    }
    let geometry = FrameGeometry(stored: frame.size, sampleAspectRatio: nil, orientation: .upright)
    let renderer = StillRenderer()
    let mapped = try renderer.render(frame, geometry: geometry, orientation: .upright)
    let kept = try renderer.render(frame, geometry: geometry, orientation: .upright, hdr: .keep)
    #expect(mapped.color == .sRGB)
    #expect(kept.color == (name == "hlg" ? .hlg : .pq))
    guard case .eightBit(let low) = mapped.pixels, case .sixteenBit(let high) = kept.pixels else {
      throw ReelError(.usage, "other pixels")
    }
    #expect(low.count == high.count)
    // The clip is SDR's test picture under HDR's tags, so it is bright.
    #expect(low.max() == 255)
    #expect((high.max() ?? 0) > 60_000)
  }
}
