internal import ReelCore

/// Whether the key of a stream is the right one, as far as its pictures tell: with another key, encrypted samples become
/// noise, of which a decoder makes damaged pictures or none.
struct KeyTrust {
  /// Of the first encrypted access unit; nil before there was one.
  private var firstTicks: Int64?
  private var hasDecrypted = false
  /// Units that the decoder had refused before it.
  private var rejectedCount = 0
  private var isTrusted = false
  /// What is wrong, once it is known.
  private(set) var fault: ReelError?

  static let advice = "the samples were decrypted: the key may be another one's"

  /// Notes an access unit that the decoder gets, which has refused so many before.
  mutating func note(_ packet: borrowing Packet, rejectedCount: Int) {
    guard packet.isDecrypted, !hasDecrypted else { return }
    hasDecrypted = true
    self.rejectedCount = rejectedCount
    firstTicks = packet.presentationTicks
  }

  /// Notes a frame, before which the decoder has refused so many units. The first frame that was encrypted decides.
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

  /// What to do where a stream gives no picture at all; nil where that has nothing to do with a key.
  var adviceWithoutPicture: String? { hasDecrypted && !isTrusted ? Self.advice : nil }
}
