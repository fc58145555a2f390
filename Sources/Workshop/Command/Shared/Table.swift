import Foundation
import ReelCore

/// A table of a report: as text, with columns as wide as their widest cell, and as HTML.
///
/// On a terminal it fits the width: long names are shortened, a last column of text continues on further
/// lines, and columns that still do not fit follow below, after a repetition of the columns of names.
struct Table {
  enum Alignment {
    case left
    case right
  }

  struct Cell: Sendable {
    let text: String
    /// What it is in text, where it has no typeface.
    let plain: String
    /// The colour in text.
    let style: TextLayout.Style?
    /// The classes in HTML, besides those of its column.
    let classes: String

    init(_ text: String, _ style: TextLayout.Style? = nil, plain: String? = nil, classes: String? = nil) {
      self.text = text
      self.plain = (plain ?? text).withoutUserInformation.printable
      self.style = style
      self.classes = classes ?? (style == .bad ? "unmet" : style == .good ? "met" : "")
    }
  }

  private var rows: [[Cell]] = []
  private let alignments: [Alignment]
  private let indentation: Int

  /// The minimum width to which names are shortened.
  private static let leastNameWidth = 24
  /// The minimum width of a column whose text continues on further lines.
  private static let leastTextWidth = 24

  /// Columns beyond the last alignment are right-aligned.
  init(_ alignments: [Alignment], indentation: Int = 0) {
    self.alignments = alignments
    self.indentation = indentation
  }

  /// - Parameter numbers: The columns that are right-aligned.
  init(_ head: [String], _ rows: some Sequence<[String]>, numbers: Range<Int> = 1..<Int.max) {
    self.init(head, cells: rows.map { row in row.map { Cell($0) } }, numbers: numbers)
  }

  init(_ head: [String], cells rows: [[Cell]], numbers: Range<Int> = 1..<Int.max) {
    self.init(head.indices.map { numbers.contains($0) ? .right : .left })
    self.rows = [head.map { Cell($0) }] + rows
  }

  /// Adds a row; the first one is the head.
  ///
  /// - Parameter styles: The colours of cells, by column.
  mutating func add(_ row: [String], styles: [Int: TextLayout.Style] = [:]) {
    add(cells: row.enumerated().map { Cell($1, styles[$0]) })
  }

  mutating func add(cells: [Cell]) { rows.append(cells) }

  /// True without rows below the head.
  var isEmpty: Bool { rows.count < 2 }

  /// The table in a page, which scrolls sideways if the page is narrow. Empty without rows below the head.
  ///
  /// - Parameter classes: The classes of the table.
  func html(classes: String = "") -> String {
    guard !isEmpty else { return "" }
    func line(_ row: [Cell], _ tag: String) -> String {
      let cells = row.enumerated().map { column, cell in
        let classes = (alignment(column) == .right ? "n " : "") + cell.classes
        return Markup.element(
          tag, classes.trimmingCharacters(in: .whitespaces), Markup.escape(cell.text))
      }
      return "<tr>\(cells.joined())</tr>"
    }
    let body = rows.dropFirst().map { line($0, "td") }.joined(separator: "\n")
    let table = Markup.element(
      "table", classes, "<thead>\(line(rows[0], "th"))</thead><tbody>\(body)</tbody>")
    return "<div class=\"scroll\" tabindex=\"0\">\(table)</div>"
  }

  /// The same as text with tabs between columns, and a button that copies it. Empty without rows below the head.
  func copyableText() -> String {
    guard !isEmpty else { return "" }
    let lines = rows.map { $0.map { $0.plain.replacing("\t", with: " ") }.joined(separator: "\t") }
    return "<details class=\"copy\"><summary>The table as text</summary>"
      + "<button type=\"button\" hidden>Copy</button><pre>\(Markup.escapeLines(lines))</pre></details>"
  }

  /// The lines for standard output.
  var lines: [String] { lines(in: Terminal.layout) }

