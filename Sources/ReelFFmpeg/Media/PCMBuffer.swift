internal import CFFmpeg
public import ReelCore

/// Decoded sound: samples of all channels from one instant on.
public struct PCMBuffer: Sendable {
  /// When the first sample is heard, in ticks of the stream's time base; nil where the stream has not told yet.
  public var ticks: Int64?
  public let format: PCMFormat
  /// Samples between -1 and 1 (lossy codecs give some beyond), the channels of one instant next to each other:
  /// `frameCount * channelCount` of them.
  public private(set) var samples: [Float]

  /// Takes samples of all channels; those beyond a multiple of the channel count are left out.
  public init(ticks: Int64? = nil, format: PCMFormat, samples: [Float]) {
    self.ticks = ticks
    self.format = format
    self.samples = samples
    let surplus = format.channelCount > 0 ? samples.count % format.channelCount : samples.count
    if surplus > 0 { self.samples.removeLast(surplus) }
  }

  /// Samples a second of each channel.
  public var sampleRate: Int { format.sampleRate }

  public var channelCount: Int { format.channelCount }

  /// FFmpeg's name of the channel layout, as `stereo`; nil where the order of the channels is not known.
  public var channelLayout: String? { format.channelLayout }

  /// Instants: the samples of each channel.
  public var frameCount: Int { channelCount > 0 ? samples.count / channelCount : 0 }

  /// How long the samples last.
  public var duration: MediaTime {
    MediaTime(value: Int64(frameCount), timescale: Int32(clamping: sampleRate))
  }

  /// What is left without the first `count` instants.
  public func dropping(_ count: Int) -> PCMBuffer {
    PCMBuffer(format: format, samples: Array(samples.dropFirst(max(0, count) * channelCount)))
  }

  /// Every sample multiplied by `gain`: 0 is silence, 1 changes nothing.
  public mutating func scale(by gain: Float) {
    guard gain != 1 else { return }
    for index in samples.indices { samples[index] *= gain }
  }

  /// The samples as 16-bit numbers, as swresample converts them without dither: 32768 times the sample, rounded to
  /// the nearest (to even between two), clipped. Samples that were decoded from 16 bits are what they were.
  public var int16Samples: [Int16] {
    [Int16](unsafeUninitializedCapacity: samples.count) { buffer, count in
      samples.withUnsafeBufferPointer { samples in
        for index in samples.indices { buffer[index] = Self.int16(samples[index]) }
      }
      count = samples.count
    }
  }

  /// The MD5 of the samples as 16-bit numbers in little-endian order: what `ffmpeg -c:a pcm_s16le -f framemd5` gives
  /// for them. 32 hexadecimal digits.
  public func md5() throws(ReelError) -> String {
    let hash = try MD5Hash()
    let numbers = int16Samples.map(\.littleEndian)
    numbers.withUnsafeBytes { hash.update($0.baseAddress, count: $0.count) }
    return hash.digest()
  }

  // MARK: - Private

  @inline(__always)
  private static func int16(_ sample: Float) -> Int16 {
    let scaled = (sample * 32768).rounded(.toNearestOrEven)
    // What is not a number is silence: the comparisons of `max` and `min` would let it through.
    guard scaled == scaled else { return 0 }
    return Int16(max(-32768, min(32767, scaled)))
  }
}
