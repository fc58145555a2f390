internal import CFFmpeg
internal import CFFmpegShims

/// What the samples of a `PCMBuffer` are: how many a second, of which channels.
public struct PCMFormat: Sendable, Hashable {
  /// Samples a second of each channel.
  public let sampleRate: Int
  public let channelCount: Int
  /// FFmpeg's name of the channel layout, as `stereo` or `5.1(side)`; nil where the order of the channels is not known.
  public let channelLayout: String?
  /// The channels, as the `dwChannelMask` of `WAVEFORMATEXTENSIBLE` and FFmpeg's `AV_CH_` bits name them, lowest bit
  /// first; 0 where the order is another, or not known.
  public let channelMask: UInt64

  /// A format with the layout that FFmpeg takes for so many channels.
  public init(sampleRate: Int, channelCount: Int) {
    var layout = AVChannelLayout()
    av_channel_layout_default(&layout, Int32(clamping: channelCount))
    defer { av_channel_layout_uninit(&layout) }
    self.init(sampleRate: sampleRate, layout: &layout)
  }

  /// The format of decoded samples.
  init(sampleRate: Int, layout: inout AVChannelLayout) {
    self.sampleRate = sampleRate
    channelCount = Int(layout.nb_channels)
    channelLayout = layout.order == AV_CHANNEL_ORDER_UNSPEC ? nil : Self.describe(&layout)
    channelMask = reel_channel_mask(&layout)
  }

  /// Calls `body` with the layout as FFmpeg takes it.
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
