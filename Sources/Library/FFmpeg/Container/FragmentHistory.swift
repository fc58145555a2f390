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
  /// The values of samples that fragments do not state, by track.
  private var defaults: [Int: FragmentDefaults] = [:]

  /// Records the `moov` box.
  mutating func recordMovie(_ bytes: [UInt8]) { defaults = FragmentDefaults.all(inMovie: bytes[...]) }

  /// Returns the contents of a `moof` box.
  func fragment(_ bytes: [UInt8]) -> MovieFragment { MovieFragment(bytes, defaults: defaults) }

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
    var ends = tracks.mapValues(\.end)
    var missing: [(part: MovieFragment.Part, box: [UInt8])] = []
    for part in fragment.parts {
      let start = part.start ?? ends[part.track] ?? 0
      ends[part.track] = start &+ part.duration
      // Version 1 has a time of 64 bits.
      let box = UInt32(20).bigEndianBytes + Array("tfdt".utf8) + [1, 0, 0, 0] + start.bigEndianBytes
      if part.start == nil { missing.append((part, box)) }
    }
    let addedByteCount = 20 * missing.count
    for position in fragment.dataOffsetPositions { bytes.add(addedByteCount, at: position, byteCount: 4) }
    for (part, _) in missing { bytes.growBox(at: part.position, by: 20) }
    bytes.growBox(at: 0, by: addedByteCount)
    for (part, box) in missing.reversed() { bytes.insert(contentsOf: box, at: part.headerEnd) }
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

/// The times of the samples of a movie fragment (ISO/IEC 14496-12 §8.8).
struct MovieFragment {
  /// A `traf` box.
  struct Part {
    let track: Int
    /// The offsets of the box, and of the end of its `tfhd` box.
    let position: Int
    let headerEnd: Int
    /// The decoding time of its first sample, if it states it.
    let start: Int64?
    /// The sum of the durations of its samples.
    private(set) var duration: Int64 = 0
    private(set) var sampleCount = 0
    /// The largest negative composition offset, without its sign.
    private(set) var shift: Int64 = 0

    /// - Parameter defaults: Those of the track.
    fileprivate init(_ fragment: TrackFragment, defaults: FragmentDefaults?) {
      track = fragment.track
      position = fragment.box.start
      headerEnd = fragment.header.end
      start = fragment.start
      let usual = fragment.defaults.duration ?? defaults?.duration ?? 0
      for run in fragment.runs {
        sampleCount += run.count
        if !run.statesDurations { duration &+= usual &* Int64(run.count) }
        guard run.statesDurations || run.statesCompositionOffsets else { continue }
        for index in 0..<run.readableCount {
          let sample = run[index]
          duration &+= sample.duration ?? 0
          // As in libavformat, limited.
          shift = max(shift, -max(sample.compositionOffset ?? 0, Int64(-Int32.max)))
        }
      }
    }
  }

  private(set) var parts: [Part] = []
  /// The offsets of numbers that count bytes from the beginning of the `moof` box.
  private(set) var dataOffsetPositions: [Int] = []

  /// True if the time of each track does not depend on earlier fragments.
  var hasTimes: Bool { parts.allSatisfy { $0.start != nil } }

  /// - Parameters:
  ///   - bytes: The whole `moof` box.
  ///   - defaults: The values of samples that the fragment does not state, by track.
  init(_ bytes: [UInt8], defaults: [Int: FragmentDefaults]) {
    var isFirst = true
    for fragment in TrackFragment.all(in: bytes[...]) {
      parts.append(Part(fragment, defaults: defaults[fragment.track]))
      if fragment.base == .fragment || fragment.base == .previous && isFirst {
        dataOffsetPositions += fragment.runs.compactMap { $0.dataOffset?.index }
      }
      isFirst = isFirst && fragment.runs.isEmpty
    }
  }

  /// Returns true if a `moov` box lists samples itself.
  static func listsSamples(_ movie: [UInt8]) -> Bool {
    // The count comes after version, flags, and a size.
    return ["stsz", "stz2"].contains { type in
      MP4Box.all(["moov", "trak", "mdia", "minf", "stbl", type], in: movie[...]).contains {
        movie[$0.body.dropFirst(8).prefix(4)].contains { $0 != 0 }
      }
    }
  }
}

extension [UInt8] {
  /// Adds to a big-endian number.
  fileprivate mutating func add(_ amount: Int, at position: Int, byteCount: Int) {
    let field = position..<position + byteCount
    let sum = self[field].bigEndianNumber &+ UInt64(truncatingIfNeeded: amount)
    replaceSubrange(field, with: sum.bigEndianBytes.suffix(byteCount))
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
