/// Tracks frames that differ from the encoded ones: frames that were concealed or missed a reference, and
/// those predicted from them, as far as this is known.
///
/// A frame is identified by the number of its packet, in decoding order. Damage to a reference extends to all
/// frames decoded after it, until a random access point is shown. Some of these frames may in fact be intact,
/// but no damaged frame counts as intact.
///
/// A frame was concealed or missed a reference if
/// - FFmpeg flags it: `AV_FRAME_FLAG_CORRUPT`, or `decode_error_flags`,
/// - FFmpeg has only logged it (`LogScope`): missing references in HEVC, and gaps in H.264's frame numbers, which
///   FFmpeg fills in with a line at debug level. A gap is not damage if the SPS allows it (`SequenceParameterSet`),
/// - its hash in an HEVC stream does not match (`AV_EF_CRCCHECK`), which FFmpeg logs too.
///
/// Damage that decodes without an error is not detected, such as a truncated last slice of HEVC. FFmpeg 7 removed
/// `reordered_opaque`, which ties a log line to a packet: from that version on, only FFmpeg's flags count.
struct DamageTracker {
  private var concealed: Set<Int64> = []
  private var gaps: Set<Int64> = []
  private var nonReferences: Set<Int64> = []
  /// The damaged references after which no clean start has come yet.
  private var lasting: Set<Int64> = []

  /// Records that decoding of a frame caused an error, or (`isGap`) that the frames before it are missing.
  mutating func record(_ frame: Int64, isGap: Bool) {
    if isGap { gaps.insert(frame) } else { concealed.insert(frame) }
    if !nonReferences.contains(frame) || isGap { lasting.insert(frame) }
  }

  /// Records that no other frame is predicted from this one. Call it before the frame is decoded.
  mutating func recordNonReference(_ frame: Int64) { nonReferences.insert(frame) }

  /// Returns whether a frame that the decoder returns now is damaged; `isFlagged` is the decoder's own mark
  /// on the frame.
  mutating func settle(_ frame: Int64, isKey: Bool, isFlagged: Bool) -> Bool {
    let isNonReference = nonReferences.remove(frame) != nil
    let isConcealed = concealed.remove(frame) != nil || isFlagged
    let followsGap = gaps.remove(frame) != nil
    if isConcealed, !isNonReference { lasting.insert(frame) }
    if isKey {
      // It depends on no earlier frame, so missing ones do not matter.
      lasting = lasting.filter { $0 > frame || $0 == frame && isConcealed }
      return isConcealed
    }
    return isConcealed || followsGap || lasting.contains { $0 <= frame }
  }

  /// Resets the tracker, because the decoder starts again.
  mutating func reset() { self = DamageTracker() }
}
