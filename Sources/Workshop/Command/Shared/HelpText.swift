import Foundation
import ReelFFmpeg

/// Parts of help texts, and their layout.
enum HelpText {
  /// Returns a list of names with their meanings in two columns, an entry per line.
  ///
  /// `fitted` wraps the lines. The command-line reference and the manual pages recognize such a list by its two leading
  /// spaces.
  static func list(_ entries: [(String, String)]) -> String {
    let column = (entries.map(\.0.count).max() ?? 0) + 2
    return entries.map { name, meaning in
      "  " + name.padding(toLength: column, withPad: " ", startingAt: 0) + meaning
    }.joined(separator: "\n")
  }

  /// Returns commands to try, each after a line that describes it.
  ///
  /// The manual pages have them in a section of their own, and tests run them.
  static func examples(_ examples: [(String, String)]) -> String {
    "Examples:\n"
      + examples.map { meaning, command in "  # \(meaning)\n  \(command)" }.joined(separator: "\n")
  }

  /// The beginning of the help in a message of ArgumentParser.
  static let start = "OVERVIEW: "

  /// Returns a help text, one paragraph or list entry per line, wrapped to `width` columns.
  ///
  /// The second column of a list keeps its indentation. If fewer than `leastMeaning` columns are left for it,
  /// it starts on a line of its own.
  static func fitted(_ text: String, to width: Int) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).flatMap { lines(String($0), width) }
      .joined(separator: "\n")
  }

  /// The number of columns for help on standard output: those of the terminal, or 80. COLUMNS overrides both.
  static var columns: Int {
    let variable = ProcessInfo.processInfo.environment["COLUMNS"].flatMap { Int($0) }
    return variable.flatMap { $0 > 0 ? $0 : nil } ?? Terminal.columns(of: STDOUT_FILENO)
  }

  /// Returns a message about arguments, fitted to the terminal of standard error. Elsewhere its lines are not
  /// wrapped.
  static func fittedError(_ message: String) -> String {
    isatty(STDERR_FILENO) == 1 ? fitted(message, to: Terminal.columns(of: STDERR_FILENO)) : message
  }

  // MARK: - Private

  /// The minimum number of columns for the meanings of a list beside the names.
  private static let leastMeaning = 20
  /// The column at which ArgumentParser starts the meanings of options.
  private static let optionColumn = 26

  private static func lines(_ line: String, _ width: Int) -> [String] {
    guard line.count > width else { return [line] }
    let indentation = line.prefix { $0 == " " }.count
    let rest = line.dropFirst(indentation)
    if indentation == 0 {
      return wrapped(rest, width, hanging: rest.hasPrefix("USAGE: ") ? "USAGE: ".count : 0)
    }
    let nameIndentation = min(indentation, 2)
    // The name of an option that is too long for its column is on the previous line.
    if indentation == optionColumn {
      let column = width - indentation < leastMeaning ? nameIndentation + 4 : indentation
      return wrapped(rest, width, first: column, hanging: column)
    }
    guard indentation == 2, let column = meaningColumn(of: line) else {
      return wrapped(rest, width, first: indentation, hanging: min(indentation + 2, width / 2))
    }
    let (name, meaning) = (line.prefix(column), line.dropFirst(column))
    if width - column < leastMeaning {
      return wrapped(name, width, first: indentation, hanging: indentation + 2)
        + wrapped(meaning, width, first: indentation + 4, hanging: indentation + 4)
    }
    let lines = wrapped(meaning, width, first: column, hanging: column)
    return [String(line.prefix(column)) + lines[0].dropFirst(column)] + lines.dropFirst()
  }

  /// Returns the column at which the meaning of an entry starts, of a list or of options; nil if the line is
  /// not an entry.
  private static func meaningColumn(of line: String) -> Int? {
    let rest = line.dropFirst(2)
    guard let gap = rest.firstRange(of: "  "), gap.lowerBound > rest.startIndex else {
      // The name of an option may fill its column, up to one space.
      let isOption = rest.hasPrefix("-") && line.prefix(optionColumn).last == " "
      return isOption && line.count > optionColumn ? optionColumn : nil
    }
    return line.count - rest[gap.upperBound...].drop { $0 == " " }.count
  }

  /// Returns the words of a text in lines with these indentations. Words that are wider than a line are
  /// broken.
  private static func wrapped(
    _ text: Substring, _ width: Int, first: Int = 0, hanging: Int
  ) -> [String] {
    var lines: [String] = []
    var line = String(repeating: " ", count: first)
    var isEmpty = true
    func next() {
      lines.append(line)
      (line, isEmpty) = (String(repeating: " ", count: hanging), true)
    }
    for word in text.split(separator: " ") {
      if !isEmpty, line.count + 1 + word.count > width { next() }
      var word = word
      while isEmpty, line.count + word.count > width, line.count < width {
        let head = word.prefix(width - line.count)
        line += head
        word = word.dropFirst(head.count)
        next()
      }
      line += (isEmpty ? "" : " ") + word
      isEmpty = false
    }
    return lines + [line]
  }
}

enum Version {
  static let text = "0.1.0"

  /// The text of `--version --verbose`: the versions of FFmpeg's libraries, and the formats that Reel can
  /// open with them.
  static var details: String {
    var lines = ["reel \(text)", "ffmpeg \(FFmpegVersion.release)"]
    lines += FFmpegVersion.libraries.map { "  \($0)" }
    lines += [
      "manifests     HLS, DASH", "protocols     http (HTTP/1.1), https (HTTP/1.1, HTTP/2), file, data",
    ]
    for entry in FFmpegVersion.capabilities {
      lines.append(
        entry.name.padding(toLength: 14, withPad: " ", startingAt: 0) + entry.present.joined(separator: ", "))
      if !entry.missing.isEmpty { lines.append("  missing     " + entry.missing.joined(separator: ", ")) }
    }
    return lines.joined(separator: "\n")
  }
}