  /// Returns the lines, with two spaces between columns and none at the end.
  func lines(in layout: TextLayout) -> [String] {
    let natural = naturalWidths
    guard let width = layout.width else {
      return lines(of: Array(natural.indices), natural, layout)
    }
    let widths = shrunk(natural, to: width)
    return blocks(widths, of: width).flatMap { columns -> [String] in
      var widths = widths
      // Text gets the width that the other columns of its block leave.
      if hasText(widths), columns.last == widths.count - 1, let last = natural.last {
        let others = extent(columns.dropLast().map { widths[$0] }) + 2
        widths[widths.count - 1] = min(last, max(widths[widths.count - 1], width - others))
      }
      return lines(of: columns, widths, layout)
    }
  }

  // MARK: - Private

  private var naturalWidths: [Int] {
    var widths: [Int] = []
    for row in rows {
      for (column, cell) in row.enumerated() {
        if column == widths.count { widths.append(0) }
        widths[column] = max(widths[column], cell.plain.count)
      }
    }
    return widths
  }

  private func alignment(_ column: Int) -> Alignment {
    column < alignments.count ? alignments[column] : .right
  }

  /// Returns the width of a line with these columns.
  private func extent(_ widths: some Collection<Int>) -> Int {
    indentation + widths.reduce(0, +) + 2 * max(0, widths.count - 1)
  }

  /// Returns true if the last column is text that can continue on further lines.
  private func hasText(_ widths: [Int]) -> Bool {
    widths.count > 1 && alignment(widths.count - 1) == .left
  }

  /// Returns the widths with text and names as narrow as the layout needs, as far as possible.
  private func shrunk(_ natural: [Int], to width: Int) -> [Int] {
    var widths = natural
    let names = widths.indices.filter {
      alignment($0) == .left && !(hasText(widths) && $0 == widths.count - 1)
    }
    if hasText(widths), let last = widths.last, extent(widths) > width {
      let least = min(last, Self.leastTextWidth)
      widths[widths.count - 1] = max(least, last - (extent(widths) - width))
    }
    while extent(widths) > width {
      guard let widest = names.max(by: { widths[$0] < widths[$1] }), widths[widest] > Self.leastNameWidth
      else {
        break
      }
      widths[widest] -= 1
    }
    return widths
  }

  /// Returns the columns of each block of lines. Each begins with the columns of names, or with the first one
  /// if they are wide.
  private func blocks(_ widths: [Int], of width: Int) -> [[Int]] {
    guard extent(widths) > width, widths.count > 2 else { return [Array(widths.indices)] }
    let names = Array(widths.indices.prefix { alignment($0) == .left }.dropLast(hasText(widths) ? 1 : 0))
    let head = names.isEmpty || extent(names.map { widths[$0] }) > width / 2 ? [0] : names
    var blocks: [[Int]] = []
    var block = head
    for column in widths.indices.dropFirst(head.count) {
      if block.count > head.count, extent((block + [column]).map { widths[$0] }) > width {
        blocks.append(block)
        block = head
      }
      block.append(column)
    }
    return blocks + [block]
  }

  private func lines(of columns: [Int], _ widths: [Int], _ layout: TextLayout) -> [String] {
    rows.flatMap { row in
      // Text cells have several lines, the others one.
      let cells = columns.map { column -> [String] in
        guard column < row.count else { return [] }
        let (word, width) = (row[column].plain, widths[column])
        if word.count <= width { return [word] }
        return hasText(widths) && column == widths.count - 1
          ? TextLayout.wrapped(word, first: width, others: width) : [TextLayout.shortened(word, to: width)]
      }
      return (0..<max(1, cells.map(\.count).max() ?? 1)).map { number in
        var line = String(repeating: " ", count: indentation)
        for (place, column) in columns.enumerated() {
          guard column < row.count else { break }
          let word = number < cells[place].count ? cells[place][number] : ""
          let space = String(repeating: " ", count: max(0, widths[column] - word.count))
          let text = layout.styled(word, row[column].style)
          line += (place > 0 ? "  " : "") + (alignment(column) == .left ? text + space : space + text)
        }
        while line.last == " " { line.removeLast() }
        return line
      }
    }
  }
}
