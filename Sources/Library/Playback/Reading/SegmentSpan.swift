internal import ReelCore
internal import ReelFFmpeg

/// A run of segments that can be demuxed as one container: one rung, one initialization, no discontinuity.
///
/// A span can rest: its demuxer is closed while its transfer waits. A new demuxer then continues after the last
/// packet without fetching a byte twice. It gets the boxes before the media of the fragment, zeros in place of
/// the media that was demuxed before, and then the following bytes.
///
/// Confined to its reader's turns.
final class SegmentSpan {
  /// A rung in a period.
  struct Key: Hashable {
    let period: Int
    let rung: String
  }

  let key: Key
  let track: RungTrack
  let firstIndex: Int
  let feed: SegmentFeed
  /// Nil while the span rests.
  private(set) var container: ContainerReader?
  var mapper: TimestampMapper
  var hasPackets = false
  private let format: ContainerFormat
  private let options: ContainerReader.Options
  private var resumption: SegmentResumption?
  /// The source of the container after a rest.
  private var resumed: ResumedSource?
  /// The offset of the container's first byte in the feed's stream. A rest changes it.
  private var shift: Int64 = 0

  init(
    key: Key, track: RungTrack, firstIndex: Int, feed: SegmentFeed, options: ContainerReader.Options,
    container: ContainerReader, mapper: TimestampMapper
  ) {
    self.key = key
    self.track = track
    self.firstIndex = firstIndex
    self.feed = feed
    self.options = options
    format = container.format
    self.container = container
    self.mapper = mapper
  }

  /// The offset in the feed's stream after the last packet.
  var position: Int64 { resumption?.offset ?? shift + (container?.position ?? 0) }

  /// Closes the demuxer if a new one can continue; returns how long it has waited for media. Otherwise does
  /// nothing and returns nil.
  func rest() -> Duration? {
    guard hasPackets, !feed.hasFailed, let container, let used = container.unread,
      let left = resumed == nil ? [] : resumed?.unreadTail,
      let resumption = feed.resumed(at: position, unread: used + left)
    else { return nil }
    self.resumption = resumption
    self.container = nil
    resumed = nil
    return container.sourceWait
  }

  /// Returns the container, opened again if the span rests. Throws the errors of opening and reading.
  func awakeContainer(dropsAudio: Bool, context: TrackContext) throws -> ContainerReader {
    if let container { return container }
    guard let resumption else {
      throw ReelError(.internalFault, "a span without a container does not rest", at: context.name)
    }
    let source = ResumedSource(
      head: resumption.head, zeroCount: resumption.skippedByteCount, unread: resumption.unread, base: feed)
    shift = resumption.offset - resumption.resumedOffset
    (options.keys as? ContainerKeys)?.setShift(shift)
    let made = try ContainerReader(
      source: source, format: format, options: options, name: context.name, logger: context.logger)
    made.setDropsAudio(dropsAudio)
    // These bytes are zeros.
    while made.position < resumption.resumedOffset {
      if case .end = try made.next() { break }
    }
    // Discard the demuxer's reports about the zeros.
    _ = made.takeLastError()
    self.resumption = nil
    resumed = source
    container = made
    return made
  }
}
