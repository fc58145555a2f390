/// The number of channels that an AudioChannelConfiguration names (ISO/IEC 23009-1 §5.8.5.4).
enum ChannelConfiguration {
  /// Nil if the scheme or its value is not known.
  static func channelCount(_ descriptor: MPD.Descriptor) -> Int? {
    guard let value = descriptor.value?.trimmed else { return nil }
    switch descriptor.scheme.lowercased() {
    case "urn:mpeg:dash:23003:3:audio_channel_configuration:2011":
      return value.integer.flatMap { (1...64).contains($0) ? Int($0) : nil }
    case "urn:mpeg:mpegb:cicp:channelconfiguration":
      return value.integer.flatMap { codePointChannels[$0] }
    case "tag:dolby.com,2014:dash:audio_channel_configuration:2011",
      "urn:dolby:dash:audio_channel_configuration:2011":
      return UInt16(value, radix: 16).map(dolbyChannels)
    case "urn:mpeg:dash:outputchannelpositionlist:2012":
      return value.split(separator: " ").count
    case "urn:dts:dash:audio_channel_configuration:2012":
      return value.integer.flatMap { (1...64).contains($0) ? Int($0) : nil }
    default:
      return nil
    }
  }

  // MARK: - Private

  /// ISO/IEC 23091-3 Table 1: ChannelConfiguration.
  private static let codePointChannels: [Int64: Int] = [
    1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 8, 8: 2, 9: 3, 10: 4, 11: 7, 12: 8, 13: 24, 14: 8, 15: 12, 16: 10,
    17: 12, 18: 14, 19: 12, 20: 14,
  ]

  /// ETSI TS 103 190-1 §G.3: a bit for each place, from the highest; some places have two channels.
  private static func dolbyChannels(_ mask: UInt16) -> Int {
    let pairs: UInt16 = 0b0000_0110_1110_1100
    return mask.nonzeroBitCount + (mask & pairs).nonzeroBitCount
  }
}
