/// What a service does with a current item that can't be played.
public enum FailureRule: String, Sendable, Hashable {
  /// It stays, and its failure is shown.
  case show
  /// The next item in the direction of travel comes; where there is none, the failed one stays.
  case skip
}
