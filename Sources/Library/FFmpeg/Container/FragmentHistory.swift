internal import ReelCore

/// What a demuxer of fragmented MP4 knows of the fragments that it has read, and a later demuxer of the same stream does not.
///
/// libavformat's mov remembers every sample as long as it is open, about 32 bytes each (libavformat/mov.c,
/// mov_read_trun). Therefore a stream that is read forward gets another demuxer after some thousand samples
/// (`ProtectedSource`), which must not change times and flags:
///
/// - mov makes presentation times later by the largest negative composition offset so far (mov_update_dts_shift).
/// - It marks the samples of a fragment that are not later than the last sample before it.
/// - It marks the priming of AAC at the first packet.
struct FragmentHistory {
  private struct Track {
    /// The fragments that the current demuxer has read.
    var fragmentCount = 0
    /// The largest negative composition offset, without its sign: in those fragments, and in all.
    var shift: Int64 = 0
    var totalShift: Int64 = 0
    /// The decoding time of the last packet, and that of the previous demuxer's.
    var ticks: Int64?
    var previousTicks: Int64?
  }

  /// The entries in the indexes of the current demuxer: the samples and the fragments that it has read.
  private(set) var entryCount = 0
  private var tracks: [Int: Track] = [:]
  private var isContinued = false

  /// Records a fragment that the current demuxer gets.
  mutating func record(_ fragment: MovieFragment) {
    entryCount += 1
    for (id, part) in fragment.tracks {
      var track = tracks[id] ?? Track()
      track.fragmentCount += 1
      track.shift = max(track.shift, part.shift)
      track.totalShift = max(track.totalShift, part.shift)
      tracks[id] = track
      entryCount += part.sampleCount
    }
  }

  /// Begins with another demuxer.
  mutating func begin() {
    entryCount = 0
    isContinued = true
    tracks = tracks.mapValues {
      Track(totalShift: $0.totalShift, ticks: $0.ticks, previousTicks: $0.ticks)
    }
  }

  /// Changes a packet to what the first demuxer would have returned.
  mutating func complete(_ packet: Packet, track id: Int) {
    guard var track = tracks[id] else { return }
    let ticks = packet.decodingTicks
    if isContinued {
      packet.keepAllSamples()
      if let own = packet.presentationTicks, track.totalShift > track.shift {
        packet.setPresentationTicks(own &+ (track.totalShift - track.shift))
      }
      if track.fragmentCount == 1, let ticks, let last = track.previousTicks, ticks <= last {
        packet.discard()
      }
    }
    track.ticks = ticks ?? track.ticks
    tracks[id] = track
  }
}

/// The samples of a movie fragment (ISO/IEC 14496-12 §8.8).
struct MovieFragment {
  struct Track {
    var sampleCount = 0
    /// The largest negative composition offset, without its sign.
    var shift: Int64 = 0
  }

  private(set) var tracks: [Int: Track] = [:]
  /// True if the time of each track does not depend on earlier fragments.
  private(set) var hasTimes = true

  /// - Parameter bytes: The whole `moof` box.
  init(_ bytes: [UInt8]) {
    guard let movie = MP4Box.all(in: bytes, 0..<bytes.count).first else { return }
    for box in MP4Box.all(in: bytes, movie.body) where box.type == "traf" {
      let inner = MP4Box.all(in: bytes, box.body)
      if !inner.contains(where: { $0.type == "tfdt" }) { hasTimes = false }
      guard let header = inner.first(where: { $0.type == "tfhd" }), header.body.count >= 8 else { continue }
      let id = Int(bytes[header.body.dropFirst(4).prefix(4)].bigEndianNumber)
      for run in inner where run.type == "trun" { tracks[id, default: Track()].add(bytes[run.body]) }
    }
  }

  /// Returns true if a `moov` box lists samples itself.
  static func listsSamples(_ movie: [UInt8]) -> Bool {
    var boxes = MP4Box.all(in: movie, 0..<movie.count)
    for type: FourCC in ["moov", "trak", "mdia", "minf", "stbl"] {
      boxes = boxes.filter { $0.type == type }.flatMap { MP4Box.all(in: movie, $0.body) }
    }
    // The count comes after version, flags, and a size.
    return boxes.contains {
      ($0.type == "stsz" || $0.type == "stz2") && movie[$0.body.dropFirst(8).prefix(4)].contains { $0 != 0 }
    }
  }
}

extension MovieFragment.Track {
  /// Adds the body of a `trun` box (ISO/IEC 14496-12 §8.8.8).
  fileprivate mutating func add(_ run: ArraySlice<UInt8>) {
    let flags = run.prefix(4).bigEndianNumber
    sampleCount += Int(run.dropFirst(4).prefix(4).bigEndianNumber)
    guard flags & 0x800 != 0 else { return }
    // The data offset and the flags of the first sample; then up to three fields before the composition offset.
    let head = 8 + 4 * (flags & 0x5).nonzeroBitCount
    let byteCount = 4 * (flags & 0xf00).nonzeroBitCount
    var rest = run.dropFirst(head)
    while rest.count >= byteCount {
      let offset = Int32(truncatingIfNeeded: rest.prefix(byteCount).suffix(4).bigEndianNumber)
      // As libavformat: negative in version 0 too, and limited.
      shift = max(shift, -Int64(max(offset, -Int32.max)))
      rest = rest.dropFirst(byteCount)
    }
  }
}
