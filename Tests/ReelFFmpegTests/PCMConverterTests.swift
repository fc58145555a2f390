import Foundation
import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("Conversion of sound")
struct PCMConverterTests {
  private func tone(_ format: PCMFormat, frameCount: Int, from first: Int = 0) -> PCMBuffer {
    var samples: [Float] = []
    for index in first..<(first + frameCount) {
      let value = Float(0.5 * sin(2 * Double.pi * 440 * Double(index) / Double(format.sampleRate)))
      for _ in 0..<format.channelCount { samples.append(value) }
    }
    return PCMBuffer(format: format, samples: samples)
  }

  @Test("A tone stays the tone at another rate, and no sample is lost")
  func resampling() throws {
    let source = PCMFormat(sampleRate: 44100, channelCount: 1)
    let target = PCMFormat(sampleRate: 48000, channelCount: 1)
    let converter = try PCMConverter(from: source, to: target)
    var samples: [Float] = []
    for index in 0..<10 {
      samples += try converter.convert(tone(source, frameCount: 4410, from: index * 4410)).samples
    }
    #expect(converter.delayFrameCount > 0)
    #expect(samples.count < 48000)
    samples += try converter.drain().samples
    #expect(abs(samples.count - 48000) <= 1)
    let wanted = tone(target, frameCount: samples.count).samples
    // The filter has nothing before the start and behind the end.
    for index in 100..<(samples.count - 100) { #expect(abs(samples[index] - wanted[index]) < 0.001) }
  }

  @Test("Channels are mixed")
  func mixing() throws {
    let mono = PCMFormat(sampleRate: 48000, channelCount: 1)
    let stereo = PCMFormat(sampleRate: 48000, channelCount: 2)
    let up = try PCMConverter(from: mono, to: stereo)
    let both = try up.convert(PCMBuffer(format: mono, samples: [0.5, -0.25]))
    #expect(both.format == stereo)
    #expect(both.frameCount == 2)
    for index in stride(from: 0, to: 4, by: 2) { #expect(both.samples[index] == both.samples[index + 1]) }
    let down = try PCMConverter(from: PCMFormat(sampleRate: 48000, channelCount: 6), to: stereo)
    // Front left alone is heard on the left alone.
    let left = try down.convert(PCMBuffer(format: down.source, samples: [0.5, 0, 0, 0, 0, 0]))
    try #require(left.samples.count > 1)
    #expect(left.samples[0] > 0)
    #expect(left.samples[1] == 0)
  }

  @Test("Samples of another format are refused, no samples give none")
  func misuse() throws {
    let mono = PCMFormat(sampleRate: 48000, channelCount: 1)
    let converter = try PCMConverter(from: mono, to: PCMFormat(sampleRate: 8000, channelCount: 1))
    #expect(throws: ReelError.self) {
      try converter.convert(PCMBuffer(format: converter.target, samples: [1]))
    }
    #expect(try converter.convert(PCMBuffer(format: mono, samples: [])).samples == [])
    #expect(throws: ReelError.self) {
      try PCMConverter(from: mono, to: PCMFormat(sampleRate: 0, channelCount: 1))
    }
  }
}
