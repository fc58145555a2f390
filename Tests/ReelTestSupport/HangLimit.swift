public import Testing

/// How long a test may take before it counts as hanging.
///
/// Tests wait for conditions for as long as the machine needs, so they also pass on a slow machine with other work.
/// This limit is far longer than any test takes and ends only tests that would never end. Tests must not have any
/// other limit on real time.
public enum HangLimit {
  public static let minutes = 20
  public static let duration = Duration.seconds(minutes * 60)
}

extension Trait where Self == TimeLimitTrait {
  /// Fails a test that hangs.
  public static var hangLimit: Self { .timeLimit(.minutes(HangLimit.minutes)) }
}
