import ReelCore

/// A table of text, with columns as wide as their widest cell.
struct TextTable {
  enum Alignment {
    case left
    case right
  }

  private var rows: [[String]] = []
  private let alignments: [Alignment]
  private let indentation: Int

  /// Columns beyond the last alignment are right-aligned.
  init(_ alignments: [Alignment], indentation: Int = 0) {
    self.alignments = alignments
    self.indentation = indentation
  }

  mutating func add(_ row: [String]) { rows.append(row.map(\.printable)) }

  /// The lines, with two spaces between columns and none at the end.
  var lines: [String] {
    var widths: [Int] = []
    for row in rows {
      for (column, word) in row.enumerated() {
        if column == widths.count { widths.append(0) }
        widths[column] = max(widths[column], word.count)
      }
    }
    return rows.map { row in
      let words = row.enumerated().map { column, word in
        let space = String(repeating: " ", count: widths[column] - word.count)
        let alignment = column < alignments.count ? alignments[column] : .right
        return alignment == .left ? word + space : space + word
      }
      var line = String(repeating: " ", count: indentation) + words.joined(separator: "  ")
      while line.last == " " { line.removeLast() }
      return line
    }
  }

  /// The first characters of a text, with an ellipsis if there are more.
  static func shortened(_ text: String, to count: Int) -> String {
    text.count <= count ? text : "\(text.prefix(max(1, count - 1)))…"
  }
}
