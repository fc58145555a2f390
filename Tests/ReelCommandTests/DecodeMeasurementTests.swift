import ReelFFmpeg
import ReelPool
import Testing

@testable import ReelCommand

@Suite("Costs from measurements")
struct DecodeMeasurementTests {
  @Test("Two sizes tell a constant from a part for each pixel; one size does not")
  func fit() throws {
    var measurement = DecodeMeasurement()
    #expect(measurement.cost == nil)
    #expect(measurement.frameDuration == nil)
    measurement.note(codec: .h264, pixelCount: 300_000, frameCount: 2, duration: .milliseconds(8))
    measurement.note(codec: .h264, pixelCount: 100_000, frameCount: 3, duration: .milliseconds(6))
    measurement.note(codec: .vp9, pixelCount: 100_000, frameCount: 10, duration: .milliseconds(10))
    measurement.note(opening: .milliseconds(3))
    measurement.note(opening: .milliseconds(1))
    measurement.note(opening: .milliseconds(2))
    let cost = try #require(measurement.cost)
    let h264 = try #require(cost.codecs[.h264])
    #expect(h264.constant == .milliseconds(1))
    #expect(abs(h264.nanosecondsPerPixel - 10) < 1e-9)
    #expect(cost.codecs[.vp9] == DecodeCost.Frame(nanosecondsPerPixel: 10))
    #expect(cost.others == h264)
    #expect(cost.opening == .milliseconds(2))
    #expect(measurement.frameCount == 15)
    #expect(measurement.frameDuration == .microseconds(1_600))
  }

  @Test("No part is negative")
  func bounds() throws {
    var falling = DecodeMeasurement()
    falling.note(codec: .av1, pixelCount: 100_000, frameCount: 1, duration: .milliseconds(3))
    falling.note(codec: .av1, pixelCount: 200_000, frameCount: 1, duration: .milliseconds(1))
    #expect(falling.cost?.codecs[.av1] == DecodeCost.Frame(constant: .milliseconds(2)))
    var steep = DecodeMeasurement()
    steep.note(codec: .av1, pixelCount: 100_000, frameCount: 1, duration: .milliseconds(1))
    steep.note(codec: .av1, pixelCount: 200_000, frameCount: 1, duration: .milliseconds(5))
    let cost = try #require(steep.cost?.codecs[.av1])
    #expect(cost.constant == .zero)
    #expect(abs(cost.nanosecondsPerPixel - 20) < 1e-9)
  }
}
