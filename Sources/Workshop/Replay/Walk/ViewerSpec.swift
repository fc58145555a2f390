public import ReelCore
internal import ReelPool

/// A viewer of a walk: how long they look at each item, and how they swipe.
public struct ViewerSpec: Sendable, Hashable {
  /// The time that the viewer looks at each item.
  public let dwell: DwellSpec
  /// How often the viewer flicks on, goes back and swipes in bursts. A trace determines its swipes itself: the shares
  /// are then the usual ones, and have no effect.
  public let shares: SwipeShares

  /// A viewer.
  ///
  /// - Throws: `ReelError` of kind `usage` for a trace with other shares than the usual ones.
  public init(dwell: DwellSpec, shares: SwipeShares = .usual) throws(ReelError) {
    if case .trace = dwell, shares != .usual {
      throw ReelError(
        .usage, "a trace determines the swipes",
        advice: "leave out flicks, back and bursts, or use other dwell times")
    }
    self.dwell = dwell
    self.shares = shares
  }

  /// Parses a dwell time, optionally followed by shares: `weibull:0.8,6s,flicks=20%,back=10%,bursts=0%`.
  ///
  /// Shares can come in any order, each at most once. The file of a trace is read.
  ///
  /// - Throws: The errors of ``DwellSpec/init(parsing:)``; `ReelError` of kind `usage` for a share that
  ///   can't be read or appears twice.
  public init(parsing text: String) throws(ReelError) {
    var parts = text.split(separator: ",", omittingEmptySubsequences: false)
    var shares: [String: Double] = [:]
    while parts.count > 1, let (name, value) = Self.option(parts[parts.count - 1]) {
      guard shares[name] == nil else { throw ReelError(.usage, "\"\(text)\" has \(name) twice") }
      shares[name] = try SwipeShares.share(parsing: value, of: name)
      parts.removeLast()
    }
    let usual = SwipeShares.usual
    try self.init(
      dwell: try DwellSpec(parsing: parts.joined(separator: ",")),
      shares: try SwipeShares(
        flicks: shares["flicks"] ?? usual.flicks, back: shares["back"] ?? usual.back,
        bursts: shares["bursts"] ?? usual.bursts))
  }

  /// The shares for a report; nil if a trace determines the swipes.
  package var reportedShares: SwipeShares? {
    if case .trace = dwell { return nil }
    return shares
  }

  // MARK: - Private

  /// `name=value` of a share; nil for anything else, such as a part of a file's name.
  private static func option(_ part: Substring) -> (name: String, value: String)? {
    let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard sides.count == 2 else { return nil }
    let name = sides[0].trimmed.lowercased()
    return ["flicks", "back", "bursts"].contains(name) ? (name, sides[1].trimmed) : nil
  }
}

extension ViewerSpec: CustomStringConvertible {
  /// The form that `init(parsing:)` accepts.
  public var description: String {
    let shares = shares.description
    return shares.isEmpty ? dwell.description : "\(dwell),\(shares)"
  }
}
