public import ReelPlayback

/// Preloads the previous and the next item up to a number of bytes of media each, whatever their duration.
public struct BytesPreload: PreloadPolicy, Hashable {
  /// The bytes of compressed media that `count` counts in: 800,000.
  public static let unit = 800_000
  /// The longest duration to hold of media that is too small to reach the byte limit: 60 s.
  public static let maximumDuration = Duration.seconds(60)

  /// The limit of each neighbour in units of 800 kB, not negative. With 0 nothing is preloaded.
  public let count: Int

  /// The policy `bytes:COUNT`.
  ///
  /// - Parameter count: The limit in units of 800 kB. A negative number counts as 0.
  public init(_ count: Int) {
    self.count = max(count, 0)
  }

  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    guard abs(distance) == 1, count > 0 else { return .none }
    let (limit, overflow) = count.multipliedReportingOverflow(by: Self.unit)
    return PreloadTarget(
      stage: .buffered, bufferDuration: Self.maximumDuration, byteLimit: overflow ? .max : limit)
  }

  public var description: String { "bytes:\(count)" }
}
