/// What the decoders of one item have done.
struct DecodingAccount: Sendable, Hashable {
  /// Time spent in decoders.
  var duration = Duration.zero
  /// Of that, up to the first frame that is shown of the place where decoding began last; nil before there is one.
  var firstFrameDuration: Duration?
  /// Frames that came out of them.
  var frameCount = 0
  /// Of those, frames that were decoded once more, after the decoder had been closed, to get to the next one.
  var repeatedCount = 0
}
