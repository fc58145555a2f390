public import ReelCore

/// A number of bytes, as a user writes it: `64MB`, `1.5GiB`, `800kB`, or a plain number of bytes.
///
/// The grammar is a decimal number, then optionally a unit in any case of letters: `B`, `kB`, `MB`, `GB` (1,000 to the
/// step), `KiB`, `MiB`, `GiB` (1,024 to the step). White space is allowed around the whole and before the unit.
public struct ByteSize: Sendable, Hashable {
  public let byteCount: Int

  public init(byteCount: Int) {
    self.byteCount = byteCount
  }

  /// Reads `text` by the grammar above.
  ///
  /// - Throws: `ReelError` of kind `usage` where it is no size, or one above 1 PB.
  public init(parsing text: String) throws(ReelError) {
    guard let (value, unit) = Quantity.split(text),
      let size = unit.isEmpty
        ? 1 : Self.units.first(where: { $0.name.lowercased() == unit.lowercased() })?.size
    else {
      throw ReelError(.usage, "\"\(text)\" is no size", advice: "write it as 64MB, 1.5GiB or 800000")
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
