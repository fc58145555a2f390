internal import ReelCore

/// What a demuxer of fragmented MP4 knows of the fragments that it has read, and a later demuxer of the same stream does not.
///
/// libavformat's mov remembers every sample as long as it is open, about 32 bytes each (libavformat/mov.c,
/// mov_read_trun). Therefore a stream that is read forward gets another demuxer after some thousand samples
/// (`ProtectedSource`), and after a rest of its reader. It must not change times and flags:
///
/// - A fragment that states no time begins where the one before it has ended.
/// - mov makes presentation times later by the largest negative composition offset so far (mov_update_dts_shift).
/// - It marks the samples of a fragment that are not later than the last sample before it.
/// - It marks the priming of AAC at the first packet.
package struct FragmentHistory: Sendable {
  private struct Track {
    /// The fragments that the current demuxer has read.
    var fragmentCount = 0
    /// The largest negative composition offset, without its sign: in those fragments, and in all.
    var shift: Int64 = 0
    var totalShift: Int64 = 0
    /// The decoding time of the last packet, and of the last one before the current fragment.
    var ticks: Int64?
    var previousTicks: Int64?
    /// The decoding time at which the last fragment has ended.
    var end: Int64 = 0
    /// True if an earlier demuxer has returned packets.
    var isContinued = false
  }

  /// The entries in the indexes of the current demuxer: the samples and the fragments that it has read.
  private(set) var entryCount = 0
  private var tracks: [Int: Track] = [:]
  /// True if the current demuxer reads a fragment again, of which the one before it has returned packets.
  private var isWithinFragment = false
  /// The durations of samples that fragments do not state, in ticks.
  private var defaultDurations: [Int: Int64] = [:]

  /// Records the `moov` box.
  mutating func recordMovie(_ bytes: [UInt8]) { defaultDurations = MovieFragment.defaultDurations(bytes) }

  /// Returns the contents of a `moof` box.
  func fragment(_ bytes: [UInt8]) -> MovieFragment {
    MovieFragment(bytes, defaultDurations: defaultDurations)
  }

  /// Records a fragment that the current demuxer gets.
  mutating func record(_ fragment: MovieFragment) {
    entryCount += 1
    for id in Set(fragment.parts.map(\.track)) {
      var track = tracks[id] ?? Track()
      if !isWithinFragment { track.previousTicks = track.ticks }
      track.fragmentCount += 1
      tracks[id] = track
    }
    for part in fragment.parts {
      var track = tracks[part.track] ?? Track()
      track.shift = max(track.shift, part.shift)
      track.totalShift = max(track.totalShift, part.shift)
      track.end = (part.start ?? track.end) &+ part.duration
      tracks[part.track] = track
      entryCount += part.sampleCount
    }
    isWithinFragment = false
  }

  /// Begins with another demuxer.
  ///
  /// - Parameter isWithinFragment: True if that reads a fragment again, of which packets were returned.
  mutating func begin(isWithinFragment: Bool) {
    entryCount = 0
    self.isWithinFragment = isWithinFragment
    tracks = tracks.mapValues {
      Track(
        totalShift: $0.totalShift, ticks: $0.ticks, previousTicks: $0.previousTicks, end: $0.end,
        isContinued: $0.ticks != nil)
    }
  }

  /// States the time of each track in a `moof` box that lacks it (ISO/IEC 14496-12 §8.8.12), because another demuxer
  /// does not know the end of the fragment before it.
  func stateTimes(of fragment: MovieFragment, in bytes: inout [UInt8]) {
    let missing = fragment.parts.filter { $0.start == nil }
    guard !missing.isEmpty else { return }
    var ends = tracks.mapValues(\.end)
    var boxes: [[UInt8]] = []
    for part in fragment.parts {
      let start = part.start ?? ends[part.track] ?? 0
      ends[part.track] = start &+ part.duration
      if part.start == nil {
        // Version 1 has a time of 64 bits.
        boxes.append([0, 0, 0, 20] + Array("tfdt".utf8) + [1, 0, 0, 0])
        boxes[boxes.count - 1] += stride(from: 56, through: 0, by: -8).map {
          UInt8(truncatingIfNeeded: start >> Int64($0))
        }
      }
    }
    let addedByteCount = 20 * missing.count
    for position in fragment.dataOffsetPositions { bytes.add(addedByteCount, at: position, byteCount: 4) }
    for part in missing { bytes.growBox(at: part.position, by: 20) }
    bytes.growBox(at: 0, by: addedByteCount)
    for (part, box) in zip(missing, boxes).reversed() { bytes.insert(contentsOf: box, at: part.headerEnd) }
  }

  /// Changes a packet to what the first demuxer would have returned.
  mutating func complete(_ packet: Packet, track id: Int) {
    guard var track = tracks[id] else { return }
    let ticks = packet.decodingTicks
    if track.isContinued { packet.keepAllSamples() }
    if let own = packet.presentationTicks, track.totalShift > track.shift {
      packet.setPresentationTicks(own &+ (track.totalShift - track.shift))
    }
    if track.fragmentCount == 1, let ticks, let last = track.previousTicks, ticks <= last { packet.discard() }
    track.ticks = ticks ?? track.ticks
    tracks[id] = track
  }
}

