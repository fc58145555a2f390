package import ReelCore

/// A rate of bits, as a user writes it: `3Mbit`, `800k`, `2.5Mbit`, or a plain number of bits a second.
///
/// The grammar is a decimal number, then optionally a decimal prefix (`k`, `M`, `G`; 1,000 to the step, in
/// either case), then optionally a unit (`bit`, `bits`, `bit/s` or `bps` in any case, `b` or `b/s`; `B`
/// stands for bytes and is refused). White space is allowed around the whole and between number and unit.
package struct BitRate: Sendable, Hashable {
  /// Bits a second; at least 1.
  package let bitsPerSecond: Int64

  /// - Throws: `ReelError` of kind `usage` for a rate below 1 bit/s.
  package init(bitsPerSecond: Int64) throws(ReelError) {
    guard bitsPerSecond >= 1 else {
      throw ReelError(.usage, "a rate must be at least 1 bit/s")
    }
    self.bitsPerSecond = bitsPerSecond
  }

  /// Reads `text` by the grammar above.
  ///
  /// - Throws: `ReelError` of kind `usage` if `text` is not a rate, or the rate is below 1 bit/s or above
  ///   10,000 Gbit/s.
  package init(parsing text: String) throws(ReelError) {
    let trimmed = text.trimmingSpaces()
    let number = trimmed.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    guard let value = Double(number) else { throw Self.malformed(text) }
    let factor = try Self.factor(of: trimmed[number.endIndex...].trimmingSpaces(), in: text)
    let bits = (value * factor).rounded()
    guard bits >= 1, bits <= 1e13 else {
      throw ReelError(.usage, "the rate \"\(text)\" is not between 1 bit/s and 10,000 Gbit/s")
    }
    bitsPerSecond = Int64(bits)
  }

  // MARK: - Private

  private static func factor(of unit: Substring, in text: String) throws(ReelError) -> Double {
    var rest = unit.lowercased()[...]
    var factor = 1.0
    switch rest.first {
    case "k": factor = 1e3
    case "m": factor = 1e6
    case "g": factor = 1e9
    default: break
    }
    if factor > 1 { rest.removeFirst() }
    let isByteUnit = unit.dropFirst(factor > 1 ? 1 : 0).first == "B" && (rest == "b" || rest == "b/s")
    guard !isByteUnit else {
      throw ReelError(.usage, "\"\(text)\" is in bytes", advice: "write bits per second, as 3Mbit or 800k")
    }
    guard ["", "b", "b/s", "bit", "bits", "bit/s", "bits/s", "bps"].contains(rest) else {
      throw malformed(text)
    }
    return factor
  }

  private static func malformed(_ text: String) -> ReelError {
    ReelError(.usage, "\"\(text)\" is not a bit rate", advice: "write 3Mbit, 800k or 2500000")
  }
}

extension BitRate: CustomStringConvertible {
  /// The rate in its largest whole or decimal unit, `2.5 Mbit/s`.
  package var description: String {
    for (unit, size) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] where Double(bitsPerSecond) >= size {
      let value = (Double(bitsPerSecond) / size * 1000).rounded() / 1000
      let text = value == value.rounded() ? String(Int64(value)) : String(value)
      return "\(text) \(unit)bit/s"
    }
    return "\(bitsPerSecond) bit/s"
  }
}
