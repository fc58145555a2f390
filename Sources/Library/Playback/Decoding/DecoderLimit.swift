/// Bounds how many video decoders are open at once, among all that share it.
package protocol DecoderLimit: Sendable {
  /// A claim to one decoder, which nobody has taken yet. It ends when it is released.
  ///
  /// - Parameter wake: Called when the decoder that was waited for may be opened, or has to be closed. On any thread,
  ///   with no lock held.
  func makeClaim(_ wake: @escaping @Sendable () -> Void) -> any DecoderClaim
}

/// A claim to one open decoder.
package protocol DecoderClaim: AnyObject, Sendable {
  /// Asks for permission to open a decoder, or to keep it open. False if it has to wait: `wake` is called later.
  func take() -> Bool
  /// True if the decoder has to be closed, because another one is more important.
  var isRevoked: Bool { get }
  /// Says whether the decoder is kept open only so that playback can start sooner.
  func setResting(_ isResting: Bool)
  /// The decoder is closed, or no longer waited for.
  func giveBack()
}
