internal import ReelCore

/// The first sample of a movie fragment (ISO/IEC 14496-12 §8.8).
enum FirstSample {
  /// Returns the end of the first sample, as an offset from the first byte of a `moof` box. Nil if the sample
  /// is marked as not a key frame, if there are several tracks, or if the box alone does not determine it.
  static func keyFrameEnd(inFragment box: ArraySlice<UInt8>) -> Int64? {
    guard let moof = MP4Box.all(in: box).first, moof.type == "moof" else { return nil }
    let tracks = MP4Box.all(in: box[moof.body]).filter { $0.type == "traf" }
    guard tracks.count == 1, let track = tracks.first else { return nil }
    let boxes = MP4Box.all(in: box[track.body])
    guard let header = boxes.first(where: { $0.type == "tfhd" }),
      let run = boxes.first(where: { $0.type == "trun" }), let defaults = Defaults(box[header.body]),
      let sample = sample(inRun: box[run.body], defaults), sample.end > Int64(moof.end - moof.start)
    else { return nil }
    return sample.isKey ? sample.end : nil
  }

  // MARK: - Private

  /// The values of `tfhd` for all samples.
  private struct Defaults {
    var size: UInt64?
    var flags: UInt64?

    /// Nil if the offsets of samples do not count from the beginning of the `moof` box.
    init?(_ body: ArraySlice<UInt8>) {
      var fields = BigEndianReader(body)
      guard let present = fields.number(4), fields.number(4) != nil, present & 0x1 == 0 else { return nil }
      if present & 0x2 != 0, fields.number(4) == nil { return nil }
      if present & 0x8 != 0, fields.number(4) == nil { return nil }
      if present & 0x10 != 0 { size = fields.number(4) }
      if present & 0x20 != 0 { flags = fields.number(4) }
    }
  }

  private static func sample(
    inRun body: ArraySlice<UInt8>, _ defaults: Defaults
  ) -> (end: Int64, isKey: Bool)? {
    var fields = BigEndianReader(body)
    guard let present = fields.number(4), let count = fields.number(4), count > 0, present & 0x1 != 0,
      let offset = fields.number(4)
    else { return nil }
    var flags = defaults.flags
    if present & 0x4 != 0 { flags = fields.number(4) }
    if present & 0x100 != 0, fields.number(4) == nil { return nil }
    guard let size = present & 0x200 != 0 ? fields.number(4) : defaults.size else { return nil }
    // The flags of the first sample replace those of each sample.
    if present & 0x404 == 0x400 { flags = fields.number(4) }
    // sample_is_non_sync_sample. The flags may also be in the initialization; of most segments, a key frame
    // comes first.
    let isKey = flags.map { $0 & 0x10000 == 0 } ?? true
    return (Int64(Int32(truncatingIfNeeded: offset)) + Int64(size), isKey)
  }
}
