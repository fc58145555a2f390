public import Testing

/// How long a test may take before it counts as hanging.
///
/// Tests wait for conditions, and what they wait for takes as long as the machine needs: a slow one, with other work
/// beside the tests, passes too. So this is far more than any test takes, and ends only what would never end. Nothing
/// else in the tests may be a limit on real time.
public enum HangLimit {
  public static let minutes = 20
  public static let duration = Duration.seconds(minutes * 60)
}

extension Trait where Self == TimeLimitTrait {
  /// Fails a test that hangs.
  public static var hangLimit: Self { .timeLimit(.minutes(HangLimit.minutes)) }
}
