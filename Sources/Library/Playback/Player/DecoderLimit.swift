/// Limits how many video decoders are open at once, among all users that share it.
package protocol DecoderLimit: Sendable {
  /// Returns a claim to one decoder, which is not taken yet. It ends when it is released.
  ///
  /// - Parameter wake: Called when a waiting decoder may be opened, or an open one must be closed. On any
  ///   thread, with no lock held.
  func makeClaim(_ wake: @escaping @Sendable () -> Void) -> any DecoderClaim
}

/// A claim to one open decoder.
package protocol DecoderClaim: AnyObject, Sendable {
  /// Requests permission to open a decoder, or to keep it open. False if it has to wait: `wake` is called
  /// later.
  func take() -> Bool
  /// True if the decoder must be closed, because another one is more important.
  var isRevoked: Bool { get }
  /// Sets whether the decoder is kept open only so that playback can start sooner.
  func setResting(_ isResting: Bool)
  /// Gives up the claim: the decoder is closed, or no longer waited for.
  func giveBack()
}
