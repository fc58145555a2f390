package import ReelCore

/// A link for each of many viewers: one argument for all, or several with their shares, as in
/// `wifi:60%,lte:30%,3g:10%`. Options belong to the link before them: `lte,ideal:60%,3g:40%`.
package struct LinkMix: Sendable, Hashable {
  package struct Part: Sendable, Hashable {
    package let link: LinkArgument
    /// From 0 to 1.
    package let share: Double
  }

  /// In the order of the text.
  package let parts: [Part]

  /// Parses a mix. Checks whether files exist, but reads none.
  ///
  /// - Parameter usual: What the links model unless they are `ideal`.
  /// - Throws: The errors of `LinkArgument`; `ReelError` of kind `usage` if the shares do not add up to 100 %.
  package init(parsing text: String, unlessIdeal usual: LinkFeatures = []) throws(ReelError) {
    // A share is at the end of the text or before a comma. Other commas are those of options and file names.
    let shares = text.matches(of: /:([0-9]+(?:\.[0-9]+)?)%(?:,|$)/)
    guard text.hasSuffix("%"), shares.last?.range.upperBound == text.endIndex else {
      parts = [Part(link: try LinkArgument(parsing: text, unlessIdeal: usual), share: 1)]
      return
    }
    var parts: [Part] = []
    var start = text.startIndex
    for match in shares {
      let link = String(text[start..<match.range.lowerBound])
      let share = (Double(match.1) ?? 0) / 100
      parts.append(Part(link: try LinkArgument(parsing: link, unlessIdeal: usual), share: share))
      start = match.range.upperBound
    }
    guard abs(parts.reduce(0) { $0 + $1.share } - 1) < 1e-6 else {
      throw ReelError(
        .usage, "the shares of the links do not add up to 100 %", advice: "write wifi:60%,lte:30%,3g:10%")
    }
    self.parts = parts
  }

  /// Reads the recordings, and returns the link of each viewer.
  ///
  /// - Parameters:
  ///   - order: The viewers 0 to `order.count` - 1, shuffled. The first ones get the first link: its share of them, to
  ///     the nearest whole number. The viewers of a folder get its recordings in turn.
  ///   - seed: The seed of starts and jitter, which differ from viewer to viewer.
  /// - Throws: The errors of `LinkArgument.links()`.
  package func links(of order: [Int], seed: UInt64) throws(ReelError) -> [LinkSpec] {
    var links: [(viewer: Int, link: LinkSpec)] = []
    var sum = 0.0
    for (number, part) in parts.enumerated() {
      let choices = try part.link.links().map(\.spec)
      sum += part.share
      let end = number == parts.count - 1 ? order.count : Int((sum * Double(order.count)).rounded())
      for (index, viewer) in order[links.count..<end].enumerated() {
        let link = choices[index % choices.count].seeded(with: seed &+ UInt64(viewer))
        links.append((viewer, link))
      }
    }
    return links.sorted { $0.viewer < $1.viewer }.map(\.link)
  }
}
