internal import ReelCore
internal import ReelPool

/// A figure of a walk, with its unit.
public enum WalkValue: Sendable, Hashable {
  /// The kind of a figure, which determines its units.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A duration.
    case time
    /// A number of bytes.
    case size
    /// A share, from 0 to 1.
    case share
    /// A number of things.
    case count
    /// Bits per second.
    case bitRate

    /// A phrase that explains how to write a value of this kind.
    public var form: String {
      switch self {
      case .time: "a time with a unit, as 150ms"
      case .size: "a size with a unit, as 10MB"
      case .share: "a share in percent, as 90%"
      case .count: "a number without a unit"
      case .bitRate: "a bit rate with a unit, as 2Mbit"
      }
    }
  }

  /// A duration.
  case time(Duration)
  /// A number of bytes.
  case size(Int64)
  /// A share from 0 to 1, written in percent.
  case share(Double)
  /// A plain number.
  case count(Int)
  /// Bits per second.
  case bitRate(Double)

  /// The kind of the figure.
  public var kind: Kind {
    switch self {
    case .time: .time
    case .size: .size
    case .share: .share
    case .count: .count
    case .bitRate: .bitRate
    }
  }

  /// The figure to the microsecond or byte, for when two figures would otherwise print alike.
  var exact: String {
    switch self {
    case .time(let duration): "\(duration.milliseconds.formatted(places: 3)) ms"
    case .size(let byteCount): "\(byteCount) B"
    case .share(let share): "\((share * 100).formatted(places: 6)) %"
    case .count(let count): String(count)
    case .bitRate(let bitRate): "\(bitRate.formatted(places: 3)) bit/s"
    }
  }

  /// The number to compare by, with others of its kind: nanoseconds, bytes, share, count or bits per second.
  var number: Double {
    switch self {
    case .time(let duration): duration / .nanoseconds(1)
    case .size(let byteCount): Double(byteCount)
    case .share(let share): share
    case .count(let count): Double(count)
    case .bitRate(let bitRate): bitRate
    }
  }
}

extension WalkValue: CustomStringConvertible {
  /// The rounded figure with its unit: `93.2 ms`, `3.5 MB`, `97.5 %`, `0`, `1.25 Mbit/s`.
  public var description: String {
    switch self {
    case .time(let duration): DurationText.readable(duration)
    case .size(let byteCount): ByteSize(byteCount: Int(clamping: byteCount)).description
    case .share(let share): "\((share * 100).formatted(places: 1)) %"
    case .count(let count): String(count)
    case .bitRate(let bitRate):
      bitRate >= 1e6
        ? "\((bitRate / 1e6).formatted(places: 2)) Mbit/s" : "\((bitRate / 1e3).formatted(places: 0)) kbit/s"
    }
  }
}
