package import ReelCore
package import ReelPool

/// The built-in preload policies by the names that users write.
package enum PreloadPolicies {
  /// The written forms, with what each does, in the order in which help prints them.
  package static let forms: [(form: String, meaning: String)] = [
    ("adaptive", "what the next swipes need, judged by throughput and the swipes so far; the default"),
    ("adjacent", "the previous and the next item"),
    ("ahead:N", "the next N items in the direction of travel"),
    ("adjacent:TIME", "the same as adjacent or ahead:N, with this much media of each item: ahead:2,1s"),
    ("budget:SIZE", "as many items and as much of them as fits in this much memory, as 64MB"),
    ("none", "only the current item"),
    (
      "media3",
      "three items on each side, 1 s of each, as in the short-form demo of AndroidX Media3; with a cache, 5 s on disk of those beyond"
    ),
  ]

  /// The policies that were removed, and what to use in their place.
  private static let removed = [
    "bytes": "use ahead:N, or budget:SIZE for a limit in bytes", "pdas": "use adaptive",
    "dashlet": "use adaptive", "media3:compose": "use media3", "media3:guide": "use media3",
  ]

  /// Reads a policy in one of `forms`, such as `adjacent`, `ahead:2` or `budget:64MB`, in any letter case. An argument
  /// may also stand in brackets: `ahead(2)`. `adjacent` and `ahead` may have the media that is loaded of each item:
  /// `adjacent:1s`, `ahead:2,1s`.
  ///
  /// - Throws: `ReelError` of kind `usage` where `text` is none of them. That of a removed one says what replaces it.
  package static func parse(_ text: String) throws(ReelError) -> any PreloadPolicy {
    let malformed = ReelError(
      .usage, "\"\(text)\" is not a preload policy",
      advice: "use one of \(forms.map(\.form).joined(separator: ", "))")
    guard let (name, argument) = split(text) else { throw malformed }
    if let advice = removed[name] ?? removed["\(name):\(argument?.lowercased() ?? "")"] {
      throw ReelError(.usage, "the preload policy \"\(text)\" was removed", advice: advice)
    }
    switch (name, argument) {
    case ("adjacent", nil): return AdjacentPreload()
    case ("none", nil): return NoPreload()
    case ("adaptive", nil): return AdaptivePreload()
    case ("media3", nil): return Media3Preload()
    case ("adjacent", let argument?): return try DepthPreload(AdjacentPreload(), argument[...], in: text)
    case ("ahead", let argument?):
      let parts = argument.split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false)
      let ahead = AheadPreload(try count(parts[0].trimmed, in: text))
      return parts.count > 1 ? try DepthPreload(ahead, parts[1], in: text) : ahead
    case ("budget", let argument?):
      let size = try ByteSize(parsing: argument, needsUnit: true)
      guard size.byteCount > 0 else { throw ReelError(.usage, "\"\(text)\": a budget must be above 0") }
      return BudgetPreload(byteCount: size.byteCount)
    default: throw malformed
    }
  }

  // MARK: - Private

  /// More would not be a slip of the pen, but of no use either.
  private static let maximumCount = 10_000

  private static func split(_ text: String) -> (name: String, argument: String?)? {
    let trimmed = text.trimmed
    if let open = trimmed.firstIndex(of: "(") {
      guard trimmed.last == ")" else { return nil }
      let argument = trimmed[trimmed.index(after: open)...].dropLast()
      return (trimmed[..<open].trimmed.lowercased(), argument.trimmed)
    }
    guard let colon = trimmed.firstIndex(of: ":") else { return (trimmed.lowercased(), nil) }
    return (trimmed[..<colon].trimmed.lowercased(), trimmed[trimmed.index(after: colon)...].trimmed)
  }

  private static func count(_ argument: String, in text: String) throws(ReelError) -> Int {
    guard argument.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(argument),
      (1...maximumCount).contains(count)
    else {
      throw ReelError(.usage, "\"\(text)\": the count must be a whole number from 1 to \(maximumCount)")
    }
    return count
  }
}