/// The samples of a movie fragment (ISO/IEC 14496-12 §8.8).
struct MovieFragment {
  /// A `traf` box.
  struct Part {
    let track: Int
    /// The offsets of the box, and of the end of its `tfhd` box.
    let position: Int
    let headerEnd: Int
    /// The decoding time of its first sample, if it states it.
    var start: Int64?
    /// The sum of the durations of its samples.
    var duration: Int64 = 0
    var sampleCount = 0
    /// The largest negative composition offset, without its sign.
    var shift: Int64 = 0
  }

  private(set) var parts: [Part] = []
  /// The offsets of numbers that count bytes from the beginning of the `moof` box.
  private(set) var dataOffsetPositions: [Int] = []

  /// True if the time of each track does not depend on earlier fragments.
  var hasTimes: Bool { parts.allSatisfy { $0.start != nil } }

  /// - Parameters:
  ///   - bytes: The whole `moof` box.
  ///   - defaultDurations: The durations of samples that the fragment does not state.
  init(_ bytes: [UInt8], defaultDurations: [Int: Int64]) {
    guard let movie = MP4Box.all(in: bytes, 0..<bytes.count).first else { return }
    // Without a base, the first samples count from the `moof` box, and others from the end of those before them.
    var isFirst = true
    for box in MP4Box.all(in: bytes, movie.body) where box.type == "traf" {
      let inner = MP4Box.all(in: bytes, box.body)
      guard let header = inner.first(where: { $0.type == "tfhd" }),
        let facts = Header(bytes[header.body], defaultDurations: defaultDurations)
      else { continue }
      var part = Part(track: facts.track, position: box.start, headerEnd: header.end)
      part.start = inner.last { $0.type == "tfdt" }.flatMap { Self.time(bytes[$0.body]) }
      let countsFromMovie = facts.isFromMovie || isFirst && !facts.hasBase
      for run in inner where run.type == "trun" {
        part.add(bytes[run.body], duration: facts.duration)
        if countsFromMovie, run.body.count >= 12, bytes[run.body].prefix(4).bigEndianNumber & 0x1 != 0 {
          dataOffsetPositions.append(run.body.lowerBound + 8)
        }
        isFirst = false
      }
      parts.append(part)
    }
  }

  /// Returns true if a `moov` box lists samples itself.
  static func listsSamples(_ movie: [UInt8]) -> Bool {
    // The count comes after version, flags, and a size.
    return boxes(["moov", "trak", "mdia", "minf", "stbl"], in: movie).contains {
      ($0.type == "stsz" || $0.type == "stz2") && movie[$0.body.dropFirst(8).prefix(4)].contains { $0 != 0 }
    }
  }

  /// Returns the durations of samples, by track, that a `moov` box states for its fragments (ISO/IEC 14496-12 §8.8.3).
  static func defaultDurations(_ movie: [UInt8]) -> [Int: Int64] {
    var durations: [Int: Int64] = [:]
    for box in boxes(["moov", "mvex"], in: movie) where box.type == "trex" && box.body.count >= 16 {
      let track = Int(movie[box.body.dropFirst(4).prefix(4)].bigEndianNumber)
      durations[track] = Int64(movie[box.body.dropFirst(12).prefix(4)].bigEndianNumber)
    }
    return durations
  }

