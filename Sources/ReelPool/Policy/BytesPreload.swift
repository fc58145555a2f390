public import ReelPlayback

/// The item before the current one and the one after it, with so many bytes of media each, whatever that lasts.
public struct BytesPreload: PreloadPolicy, Hashable {
  /// Bytes of compressed media for each count: 800,000.
  public static let unit = 800_000
  /// The longest duration that is held, where media is so small that its bytes never reach the limit.
  public static let maximumDuration = Duration.seconds(60)

  /// How many times 800 kB a neighbour gets; not negative.
  public let count: Int

  /// A negative `count` counts as 0.
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
