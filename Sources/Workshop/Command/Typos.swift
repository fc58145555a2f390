import ReelLab

/// Suggestions for words that users mistype.
enum Typos {
  /// Returns the message for arguments that begin with an unknown command, or request help on one; nil for
  /// others.
  static func unknownCommand(in arguments: [String], commands: [String]) -> String? {
    let asksForHelp = arguments.first == "help"
    guard let first = asksForHelp ? arguments.dropFirst().first : arguments.first, !first.hasPrefix("-"),
      first != "help", !commands.contains(first)
    else {
      return nil
    }
    let suggestion = Similarity.suggestion(for: first, among: commands).map { "did you mean \($0)?" }
    // The argument is a source instead of a command.
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

  /// Returns the message for arguments with an option that was removed: it says what replaces it. Nil for others.
  static func removedOption(in arguments: [String]) -> String? {
    guard let command = arguments.first else { return nil }
    for argument in arguments.dropFirst().prefix(while: { $0 != "--" }) {
      let option = argument.prefix { $0 != "=" }
      guard let replacement = removed["\(command) \(option)"] ?? removed[String(option)] else { continue }
      return "\(option) was removed: \(replacement)"
    }
    return nil
  }

  // MARK: - Private

  /// The options that were removed, and what to use in their place.
  private static let removed = [
    "--shard-by": "sources are assigned to shards by their URL",
    "--fan-out": "write folders in --name, such as {host}/{stem}",
    "--no-fan-out": "lists from a file of up to 10,000 sources are written to one folder",
    "check --sarif": "use --junit, --report or --json",
    "play --volume": "change the audio of --wav or --nut with ffmpeg",
    "play --linear": "seeks are refused only by the library (Player.requiresLinearPlayback)",
    "manifest --strict": "reel check reports what breaks the standards",
    "manifest --follow": "reel check --watch reports the changes of a live presentation",
    "manifest --duration": "reel check --watch takes a time",
    "feed --flicks": "--dwell trace:FILE has recorded times, short looks among them",
    "lab --flicks": "--dwell trace:FILE has recorded times, short looks among them",
    "lab --viewer": "use --dwell, with the same values",
    "check --baseline": "waive known findings with --ignore or --waivers",
  ]

  private static func trimmed(_ option: Substring) -> String { String(option.drop { $0 == "-" }) }
}

extension String {
  fileprivate func replacingCharacters(in range: Range<String.Index>, with text: String) -> String {
    var copy = self
    copy.replaceSubrange(range, with: text)
    return copy
  }
}
