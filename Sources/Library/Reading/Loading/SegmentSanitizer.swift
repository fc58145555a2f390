internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Checks the bytes of one segment on their way to the demuxer.
enum SegmentSanitizer {
  case fragments(FragmentSanitizer)
  case stream(StreamSanitizer)

  /// The property of `FragmentSanitizer`; nil for other segments.
  var keyFrameEnd: Int64? {
    switch self {
    case .fragments(let watch): watch.keyFrameEnd
    case .stream: nil
    }
  }

  /// The number of bytes to pass on until the first frame of the segment is complete; nil if that is not known
  /// yet. Exact for fragmented MP4. In MPEG-TS, the first frame of video ends where the next one begins.
  var firstFrameEnd: Int64? {
    switch self {
    case .fragments(let watch): watch.firstFrameEnd
    case .stream(let watch): watch.firstFrameEnd
    }
  }

  /// Returns the bytes to pass on. Throws `ReelError.badMedia` if the segment is unusable.
  mutating func pass(_ chunk: [UInt8]) throws(ReelError) -> [UInt8] {
    switch self {
    case .fragments(var watch):
      defer { self = .fragments(watch) }
      return try watch.pass(chunk)
    case .stream(var watch):
      defer { self = .stream(watch) }
      return try watch.pass(chunk)
    }
  }

  /// Ends the segment. Throws `ReelError.badMedia` if none of it can be used.
  mutating func finish() throws(ReelError) -> FragmentSanitizer.Ending {
    switch self {
    case .fragments(var watch):
      defer { self = .fragments(watch) }
      return try watch.finish()
    case .stream(var watch):
      defer { self = .stream(watch) }
      return try watch.finish()
    }
  }
}

/// Checks the beginning of a segment without boxes (MPEG-TS, packed audio), to detect an error page in its
/// place. A demuxer would skip it and find the next packet in the following segment.
///
/// Nothing is passed on until it is clear that it is media. If no format is recognized, MPEG-TS packets are
/// searched for further on, because the beginning may be damaged.
struct StreamSanitizer {
  /// The beginning, as far as it has arrived; nil once it has been checked.
  private var head: [UInt8]? = []

  /// The number of bytes to check.
  private var wantedCount = SourceSniffer.byteCount / 4
  /// If the segment is MPEG-TS, the size of its packets, and the bytes after the last whole one.
  private var packets: (size: Int, rest: [UInt8])?
  /// The number of bytes up to the last whole packet.
  private var followedCount: Int64 = 0
  /// The PID of the first packet of video.
  private var videoPID: Int?
  /// The end of the packet with which the second frame of video begins; nil if it has not come. 0 for packed audio.
  private(set) var firstFrameEnd: Int64?

  /// Returns the bytes to pass on. Throws `ReelError.badMedia` if they are not media.
  mutating func pass(_ chunk: [UInt8]) throws(ReelError) -> [UInt8] {
    guard var head = head.take() else {
      follow(chunk[...])
      return chunk
    }
    head.append(contentsOf: chunk)
    if head.count >= wantedCount {
      if try Self.isMedia(head, isAll: head.count >= SourceSniffer.largestByteCount) {
        if let run = TransportPacket.run(in: head) {
          packets = (run.size, [])
          followedCount = Int64(run.start)
          follow(head[run.start...])
        } else {
          firstFrameEnd = 0
        }
        return head
      }
      wantedCount = head.count * 2
    }
    self.head = head
    return []
  }

  /// Ends the segment; returns the remaining bytes. A segment of MPEG-TS that ends within a packet is damaged.
  ///
  /// Throws `ReelError.badMedia` if there was no media.
  mutating func finish() throws(ReelError) -> FragmentSanitizer.Ending {
    guard let head = head.take(), !head.isEmpty else {
      guard let packets, TransportPacket.isBegun(by: packets.rest, size: packets.size) else {
        return FragmentSanitizer.Ending()
      }
      return FragmentSanitizer.Ending(
        damage: ReelError(.badMedia, "the segment is cut off: it ends inside a packet"))
    }
    _ = try Self.isMedia(head, isAll: true)
    return FragmentSanitizer.Ending(bytes: head)
  }

  // MARK: - Private

  /// Keeps the bytes after the last whole packet.
  private mutating func follow(_ bytes: ArraySlice<UInt8>) {
    guard let (size, rest) = packets else { return }
    if firstFrameEnd == nil { findSecondFrame(in: rest + bytes, size: size) }
    let count = (rest.count + bytes.count) % size
    packets?.rest = count <= bytes.count ? Array(bytes.suffix(count)) : rest + bytes
  }

  /// - Parameter bytes: Those after the last whole packet.
  private mutating func findSecondFrame(in bytes: [UInt8], size: Int) {
    for start in stride(from: 0, through: bytes.count - size, by: size) {
      followedCount += Int64(size)
      let packet = bytes[start + (size == 192 ? 4 : 0)..<start + size]
      guard let pid = TransportPacket.beginningVideo(packet) else { continue }
      if videoPID == pid {
        firstFrameEnd = followedCount
        return
      }
      videoPID = videoPID ?? pid
    }
  }

