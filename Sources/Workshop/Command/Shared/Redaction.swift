import Foundation
import ReelCore

/// Removes secrets from texts for reports that are passed on.
enum Redaction {
  /// Returns one line of text: without user names and passwords of URLs, with `…` for their queries and fragments and for
  /// the contents of `data:` URLs. Signed URLs have their credentials in their queries.
  static func clean(_ text: String) -> String {
    let text = text.withoutUserInformation
    guard text.contains("://") || text.range(of: "data:", options: .caseInsensitive) != nil else {
      return text.printable
    }
    var (result, rest) = ("", text[...])
    while !rest.isEmpty {
      let word = rest.prefix { !isEnd($0) }
      result += clean(word: word)
      rest = rest[word.endIndex...]
      let gap = rest.prefix { isEnd($0) }
      result += gap
      rest = rest[gap.endIndex...]
    }
    return result.printable
  }

  /// Returns the command line that repeats a run, for a shell. Secrets are left out, and so are written
  /// files, which do not change the results.
  ///
  /// - Parameters:
  ///   - arguments: The arguments without the name of the program.
  ///   - outputs: The options that name a file to write.
  static func commandLine(_ arguments: [String], outputs: Set<String>) -> String {
    var words = ["reel"]
    var index = 0
    while index < arguments.count {
      let argument = arguments[index]
      let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(parts.first ?? "")
      let isJoined = argument.hasPrefix("--") && parts.count > 1
      let value = isJoined ? String(parts[1]) : index + 1 < arguments.count ? arguments[index + 1] : ""
      if outputs.contains(name) {
        index += isJoined ? 1 : 2
        continue
      }
      // The name of a field or parameter is not secret.
      let kept: String? =
        switch name {
        case "--header", "--secret-header": value.prefix { $0 != ":" } + ": …"
        case "--query": value.prefix { $0 != "=" } + "=…"
        case "--key": "…"
        default: nil
        }
      if let kept {
        words += [name, quoted(kept)]
        index += isJoined ? 1 : 2
        continue
      }
      words.append(quoted(clean(argument)))
      index += 1
    }
    return words.joined(separator: " ")
  }

  // MARK: - Private

  private static func isEnd(_ character: Character) -> Bool {
    character.isWhitespace || "\"'<>()".contains(character)
  }

  /// Cleans a word without white space.
  private static func clean(word: Substring) -> String {
    if let range = word.range(of: "data:", options: .caseInsensitive) {
      let isAlone =
        range.lowerBound == word.startIndex || !(word[..<range.lowerBound].last?.isLetter ?? false)
      if isAlone, range.upperBound < word.endIndex { return word[..<range.upperBound] + "…" }
    }
    guard let scheme = word.range(of: "://") else { return String(word) }
    guard let query = word[scheme.upperBound...].firstIndex(where: { $0 == "?" || $0 == "#" }) else {
      return String(word)
    }
    let end = word[query...].last.map { ":;,".contains($0) ? String($0) : "" } ?? ""
    return word[...query] + "…" + end
  }

  /// Returns the word, quoted for a POSIX shell if necessary.
  private static func quoted(_ word: String) -> String {
    let isPlain = word.unicodeScalars.allSatisfy {
      $0.properties.isAlphabetic || ("0"..."9").contains($0) || "-_./:=,+@%…".unicodeScalars.contains($0)
    }
    if isPlain, !word.isEmpty { return word }
    return "'\(word.replacingOccurrences(of: "'", with: "'\\''"))'"
  }
}
