internal import CFFmpeg
internal import CFFmpegShims

/// The sample rate and the channels of a `PCMBuffer`.
public struct PCMFormat: Sendable, Hashable {
  /// The number of samples per second and channel.
  public let sampleRate: Int
  /// The number of channels.
  public let channelCount: Int
  /// FFmpeg's name for the channel layout, such as `stereo` or `5.1(side)`; nil if the channel order is unknown.
  public let channelLayout: String?
  /// The channels as a bit mask, in the order of the samples from the lowest bit: the `dwChannelMask` of
  /// `WAVEFORMATEXTENSIBLE` and FFmpeg's `AV_CH_` bits. 0 if the order is different or unknown.
  public let channelMask: UInt64

  /// Creates a format with FFmpeg's default layout for the number of channels.
  public init(sampleRate: Int, channelCount: Int) {
    var layout = AVChannelLayout()
    av_channel_layout_default(&layout, Int32(clamping: channelCount))
    defer { av_channel_layout_uninit(&layout) }
    self.init(sampleRate: sampleRate, layout: &layout)
  }

  /// Creates the format of decoded samples.
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
