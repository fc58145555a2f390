import ReelCore
import Testing

/// The samples of a WAVE file of 16-bit PCM.
struct WaveSamples {
  let sampleRate: Int
  let channelCount: Int
  let samples: [Int16]

  /// Reads the file, wherever its chunks stand.
  init(_ bytes: [UInt8]) throws {
    try #require(bytes.count >= 44)
    #expect(bytes[0..<4].elementsEqual("RIFF".utf8))
    #expect(bytes[8..<12].elementsEqual("WAVE".utf8))
    func number(_ offset: Int, _ count: Int) -> Int {
      (0..<count).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
    }
    #expect(number(4, 4) == bytes.count - 8)
    var format: (rate: Int, channels: Int)?
    var offset = 12
    while offset + 8 <= bytes.count {
      let (name, size) = (String(decoding: bytes[offset..<offset + 4], as: UTF8.self), number(offset + 4, 4))
      let content = offset + 8
      try #require(content + size <= bytes.count)
      if name == "fmt " {
        #expect(number(content + 14, 2) == 16)
        format = (number(content + 4, 4), number(content + 2, 2))
      }
      if name == "data" {
        let found = try #require(format)
        let samples = stride(from: content, to: content + size - 1, by: 2).map {
          Int16(truncatingIfNeeded: number($0, 2))
        }
        (sampleRate, channelCount, self.samples) = (found.rate, found.channels, samples)
        return
      }
      offset = content + size + size % 2
    }
    throw ReelError(.badMedia, "no samples")
  }
}
