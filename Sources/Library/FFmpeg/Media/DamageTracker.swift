/// Tracks which frames differ from what was encoded: frames that were concealed or missed a reference, and
/// those predicted from them, as far as this is known.
///
/// Frames are named by the number of their packet, in decoding order. Damage to a reference lasts for all that is
/// decoded after it, until a frame that decoding can start at is shown: a later frame may in truth be whole, but
/// none is called sound that is not.
///
/// A frame was concealed or missed a reference if
/// - FFmpeg flags its frame: `AV_FRAME_FLAG_CORRUPT`, or `decode_error_flags`,
/// - FFmpeg has only logged it (`LogScope`): missing references in HEVC, and gaps in H.264's frame numbers, which
///   FFmpeg fills in with a line at debug level. A gap is no damage if the SPS allows it (`SequenceParameterSet`),
/// - the hash that an HEVC stream carries for it does not match (`AV_EF_CRCCHECK`), which FFmpeg logs too.
///
/// Damage that decodes without an error is not detected, such as a truncated last slice of HEVC. FFmpeg 7 removed
/// `reordered_opaque`, which ties a log line to a packet: from that version on, only FFmpeg's flags count.
struct DamageTracker {
  private var concealed: Set<Int64> = []
  private var gaps: Set<Int64> = []
  private var nonReferences: Set<Int64> = []
  /// Damaged references that no clean start has ended yet.
  private var lasting: Set<Int64> = []

  /// Decoding of a frame met an error, or (`isGap`) the frames before it are missing.
  mutating func record(_ frame: Int64, isGap: Bool) {
    if isGap { gaps.insert(frame) } else { concealed.insert(frame) }
    if !nonReferences.contains(frame) || isGap { lasting.insert(frame) }
  }

  /// No other frame is predicted from this one. To be said before it is decoded.
  mutating func recordNonReference(_ frame: Int64) { nonReferences.insert(frame) }

  /// Whether a frame that the decoder gives now is damaged; `isFlagged` is what the decoder says on the frame.
  mutating func settle(_ frame: Int64, isKey: Bool, isFlagged: Bool) -> Bool {
    let isNonReference = nonReferences.remove(frame) != nil
    let isConcealed = concealed.remove(frame) != nil || isFlagged
    let followsGap = gaps.remove(frame) != nil
    if isConcealed, !isNonReference { lasting.insert(frame) }
    if isKey {
      // It depends on no earlier frame, whatever is missing there.
      lasting = lasting.filter { $0 > frame || $0 == frame && isConcealed }
      return isConcealed
    }
    return isConcealed || followsGap || lasting.contains { $0 <= frame }
  }

  /// Resets the tracker, because the decoder starts again.
  mutating func reset() { self = DamageTracker() }
}
