import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("Decoded sound")
struct PCMBufferTests {
  private let stereo = PCMFormat(sampleRate: 48000, channelCount: 2)

  @Test("16-bit numbers are rounded to the nearest, and clipped")
  func int16() {
    let samples: [Float] = [
      0, 1, -1, 0.5 / 32768, 1.5 / 32768, -0.5 / 32768, -1.5 / 32768, 7, -7, .infinity, -.infinity, .nan,
    ]
    #expect(
      PCMBuffer(format: stereo, samples: samples).int16Samples == [
        0, 32767, -32768, 0, 2, 0, -2, 32767, -32768, 32767, -32768, 0,
      ])
  }

  @Test("Every 16-bit number survives")
  func exact() {
    let numbers = Array(Int16.min...Int16.max)
    let buffer = PCMBuffer(format: stereo, samples: numbers.map { Float($0) / 32768 })
    #expect(buffer.int16Samples == numbers)
  }

  @Test("A last instant that lacks channels is left out")
  func surplus() {
    let buffer = PCMBuffer(format: stereo, samples: [1, 2, 3])
    #expect(buffer.samples == [1, 2])
    #expect(buffer.frameCount == 1)
    #expect(PCMBuffer(format: PCMFormat(sampleRate: 1, channelCount: 0), samples: [1]).samples == [])
  }

  @Test("Length and format")
  func format() {
    let buffer = PCMBuffer(format: stereo, samples: [Float](repeating: 0, count: 960))
    #expect(buffer.duration == MediaTime(value: 10, timescale: 1000))
    #expect(buffer.channelLayout == "stereo")
    #expect(stereo.channelMask == 3)
    let six = PCMFormat(sampleRate: 48000, channelCount: 6)
    #expect(six.channelLayout == "5.1")
    #expect(six.channelMask == 0x3f)
    // More channels than any layout of FFmpeg has.
    let many = PCMFormat(sampleRate: 48000, channelCount: 31)
    #expect(many.channelLayout == nil)
    #expect(many.channelMask == 0)
    #expect(many.channelCount == 31)
  }

  @Test("A gain multiplies every sample")
  func gain() {
    var buffer = PCMBuffer(format: stereo, samples: [0.5, -0.25])
    buffer.scale(by: 0.5)
    #expect(buffer.samples == [0.25, -0.125])
    buffer.scale(by: 0)
    #expect(buffer.int16Samples == [0, 0])
  }
}
