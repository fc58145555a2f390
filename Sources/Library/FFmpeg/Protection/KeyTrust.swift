internal import ReelCore

/// Judges by the decoded frames whether the key of a stream is right. With a wrong key, samples become noise, from
/// which a decoder makes damaged frames or none.
struct KeyTrust {
  /// The presentation time of the first encrypted access unit; nil before it.
  private var firstTicks: Int64?
  private var hasDecrypted = false
  /// The number of units that the decoder had rejected before that one.
  private var rejectedCount = 0
  private var isTrusted = false
  /// The error, once the key turns out to be wrong or the media damaged.
  private(set) var fault: ReelError?

  static let advice = "the samples were decrypted, but the key may be wrong"

  /// Records an access unit that is sent to the decoder, and how many units the decoder has rejected so far.
  mutating func note(_ packet: borrowing Packet, rejectedCount: Int) {
    guard packet.isDecrypted, !hasDecrypted else { return }
    hasDecrypted = true
    self.rejectedCount = rejectedCount
    firstTicks = packet.presentationTicks
  }

  /// Records a decoded frame, and how many units the decoder has rejected so far. The first frame that was encrypted
  /// decides.
  mutating func note(_ frame: borrowing Frame, rejectedCount: Int) {
    guard hasDecrypted, !isTrusted, fault == nil else { return }
    if let firstTicks, let ticks = frame.presentationTicks, ticks < firstTicks { return }
    if frame.isDamaged || rejectedCount > self.rejectedCount {
      fault = ReelError(
        .badMedia, "the first encrypted frame can't be decoded without errors", advice: Self.advice)
    } else {
      isTrusted = true
    }
  }

  /// Advice if a stream gives no frame at all; nil if that has nothing to do with a key.
  var adviceWithoutFrame: String? { hasDecrypted && !isTrusted ? Self.advice : nil }
}
