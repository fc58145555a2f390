public import ReelCore

extension MediaPlaylist {
  /// EXT-X-SERVER-CONTROL (draft-pantos-hls-rfc8216bis §4.4.3.8): what the server offers to those that follow the
  /// playlist.
  public struct ServerControl: Sendable, Hashable {
    /// CAN-SKIP-UNTIL: segments that lie further from the end than this may be left out of an update.
    public var canSkipUntil: MediaTime?
    /// CAN-SKIP-DATERANGES: an update may leave out date ranges too.
    public var canSkipDateRanges: Bool
    /// HOLD-BACK: how far from the end playback is to begin, at the least.
    public var holdBack: MediaTime?
    /// PART-HOLD-BACK: the same for playback by parts.
    public var partHoldBack: MediaTime?
    /// CAN-BLOCK-RELOAD: a request may wait for what is to come.
    public var canBlockReload: Bool

    public init(
      canSkipUntil: MediaTime? = nil, canSkipDateRanges: Bool = false, holdBack: MediaTime? = nil,
      partHoldBack: MediaTime? = nil, canBlockReload: Bool = false
    ) {
      self.canSkipUntil = canSkipUntil
      self.canSkipDateRanges = canSkipDateRanges
      self.holdBack = holdBack
      self.partHoldBack = partHoldBack
      self.canBlockReload = canBlockReload
    }

    init(_ reader: inout AttributeReader) {
      canSkipUntil = reader.length("CAN-SKIP-UNTIL")
      canSkipDateRanges = reader.attributes.flag("CAN-SKIP-DATERANGES")
      holdBack = reader.length("HOLD-BACK")
      partHoldBack = reader.length("PART-HOLD-BACK")
      canBlockReload = reader.attributes.flag("CAN-BLOCK-RELOAD")
    }
  }
}