  /// Returns the boxes inside others of these types.
  static func boxes(_ path: [FourCC], in bytes: [UInt8]) -> [MP4Box] {
    var boxes = MP4Box.all(in: bytes, 0..<bytes.count)
    for type in path { boxes = boxes.filter { $0.type == type }.flatMap { MP4Box.all(in: bytes, $0.body) } }
    return boxes
  }

  // MARK: - Private

  /// Returns the time in the body of a `tfdt` box (ISO/IEC 14496-12 §8.8.12).
  private static func time(_ body: ArraySlice<UInt8>) -> Int64? {
    let time = body.dropFirst(4).prefix(body.first == 0 ? 4 : 8)
    return time.count < 4 ? nil : Int64(truncatingIfNeeded: time.bigEndianNumber)
  }

  /// The body of a `tfhd` box (ISO/IEC 14496-12 §8.8.7).
  private struct Header {
    let track: Int
    /// True if it states where the bytes of its samples begin in the file.
    let hasBase: Bool
    /// True if they begin at the `moof` box.
    let isFromMovie: Bool
    /// The duration of samples that have none of their own.
    let duration: Int64

    init?(_ body: ArraySlice<UInt8>, defaultDurations: [Int: Int64]) {
      guard body.count >= 8 else { return nil }
      let flags = body.prefix(4).bigEndianNumber
      track = Int(body.dropFirst(4).prefix(4).bigEndianNumber)
      hasBase = flags & 0x1 != 0
      isFromMovie = !hasBase && flags & 0x2_0000 != 0
      let own = body.dropFirst(8 + (hasBase ? 8 : 0) + (flags & 0x2 != 0 ? 4 : 0)).prefix(4)
      duration =
        flags & 0x8 != 0 && own.count == 4 ? Int64(own.bigEndianNumber) : defaultDurations[track] ?? 0
    }
  }
}

extension MovieFragment.Part {
  /// Adds the body of a `trun` box (ISO/IEC 14496-12 §8.8.8).
  ///
  /// - Parameter default: The duration of samples for which it states none.
  fileprivate mutating func add(_ run: ArraySlice<UInt8>, duration default: Int64) {
    let flags = run.prefix(4).bigEndianNumber
    var count = Int64(run.dropFirst(4).prefix(4).bigEndianNumber)
    sampleCount += Int(count)
    if flags & 0x100 == 0 { duration &+= `default` &* count }
    guard flags & 0x900 != 0 else { return }
    // The data offset and the flags of the first sample; then up to four fields of each sample: the first is its
    // duration, and the last its composition offset.
    let head = 8 + 4 * (flags & 0x5).nonzeroBitCount
    let byteCount = 4 * (flags & 0xf00).nonzeroBitCount
    var rest = run.dropFirst(head)
    while count > 0, rest.count >= byteCount {
      count -= 1
      if flags & 0x100 != 0 { duration &+= Int64(rest.prefix(4).bigEndianNumber) }
      if flags & 0x800 != 0 {
        let offset = Int32(truncatingIfNeeded: rest.prefix(byteCount).suffix(4).bigEndianNumber)
        // As libavformat: negative in version 0 too, and limited.
        shift = max(shift, -Int64(max(offset, -Int32.max)))
      }
      rest = rest.dropFirst(byteCount)
    }
  }
}

extension [UInt8] {
  /// Adds to a big-endian number.
  fileprivate mutating func add(_ amount: Int, at position: Int, byteCount: Int) {
    let field = position..<position + byteCount
    let sum = self[field].bigEndianNumber &+ UInt64(truncatingIfNeeded: amount)
    for (index, shift) in stride(from: 8 * (byteCount - 1), through: 0, by: -8).enumerated() {
      self[position + index] = UInt8(truncatingIfNeeded: sum >> UInt64(shift))
    }
  }

  /// Adds to the size that a box states.
  fileprivate mutating func growBox(at position: Int, by byteCount: Int) {
    switch self[position..<position + 4].bigEndianNumber {
    case 0: break
    case 1: add(byteCount, at: position + 8, byteCount: 8)
    default: add(byteCount, at: position, byteCount: 4)
    }
  }
}