  /// Returns false if more bytes are needed to tell.
  private static func isMedia(_ head: [UInt8], isAll: Bool) throws(ReelError) -> Bool {
    let (what, found): (String, ReelError.Found)
    switch SourceSniffer.kind(of: Array(head.prefix(SourceSniffer.byteCount))) {
    case .media: return true
    case .manifest: (what, found) = ("a manifest", .notMedia)
    case .other(let description, let kind):
      if !TextFormat.isText(head) {
        if TransportPacket.run(in: head) != nil { return true }
        if !isAll { return false }
      }
      (what, found) = (description, kind)
    }
    throw ReelError(found: found, "the segment is not media: \(what)")
  }
}

/// Checks the boxes of a fragmented MP4 segment (ISO/IEC 14496-12 §4.2), so that a damaged one does not
/// affect the following ones. A demuxer that reads a wrong length skips everything after it, and one that
/// reads half an index fails.
///
/// Media is passed on as it arrives, and padded with zeros if it is cut off. So are boxes of an unknown type, which a
/// demuxer skips. Boxes that describe media are passed on when they are complete, and those before the first fragment
/// together with it. Nothing is passed on of a segment that ends before its media begins, or of bytes that are not a
/// segment.
///
/// A box without a size extends to the end of the segment, which a demuxer does not see. If it is media, it is passed on
/// with its size, and otherwise left out. So are zeros after the media, with which files are padded.
struct FragmentSanitizer {
  /// Boxes that have not been passed on yet.
  private var held: [UInt8] = []
  /// The offset in `held` of the first incomplete box.
  private var wholeCount = 0
  /// The number of bytes left of the current box, if it is passed on as it arrives.
  private var rest: Int64 = 0
  /// The box without a size that the rest of the segment belongs to.
  private var tail: Tail?
  /// True if a part that can be demuxed has been passed on.
  private var hasFragment = false
  private var passedByteCount: Int64 = 0
  /// The offset in the segment of the end of its first sample, if that is a key frame, the fragment has no
  /// other track, and the fragment states it before the sample; nil if not, or not yet.
  private(set) var keyFrameEnd: Int64?
  /// The offset in the segment of the end of its first sample: with several tracks, of the largest one. The start
  /// of the media if the fragment does not state it; nil before that.
  private(set) var firstFrameEnd: Int64?

  private enum Tail {
    /// Media, held until its size is known.
    case media
    /// Media of more bytes than are held. Later segments are lost.
    case largeMedia
    case skipped
    /// Zeros after the media.
    case padding
  }

  /// The rest of a segment at its end.
  struct Ending {
    /// The bytes to pass on.
    var bytes: [UInt8] = []
    /// The damage of a segment that was passed on nevertheless.
    var damage: ReelError?
  }

  /// Boxes at the top level of a segment that must be complete to be useful.
  private static let headerTypes: Set<FourCC> = [
    "styp", "ftyp", "sidx", "ssix", "moof", "moov", "emsg", "prft", "mfra", "meta", "pdin",
  ]
  private static let streamedTypes: Set<FourCC> = ["mdat", "free", "skip", "uuid"]
  /// The type of a box that zeros form.
  private static let padding = FourCC(0)
  private static let noBox = ReelError(.badMedia, "the segment is not fragmented MP4")

  /// The maximum number of bytes to pad or to hold back.
  private static let byteLimit: Int64 = 16 << 20

  /// Returns the bytes to pass on. Throws `ReelError.badMedia` if they are not boxes of a segment.
  mutating func pass(_ chunk: [UInt8]) throws(ReelError) -> [UInt8] {
    if held.isEmpty { held = chunk } else { held.append(contentsOf: chunk) }
    var passedCount = 0
    while wholeCount < held.count, tail == nil {
      if rest > 0 {
        let step = min(rest, Int64(held.count - wholeCount))
        rest -= step
        wholeCount += Int(step)
        passedCount = wholeCount
        continue
      }
      guard let box = try box(held[wholeCount...]) else { break }
      if !Self.headerTypes.contains(box.type) {
        if box.type == "mdat" { hasFragment = true }
        guard let byteCount = box.byteCount else {
          tail = box.type == "mdat" ? .media : box.type == Self.padding ? .padding : .skipped
          if box.type == "mdat" { keyFrameEnd = nil }
          break
        }
        rest = byteCount
        continue
      }
      guard let byteCount = box.byteCount, byteCount <= Self.byteLimit else {
        throw ReelError(.badMedia, "a box of the segment has an impossible length")
      }
      guard Int64(held.count - wholeCount) >= byteCount else { break }
      if box.type == "moof" {
        if !hasFragment { findFirstSample(in: held[wholeCount...].prefix(Int(byteCount))) }
        hasFragment = true
      }
      wholeCount += Int(byteCount)
      if hasFragment { passedCount = wholeCount }
      guard Int64(wholeCount - passedCount) <= Self.byteLimit else {
        throw ReelError(.badMedia, "the segment has \(wholeCount) bytes of boxes, but no media")
      }
    }
    switch tail {
    case .media where held.count - wholeCount > Self.byteLimit:
      tail = .largeMedia
      (wholeCount, passedCount) = (held.count, held.count)
    case .largeMedia: (wholeCount, passedCount) = (held.count, held.count)
    case .padding where held[wholeCount...].contains { $0 != 0 }: throw Self.noBox
    case .skipped, .padding: held.removeSubrange(wholeCount...)
    case nil, .media: break
    }
    wholeCount -= passedCount
    passedByteCount += Int64(passedCount)
    if passedCount == held.count {
      defer { held = [] }
      return held
    }
    defer { held.removeFirst(passedCount) }
    return Array(held.prefix(passedCount))
  }

