/// What a ``PlayerService`` does when the current item can't be played.
public enum FailureRule: String, Sendable, Hashable {
  /// The item stays current.
  case show
  /// The service shows the next item in the direction of travel. At an end of the feed, the failed item stays.
  case skip
}
