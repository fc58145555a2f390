/// What the decoders of one item have done.
struct DecodingAccount: Sendable, Hashable {
  /// Time spent in decoders.
  var duration = Duration.zero
  /// Of that, up to the first picture that is shown of the place where decoding began last; nil before there is one.
  var firstPictureDuration: Duration?
  /// Pictures that came out of them.
  var pictureCount = 0
  /// Of those, pictures that were decoded once more, after the decoder had been closed, to get to the next one.
  var repeatedCount = 0
}