  /// Ends the segment.
  ///
  /// Throws `ReelError.badMedia` if none of it can be used, or if too much is missing to be padded.
  mutating func finish() throws(ReelError) -> Ending {
    defer { self = FragmentSanitizer() }
    switch tail {
    case .media:
      let size = UInt32(held.count - wholeCount)
      held.replaceSubrange(
        wholeCount..<wholeCount + 4, with: size.bigEndianBytes)
      return Ending(bytes: held)
    case .largeMedia: return Ending()
    case .skipped, .padding, nil: break
    }
    if rest > 0 {
      let error = ReelError(.badMedia, "the segment is cut off, \(rest) bytes before its end")
      guard rest <= Self.byteLimit else { throw error }
      return Ending(bytes: [UInt8](repeating: 0, count: Int(rest)), damage: error)
    }
    guard wholeCount < held.count || tail != nil && !hasFragment else { return Ending(bytes: held) }
    guard hasFragment else {
      throw ReelError(.badMedia, "the segment is cut off before its media begins")
    }
    return Ending(damage: ReelError(.badMedia, "the segment is cut off in a box that describes media"))
  }

  // MARK: - Private

  /// - Parameter fragment: The whole first `moof` box.
  private mutating func findFirstSample(in fragment: ArraySlice<UInt8>) {
    let start = passedByteCount + Int64(wholeCount)
    let samples = FirstSample.all(inFragment: fragment)
    if samples.count == 1, let sample = samples[0], sample.isKey { keyFrameEnd = start + sample.end }
    let largest = samples.compactMap(\.self).max { $0.byteCount < $1.byteCount }
    firstFrameEnd = start + (largest?.end ?? Int64(fragment.count))
  }

  private struct Box {
    let type: FourCC
    /// The size including the header; nil for a box that extends to the end of the segment.
    let byteCount: Int64?
  }

  /// Returns the box whose header is at the start of `bytes`; nil if more bytes are needed.
  private func box(_ bytes: ArraySlice<UInt8>) throws(ReelError) -> Box? {
    guard let type = MP4BoxHeader.type(in: bytes) else { return nil }
    let header = MP4BoxHeader(bytes)
    let isPadding = hasFragment && type == Self.padding && header?.byteCount == nil
    guard
      isPadding || Self.headerTypes.contains(type) || Self.streamedTypes.contains(type)
        || header?.isPlausible ?? type.isPrintable
    else {
      throw Self.noBox
    }
    guard let header else { return nil }
    guard let byteCount = header.byteCount else { return Box(type: type, byteCount: nil) }
    guard !header.isMalformed, let byteCount = Int64(exactly: byteCount) else {
      throw ReelError(.badMedia, "a box of the segment has an impossible length")
    }
    return Box(type: type, byteCount: byteCount)
  }
}

/// The first sample of a track in a movie fragment (ISO/IEC 14496-12 §8.8).
private struct FirstSample {
  let byteCount: Int
  /// An offset from the first byte of the `moof` box.
  let end: Int64
  let isKey: Bool

  /// Returns the first sample of each track; nil for one whose place the box alone does not determine.
  static func all(inFragment box: ArraySlice<UInt8>) -> [FirstSample?] {
    TrackFragment.all(in: box).map { FirstSample($0, inFragment: box) }
  }

  private init?(_ track: TrackFragment, inFragment box: ArraySlice<UInt8>) {
    // An offset in the file says nothing about the place in the box.
    guard [.fragment, .previous].contains(track.base), let run = track.runs.first, run.readableCount > 0,
      let offset = run.dataOffset?.value, let size = run[0].size ?? track.defaults.size,
      offset + Int64(size) > Int64(box.count)
    else { return nil }
    (byteCount, end) = (size, offset + Int64(size))
    // sample_is_non_sync_sample. The flags may also be in the initialization; of most segments, a key frame
    // comes first.
    isKey = (run[0].flags ?? track.defaults.flags).map { $0 & 0x10000 == 0 } ?? true
  }
}
