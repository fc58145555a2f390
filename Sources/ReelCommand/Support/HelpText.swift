/// Parts of help texts.
enum HelpText {
  /// A list of names with their meanings in two columns, wrapped to 80 columns with a hanging indent.
  ///
  /// The command-line reference and the manual pages recognize such a list by its two leading spaces.
  static func list(_ entries: [(String, String)]) -> String {
    let column = min(entries.map(\.0.count).max() ?? 0, 26) + 4
    return entries.map { name, meaning in
      var lines: [String] = []
      var line = "  " + name + String(repeating: " ", count: max(2, column - name.count - 2))
      var isEmpty = true
      for word in meaning.split(separator: " ") {
        if !isEmpty, line.count + 1 + word.count > 80 {
          lines.append(line)
          (line, isEmpty) = (String(repeating: " ", count: column), true)
        }
        line += (isEmpty ? "" : " ") + word
        isEmpty = false
      }
      return (lines + [line]).joined(separator: "\n")
    }.joined(separator: "\n")
  }
}
