/// A track of a movie fragment: a `traf` box (ISO/IEC 14496-12 §8.8.6).
///
/// The ranges of its boxes and the indexes of its fields are those of the bytes that it was read from.
package struct TrackFragment: Sendable {
  /// The place that the offsets of its samples count from.
  package enum Base: Sendable, Hashable {
    /// A position in the file.
    case file(UInt64)
    /// The `moof` box.
    case fragment
    /// The end of the samples before it in the fragment; the `moof` box if there are none.
    case previous
  }

  package let box: MP4Box
  package let boxes: [MP4Box]
  /// Its `tfhd` box.
  package let header: MP4Box
  package let track: Int
  package let base: Base
  /// The values of `tfhd`.
  package let defaults: FragmentDefaults
  /// The decoding time of the first sample (`tfdt`); nil if it states none.
  package let start: Int64?
  /// Its runs, up to the first one that can't be read.
  package let runs: [SampleRun]

  /// Returns the tracks of a whole `moof` box, without those whose header can't be read.
  package static func all(in fragment: ArraySlice<UInt8>) -> [TrackFragment] {
    MP4Box.all(["moof", "traf"], in: fragment).compactMap { try? TrackFragment($0, in: fragment) }
  }

  private init(_ box: MP4Box, in bytes: ArraySlice<UInt8>) throws(ReelError) {
    self.box = box
    boxes = MP4Box.all(in: bytes[box.body])
    guard let header = boxes.first(where: { $0.type == "tfhd" }) else {
      throw ReelError(.badMedia, "a track fragment has no header")
    }
    self.header = header
    var fields = BoxFields(bytes[header.body], of: "tfhd")
    let flags = try fields.versionAndFlags().flags
    track = try fields.integer(4)
    if flags & 0x1 != 0 {
      base = .file(try fields.number(8))
    } else {
      base = flags & 0x2_0000 != 0 ? .fragment : .previous
    }
    var defaults = FragmentDefaults()
    if flags & 0x2 != 0 { defaults.description = try fields.integer(4) }
    if flags & 0x8 != 0 { defaults.duration = Int64(try fields.integer(4)) }
    if flags & 0x10 != 0 { defaults.size = try fields.integer(4) }
    if flags & 0x20 != 0 { defaults.flags = try fields.integer(4) }
    self.defaults = defaults
    start = boxes.last { $0.type == "tfdt" }.flatMap { Self.time(bytes[$0.body]) }
    var runs: [SampleRun] = []
    for box in boxes where box.type == "trun" {
      guard let run = try? SampleRun(bytes[box.body]) else { break }
      runs.append(run)
    }
    self.runs = runs
  }

  /// §8.8.12.
  private static func time(_ body: ArraySlice<UInt8>) -> Int64? {
    let time = body.dropFirst(4).prefix(body.first == 0 ? 4 : 8)
    return time.count < 4 ? nil : Int64(truncatingIfNeeded: time.bigEndianNumber)
  }
}

/// The values of samples that do not state their own: from `tfhd` (ISO/IEC 14496-12 §8.8.7), and for a whole track from
/// `trex` (§8.8.3).
package struct FragmentDefaults: Sendable {
  /// The number of the sample description.
  package var description: Int?
  /// In ticks of the track.
  package var duration: Int64?
  package var size: Int?
  package var flags: Int?

  package init() {}

  /// Returns the values of `trex`, by track ID, of a whole `moov` box.
  package static func all(inMovie movie: ArraySlice<UInt8>) -> [Int: FragmentDefaults] {
    var found: [Int: FragmentDefaults] = [:]
    for box in MP4Box.all(["moov", "mvex", "trex"], in: movie) {
      var fields = BoxFields(movie[box.body].dropFirst(4), of: "trex")
      guard let track = try? fields.integer(4) else { continue }
      var defaults = FragmentDefaults()
      defaults.description = try? fields.integer(4)
      defaults.duration = (try? fields.integer(4)).map { Int64($0) }
      defaults.size = try? fields.integer(4)
      defaults.flags = try? fields.integer(4)
      found[track] = defaults
    }
    return found
  }
}

/// Samples that lie one after the other: a `trun` box (ISO/IEC 14496-12 §8.8.8).
package struct SampleRun: Sendable {
  /// What the run states of a sample.
  package struct Sample: Sendable, Hashable {
    package var duration: Int64?
    package var size: Int?
    package var flags: Int?
    /// Negative in version 0 too, as in libavformat.
    package var compositionOffset: Int64?
  }

  /// The number of samples that it states.
  package let count: Int
  /// The offset of its first sample, and the index of the field.
  package let dataOffset: (value: Int64, index: Int)?

  private let flags: Int
  private let firstFlags: Int?
  private let fields: ArraySlice<UInt8>
  private let sampleByteCount: Int

  fileprivate init(_ body: ArraySlice<UInt8>) throws(ReelError) {
    var fields = BoxFields(body, of: "trun")
    flags = try fields.versionAndFlags().flags
    count = try fields.integer(4)
    let index = fields.range.lowerBound
    dataOffset =
      flags & 0x1 != 0 ? (Int64(Int32(truncatingIfNeeded: try fields.integer(4))), index) : nil
    firstFlags = flags & 0x4 != 0 ? try fields.integer(4) : nil
    self.fields = body[fields.range]
    sampleByteCount = 4 * (flags & 0xf00).nonzeroBitCount
  }

  package var statesDurations: Bool { flags & 0x100 != 0 }
  package var statesCompositionOffsets: Bool { flags & 0x800 != 0 }

  /// The number of samples that can be read.
  package var readableCount: Int {
    sampleByteCount == 0 ? count : min(count, fields.count / sampleByteCount)
  }

  /// A sample that can be read.
  package subscript(index: Int) -> Sample {
    var reader = BigEndianReader(fields.dropFirst(index * sampleByteCount))
    func next(_ flag: Int) -> Int? { flags & flag != 0 ? reader.number(4).map { Int($0) } : nil }
    var sample = Sample()
    sample.duration = next(0x100).map { Int64($0) }
    sample.size = next(0x200)
    sample.flags = next(0x400)
    sample.compositionOffset = next(0x800).map { Int64(Int32(truncatingIfNeeded: $0)) }
    if index == 0, let firstFlags { sample.flags = firstFlags }
    return sample
  }

  package func compositionOffsetIndex(of sample: Int) -> Int {
    fields.startIndex + (sample + 1) * sampleByteCount - 4
  }
}
