import ArgumentParser

/// Suggestions for words that users mistype.
enum Typos {
  /// The word that was most likely meant; nil if none is similar. At most a third of the letters differ.
  static func suggestion(for word: String, among known: [String]) -> String? {
    let best = known.map { (word: $0, distance: distance(word.lowercased(), $0.lowercased())) }
      .min { $0.distance < $1.distance }
    guard let best, isSimilar(word, best.word) else { return nil }
    return best.word
  }

  /// The message for arguments that begin with an unknown command; nil for others.
  static func unknownCommand(in arguments: [String], commands: [String]) -> String? {
    guard let first = arguments.first, !first.hasPrefix("-"), first != "help", !commands.contains(first)
    else {
      return nil
    }
    let suggestion = suggestion(for: first, among: commands).map { "did you mean \($0)?" }
    // A source instead of a command.
    let isSource = first.contains("/") || first.contains(".")
    let advice = suggestion ?? (isSource ? "write reel frames \(first) or reel play \(first)" : nil)
    return "'\(first)' is not a command; "
      + (advice ?? "the commands are \(commands.joined(separator: ", "))")
  }

  /// Removes a suggestion from a message of ArgumentParser if it does not resemble the argument.
  static func withoutFarSuggestion(_ message: String) -> String {
    let pattern = /Unknown option '(?<written>[^']+)'(?<rest>\. Did you mean '(?<meant>[^']+)'\?)/
    guard let match = message.firstMatch(of: pattern),
      !isSimilar(trimmed(match.written), trimmed(match.meant))
    else { return message }
    return message.replacingCharacters(in: match.rest.startIndex..<match.rest.endIndex, with: "")
  }

  // MARK: - Private

  private static func trimmed(_ option: Substring) -> String { String(option.drop { $0 == "-" }) }

  private static func isSimilar(_ word: String, _ other: String) -> Bool {
    distance(word.lowercased(), other.lowercased()) * 3 <= max(word.count, 3)
  }

  /// The letters that have to be inserted, deleted or replaced, or pairs swapped (optimal string alignment).
  private static func distance(_ first: String, _ second: String) -> Int {
    let (left, right) = (Array(first), Array(second))
    var before = [Int](repeating: 0, count: right.count + 1)
    var row = Array(0...right.count)
    for i in left.indices {
      var next = [i + 1]
      for j in right.indices {
        var cost = min(row[j + 1] + 1, next[j] + 1, row[j] + (left[i] == right[j] ? 0 : 1))
        if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
          cost = min(cost, before[j - 1] + 1)
        }
        next.append(cost)
      }
      (before, row) = (row, next)
    }
    return row[right.count]
  }
}

extension String {
  fileprivate func replacingCharacters(in range: Range<String.Index>, with text: String) -> String {
    var copy = self
    copy.replaceSubrange(range, with: text)
    return copy
  }
}
