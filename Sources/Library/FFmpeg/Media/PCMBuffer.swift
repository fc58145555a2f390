internal import CFFmpeg
internal import CFFmpegShims
public import ReelCore

/// Decoded audio: consecutive samples of all channels.
public struct PCMBuffer: Sendable {
  /// The presentation time of the first sample, in ticks of the stream's time base; nil if unknown.
  package var ticks: Int64?
  /// The sample rate and the channels.
  package let format: PCMFormat
  /// The samples, interleaved by channel: `frameCount * channelCount` numbers. The nominal range is -1 to 1; lossy
  /// codecs may exceed it.
  public private(set) var samples: [Float]

  /// Creates a buffer of interleaved samples. Drops samples beyond a multiple of the channel count.
  package init(ticks: Int64? = nil, format: PCMFormat, samples: [Float]) {
    self.ticks = ticks
    self.format = format
    self.samples = samples
    let surplus = format.channelCount > 0 ? samples.count % format.channelCount : samples.count
    if surplus > 0 { self.samples.removeLast(surplus) }
  }

  /// The number of samples per second and channel.
  public var sampleRate: Int { format.sampleRate }

  /// The number of channels.
  public var channelCount: Int { format.channelCount }

  /// FFmpeg's name for the channel layout, such as `stereo`; nil if the channel order is unknown.
  public var channelLayout: String? { format.channelLayout }

  /// The number of samples per channel.
  public var frameCount: Int { channelCount > 0 ? samples.count / channelCount : 0 }

  /// The playing time of the samples.
  public var duration: MediaTime {
    MediaTime(value: Int64(frameCount), timescale: Int32(clamping: sampleRate))
  }

  /// Returns the buffer without the first `count` samples of each channel. The result has no `ticks`.
  package func dropping(_ count: Int) -> PCMBuffer {
    PCMBuffer(format: format, samples: Array(samples.dropFirst(max(0, count) * channelCount)))
  }

  /// Returns the buffer without the samples of each channel after the first `count`.
  package func keeping(_ count: Int) -> PCMBuffer {
    PCMBuffer(ticks: ticks, format: format, samples: Array(samples.prefix(max(0, count) * channelCount)))
  }

  /// Multiplies every sample by `gain`: 0 gives silence, 1 changes nothing.
  package mutating func scale(by gain: Float) {
    guard gain != 1 else { return }
    for index in samples.indices { samples[index] *= gain }
  }

  /// The samples as 16-bit integers, converted as swresample does without dither: multiplied by 32768, rounded to the
  /// nearest integer (ties to even) and clipped. NaN becomes 0. Samples decoded from 16-bit PCM are restored exactly.
  package var int16Samples: [Int16] {
    [Int16](unsafeUninitializedCapacity: samples.count) { buffer, count in
      samples.withUnsafeBufferPointer { samples in
        for index in samples.indices { buffer[index] = Self.int16(samples[index]) }
      }
      count = samples.count
    }
  }

  /// Returns the MD5 of `int16Samples` in little-endian order as 32 hexadecimal digits, the value that
  /// `ffmpeg -c:a pcm_s16le -f framemd5` prints.
  ///
  /// - Throws: `ReelError` of kind `internalFault` if memory runs out.
  package func md5() throws(ReelError) -> String {
    let hash = try MD5Hash()
    let numbers = int16Samples.map(\.littleEndian)
    numbers.withUnsafeBytes { hash.update($0.baseAddress, count: $0.count) }
    return hash.digest()
  }

  // MARK: - Private

  @inline(__always)
  private static func int16(_ sample: Float) -> Int16 {
    let scaled = (sample * 32768).rounded(.toNearestOrEven)
    // NaN becomes silence: the comparisons of `max` and `min` would let it through.
    guard scaled == scaled else { return 0 }
    return Int16(max(-32768, min(32767, scaled)))
  }
}

/// The sample rate and the channels of a `PCMBuffer`.
package struct PCMFormat: Sendable, Hashable {
  /// The number of samples per second and channel.
  package let sampleRate: Int
  package let channelCount: Int
  /// FFmpeg's name for the channel layout, such as `stereo` or `5.1(side)`; nil if the channel order is unknown.
  package let channelLayout: String?
  /// The channels as a bit mask, in the order of the samples from the lowest bit: the `dwChannelMask` of
  /// `WAVEFORMATEXTENSIBLE` and FFmpeg's `AV_CH_` bits. 0 if the order is different or unknown.
  package let channelMask: UInt64

  /// Creates a format with FFmpeg's default layout for the number of channels.
  package init(sampleRate: Int, channelCount: Int) {
    var layout = AVChannelLayout()
    av_channel_layout_default(&layout, Int32(clamping: channelCount))
    defer { av_channel_layout_uninit(&layout) }
    self.init(sampleRate: sampleRate, layout: &layout)
  }

  init(sampleRate: Int, layout: inout AVChannelLayout) {
    self.sampleRate = sampleRate
    channelCount = Int(layout.nb_channels)
    channelLayout = layout.order == AV_CHANNEL_ORDER_UNSPEC ? nil : Self.describe(&layout)
    channelMask = reel_channel_mask(&layout)
  }

  /// Calls `body` with the layout as an FFmpeg structure.
  func withLayout<Result>(_ body: (inout AVChannelLayout) -> Result) -> Result {
    var layout = AVChannelLayout()
    defer { av_channel_layout_uninit(&layout) }
    guard let channelLayout, av_channel_layout_from_string(&layout, channelLayout) >= 0,
      layout.nb_channels == Int32(clamping: channelCount)
    else {
      av_channel_layout_uninit(&layout)
      av_channel_layout_default(&layout, Int32(clamping: channelCount))
      return body(&layout)
    }
    return body(&layout)
  }

  // MARK: - Private

  private static func describe(_ layout: inout AVChannelLayout) -> String? {
    var buffer = [CChar](repeating: 0, count: 256)
    guard av_channel_layout_describe(&layout, &buffer, buffer.count) > 0 else { return nil }
    return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
