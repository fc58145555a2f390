import ReelCore
import ReelLab

extension [WalkReport] {
  /// Several walks side by side: a column for each report under its label, a row for each figure. A figure that a walk does
  /// not have is a dash.
  ///
  /// - Parameter corner: The text of the first cell.
  func table(corner: String = "") -> Table {
    var table = Table([.left])
    table.add(
      cells: [.init(corner)] + enumerated().map { .init("\($0 + 1): \($1.poolName)", plain: $1.label) })
    let totals = map(\.totals)
    for figure in WalkFigures.all(in: .comparison) {
      table.add(
        cells: [.init(figure.title, plain: figure.name)]
          + totals.map { figure.text(in: $0).map { .init($0) } ?? .init("–", plain: "-") })
    }
    return table
  }

  /// Walks over several links: a row for each report under its label, a column for each of a few figures.
  var linkTable: Table {
    var table = Table([.left])
    let figures = WalkFigures.all(in: .links)
    table.add(["link and pool"] + figures.map(\.name))
    for report in self {
      let totals = report.totals
      table.add([report.poolName] + figures.map { $0.text(in: totals) ?? "-" })
    }
    return table
  }

  /// A line for each item that failed, with the walks in which it failed unless it failed in all of them.
  var failureLines: [String] {
    var labels: [String: [String]] = [:]
    var lines: [String] = []
    for report in self {
      for line in report.failureLines {
        if labels[line] == nil { lines.append(line) }
        labels[line, default: []].append(report.label)
      }
    }
    return lines.map { line in
      guard let walks = labels[line], walks.count < count else { return line }
      return "\(line) (\(walks.joined(separator: ", ")))".printable
    }
  }
}
