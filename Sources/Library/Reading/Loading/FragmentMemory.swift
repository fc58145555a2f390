internal import ReelCore
internal import ReelFFmpeg

/// Observes the bytes of fragmented MP4, and keeps the boxes that a demuxer needs to continue in the middle:
/// the header of the file, and the boxes before the media of the last fragments (ISO/IEC 14496-12 §8.8).
///
/// A pure value. Offsets count from the first observed byte.
struct FragmentMemory: Sendable {
  /// The boxes before one fragment's media, from the end of the previous media.
  private struct Fragment {
    var head: [UInt8]
    var media: Range<Int64>
  }

  private var fragments: [Fragment] = []
  /// The file's header, up to the end of `moov`.
  private var opening: [UInt8] = []
  private var hasOpening = false
  /// The bytes outside of media since the end of the last media.
  private var head: [UInt8] = []
  /// The offset in `head` of the first incomplete box.
  private var boxStart = 0
  /// The number of bytes left of the current media.
  private var mediaRest: Int64 = 0
  private var offset: Int64 = 0
  /// True if the bytes are not a fragmented MP4 that can be resumed.
  private var isUnknown = false

  private static let headLimit = 256 << 10
  /// The number of fragments kept. A demuxer reads a little ahead of the packets that it returns.
  private static let fragmentLimit = 4

  /// Observes the next bytes.
  mutating func record(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes[...]
    while !rest.isEmpty, !isUnknown {
      if mediaRest > 0 {
        let count = Int(min(mediaRest, Int64(rest.count)))
        rest = rest.dropFirst(count)
        mediaRest -= Int64(count)
        offset += Int64(count)
        continue
      }
      // The number of bytes that the next box still needs; if its size is not known yet, those of its header.
      let count = min(rest.count, wantedCount - head.count)
      head.append(contentsOf: rest.prefix(count))
      rest = rest.dropFirst(count)
      offset += Int64(count)
      takeBoxes()
    }
  }

  /// Returns the bytes that a new demuxer needs before the bytes from `offset`: the header of the file and of
  /// the fragment, and the number of bytes of media in between, which were demuxed before. Nil if a demuxer
  /// can't continue there.
  func resumption(at offset: Int64) -> (head: [UInt8], skippedByteCount: Int64)? {
    guard !isUnknown, hasOpening,
      let fragment = fragments.last(where: { $0.media.lowerBound <= offset && offset <= $0.media.upperBound }
      ),
      Self.standsAlone(fragment.head)
    else { return nil }
    return (opening + fragment.head, offset - fragment.media.lowerBound)
  }

  // MARK: - Private

  /// The number of bytes of `head` needed to continue: to the end of the current box, or of its header.
  private var wantedCount: Int {
    guard let box = MP4BoxHeader(head[boxStart...]) else {
      return boxStart + MP4BoxHeader.headerByteCount(in: head[boxStart...])
    }
    return box.type == "mdat"
      ? boxStart + box.headerByteCount : boxStart + Int(clamping: box.byteCount ?? .max)
  }

  private mutating func takeBoxes() {
    guard let box = MP4BoxHeader(head[boxStart...]) else { return }
    guard !box.isMalformed, let byteCount = box.byteCount.flatMap({ Int64(exactly: $0) }),
      box.type == "mdat" || byteCount <= Self.headLimit, head.count <= Self.headLimit
    else { return giveUp() }
    if box.type == "mdat" {
      guard head.count - boxStart >= box.headerByteCount else { return }
      mediaRest = byteCount - Int64(box.headerByteCount)
      let (mediaEnd, isTooFar) = offset.addingReportingOverflow(mediaRest)
      guard !isTooFar else { return giveUp() }
      fragments.append(Fragment(head: head, media: offset..<mediaEnd))
      if fragments.count > Self.fragmentLimit { fragments.removeFirst() }
      head = []
      boxStart = 0
      return
    }
    guard Int64(head.count - boxStart) >= byteCount else { return }
    boxStart += Int(byteCount)
    if box.type == "moov" {
      opening = head
      hasOpening = true
      head = []
      boxStart = 0
    }
  }

  private mutating func giveUp() {
    self = FragmentMemory()
    isUnknown = true
  }

  /// Returns true if the fragment's samples and their times can be determined without earlier bytes.
  private static func standsAlone(_ head: [UInt8]) -> Bool {
    let fragments = MP4Box.all(in: head[...]).filter { $0.type == "moof" && !$0.isOpenEnded }
    guard fragments.count == 1, let fragment = fragments.first else { return false }
    let bytes = head[fragment.start..<fragment.end]
    let tracks = TrackFragment.all(in: bytes)
    // A header that can't be read says nothing, and an offset in the file would count from its beginning.
    return tracks.count == MP4Box.all(["moof", "traf"], in: bytes).count
      && tracks.allSatisfy { $0.start != nil && [.fragment, .previous].contains($0.base) }
  }
}

/// The bytes for a demuxer that continues in the middle of a stream: a header, zeros in place of the media
/// that was demuxed before, the bytes that the previous demuxer had read but not used, then the rest of the
/// stream.
final class ResumedSource: ByteSource {
  let byteCount: Int64? = nil

  private let base: any ByteSource
  private var head: ArraySlice<UInt8>
  private var zeroCount: Int64
  private var unread: ArraySlice<UInt8>

  init(head: [UInt8], zeroCount: Int64, unread: [UInt8], base: any ByteSource) {
    self.head = head[...]
    self.zeroCount = zeroCount
    self.unread = unread[...]
    self.base = base
  }

  /// The unread part of the previous demuxer's bytes; nil until everything before them was read.
  var unreadTail: [UInt8]? { head.isEmpty && zeroCount == 0 ? Array(unread) : nil }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    if !head.isEmpty { return Self.take(&head, into: buffer) }
    if zeroCount > 0 {
      let count = Int(min(zeroCount, Int64(buffer.count)))
      UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count)).initializeMemory(
        as: UInt8.self, repeating: 0)
      zeroCount -= Int64(count)
      return count
    }
    if !unread.isEmpty { return Self.take(&unread, into: buffer) }
    return try base.read(into: buffer)
  }

  // MARK: - Private

  private static func take(_ bytes: inout ArraySlice<UInt8>, into buffer: UnsafeMutableRawBufferPointer)
    -> Int
  {
    let taken = bytes.prefix(buffer.count)
    buffer.copyBytes(from: taken)
    bytes = bytes.dropFirst(taken.count)
    // Once all of them are used, free the array.
    if bytes.isEmpty { bytes = [] }
    return taken.count
  }
}
