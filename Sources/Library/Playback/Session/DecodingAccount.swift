internal import ReelFFmpeg

/// The work of one item's decoders.
struct DecodingAccount: Sendable, Hashable {
  /// The time spent in decoders.
  var duration = Duration.zero
  /// The part of it up to the first frame shown after the start or the last seek; nil before that frame.
  var firstFrameDuration: Duration?
  /// The number of frames that decoders returned.
  var frameCount = 0
  /// The number of those frames that were decoded again because the decoder had been closed.
  var repeatedCount = 0
  /// The open decoder's information about its stream; nil without one.
  var facts: DecoderFacts?
}
