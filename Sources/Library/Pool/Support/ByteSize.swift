public import ReelCore

/// A number of bytes that reads and prints as text: `64MB`, `1.5GiB`, `800kB`, or a plain number of bytes.
///
/// The text is a decimal number and an optional unit in any letter case: `B`, `kB`, `MB`, `GB` (powers of 1,000),
/// `KiB`, `MiB` or `GiB` (powers of 1,024). The `B` can be left out, as in `64M`. White space is allowed around the text and before the unit.
public struct ByteSize: Sendable, Hashable {
  /// The number of bytes.
  public let byteCount: Int

  /// A size of this many bytes.
  public init(byteCount: Int) {
    self.byteCount = byteCount
  }

  /// Parses a size such as `64MB`.
  ///
  /// - Throws: `ReelError` of kind `usage` if `text` is no size, or a size above 1 PB.
  public init(parsing text: String) throws(ReelError) {
    guard let (value, unit) = Quantity.split(text),
      let size = Self.size(of: unit.lowercased())
    else {
      throw ReelError(.usage, "\"\(text)\" is not a size", advice: "write 64M, 64MB, 1.5GiB or 800000")
    }
    let bytes = (value * size).rounded()
    guard bytes <= 1e15 else { throw ReelError(.usage, "the size \"\(text)\" is above 1 PB") }
    byteCount = Int(clamping: bytes)
  }

  /// Units and their bytes, the smallest first.
  static let units: [(name: String, size: Double)] = [
    ("B", 1), ("kB", 1e3), ("KiB", 1024), ("MB", 1e6), ("MiB", 1_048_576), ("GB", 1e9),
    ("GiB", 1_073_741_824),
  ]

  private static func size(of unit: String) -> Double? {
    if unit.isEmpty { return 1 }
    return units.first { $0.name.lowercased() == unit || $0.name.lowercased() == unit + "b" }?.size
  }

  /// The size in the largest decimal unit that gives it exactly, without a space: `64MB`.
  var compact: String {
    for (unit, size) in [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)]
    where byteCount >= size && byteCount % size == 0 {
      return "\(byteCount / size)\(unit)"
    }
    return "\(byteCount)B"
  }
}

extension ByteSize: CustomStringConvertible {
  /// With one decimal in the largest decimal unit, `3.5 MB`; whole bytes below 1 kB.
  public var description: String {
    for (unit, size) in [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)] where Double(byteCount) >= size * 0.99995 {
      return "\((Double(byteCount) / size).formatted(places: 1)) \(unit)"
    }
    return "\(byteCount) B"
  }
}
