import ArgumentParser
import ReelCore

/// Suggestions for words that users mistype.
enum Typos {
  /// The message for arguments that begin with an unknown command, or ask for help on one; nil for others.
  static func unknownCommand(in arguments: [String], commands: [String]) -> String? {
    let asksForHelp = arguments.first == "help"
    guard let first = asksForHelp ? arguments.dropFirst().first : arguments.first, !first.hasPrefix("-"),
      first != "help", !commands.contains(first)
    else {
      return nil
    }
    let suggestion = Similarity.suggestion(for: first, among: commands).map { "did you mean \($0)?" }
    // A source instead of a command.
    let isSource = !asksForHelp && (first.contains("/") || first.contains("."))
    let advice = suggestion ?? (isSource ? "write reel frames \(first) or reel play \(first)" : nil)
    return "'\(first)' is not a command; "
      + (advice ?? "the commands are \(commands.joined(separator: ", "))")
  }

  /// Removes a suggestion from a message of ArgumentParser if it does not resemble the argument.
  static func withoutFarSuggestion(_ message: String) -> String {
    let pattern = /Unknown option '(?<written>[^']+)'(?<rest>\. Did you mean '(?<meant>[^']+)'\?)/
    guard let match = message.firstMatch(of: pattern),
      !Similarity.isSimilar(trimmed(match.written), trimmed(match.meant))
    else { return message }
    return message.replacingCharacters(in: match.rest.startIndex..<match.rest.endIndex, with: "")
  }

  // MARK: - Private

  private static func trimmed(_ option: Substring) -> String { String(option.drop { $0 == "-" }) }
}

extension String {
  fileprivate func replacingCharacters(in range: Range<String.Index>, with text: String) -> String {
    var copy = self
    copy.replaceSubrange(range, with: text)
    return copy
  }
}
