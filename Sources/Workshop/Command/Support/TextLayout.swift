/// How text for people is written: the columns it has to fit into, and whether in colour.
struct TextLayout: Sendable, Equatable {
  /// Nil for as many as the text has: a file or a pipe.
  var width: Int?
  var usesColor = false

  /// The narrowest terminal that lines are fitted to.
  private static let leastWidth = 20

  static let plain = TextLayout()

  /// A colour with a meaning (SGR of ECMA-48).
  enum Style: Int, Sendable {
    case bad = 31
    case good = 32
    case warning = 33
  }

  func styled(_ text: String, _ style: Style?) -> String {
    guard usesColor, let style, !text.isEmpty else { return text }
    return "\u{1b}[\(style.rawValue)m\(text)\u{1b}[0m"
  }

  /// A message of ArgumentParser, with its first word in colour.
  func withStyledError(_ message: String) -> String {
    let head = "Error:"
    return message.hasPrefix(head) ? styled(head, .bad) + message.dropFirst(head.count) : message
  }

  /// The lines of a text, broken at spaces where they are wider than the layout.
  ///
  /// The continuation of a line is indented by two columns more than the line.
  ///
  /// - Parameter shortensWords: Whether words that are wider than a line are shortened.
  func fitted(_ text: String, shortensWords: Bool = true) -> String {
    guard let width, width >= Self.leastWidth else { return text }
    return text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      if Self.width(of: line) <= width { return String(line) }
      let indentation = line.prefix { $0 == " " }
      let hanging = indentation.count + 2
      let rest = String(line.dropFirst(indentation.count))
      let lines = Self.wrapped(
        rest, first: width - indentation.count, others: width - hanging, shortensWords: shortensWords)
      return indentation + lines.joined(separator: "\n" + String(repeating: " ", count: hanging))
    }.joined(separator: "\n")
  }

  /// The columns that a text takes: colours take none.
  private static func width(of text: some StringProtocol) -> Int {
    guard text.contains("\u{1b}") else { return text.count }
    return String(text).replacing(#/\u{1b}\[[0-9;]*m/#, with: "").count
  }

  /// The words of a text in lines of at most this many characters.
  static func wrapped(_ text: String, first: Int, others: Int, shortensWords: Bool = true) -> [String] {
    func fitting(_ word: Substring, _ width: Int) -> String {
      shortensWords ? shortened(String(word), to: width) : String(word)
    }
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      let width = max(1, lines.isEmpty ? first : others)
      if line.isEmpty, lines.isEmpty || !word.isEmpty {
        line = fitting(word, width)
      } else if self.width(of: line) + 1 + self.width(of: word) <= width {
        line += " \(word)"
      } else if !word.isEmpty {
        lines.append(line)
        line = fitting(word, max(1, others))
      }
    }
    return lines + [line]
  }

  /// The first characters of a text, with an ellipsis if there are more.
  static func truncated(_ text: String, to count: Int) -> String {
    text.count <= count ? text : "\(text.prefix(max(1, count - 1)))…"
  }

  /// A text of at most this many characters. An ellipsis takes the place of the rest: of the middle of a URL or path,
  /// whose end tells most, and else of the end.
  static func shortened(_ text: String, to count: Int) -> String {
    guard text.count > count, !text.contains("\u{1b}") else { return text }
    guard text.contains("/"), count >= 12 else { return truncated(text, to: count) }
    let head = (count - 1) / 3
    return "\(text.prefix(head))…\(text.suffix(count - 1 - head))"
  }
}
