import ArgumentParser

/// What `reel storyboard` writes.
enum StoryboardOutput: String, ExpressibleByArgument, CaseIterable, Sendable {
  case vtt
  case bif
  case hls
  case dash

  /// What is written, for the help text.
  static let forms = [
    ("vtt", "sheets, and a WebVTT file that locates the tiles with #xywh"),
    ("hls", "sheets, an image playlist, and a multivariant playlist that refers to it"),
    ("dash", "sheets, and an MPD with an image AdaptationSet"),
    ("bif", "one file of JPEGs for Roku players"),
  ]

  /// True if every slot needs a tile.
  var isRegular: Bool { self == .hls || self == .dash }

  /// `vtt,bif`. An `ArgumentParser` transform.
  static func list(_ text: String) throws -> [StoryboardOutput] {
    let words = text.lowercased().split(separator: ",", omittingEmptySubsequences: false)
    let outputs = try words.map { word in
      guard let output = StoryboardOutput(rawValue: word.trimmingPrefix(" ").description) else {
        throw ValidationError("'\(word)' is not an output: use vtt, hls, dash and bif, separated by commas")
      }
      return output
    }
    return allCases.filter(outputs.contains)
  }
}

/// The columns and rows of a sheet.
struct StoryboardGrid: Sendable, Hashable {
  let columns: Int
  let rows: Int

  /// `10x10`. An `ArgumentParser` transform.
  static func parse(_ text: String) throws -> StoryboardGrid {
    let parts = text.lowercased().split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
    guard parts.count == 2, let columns = parts[0], let rows = parts[1], (1...1000).contains(columns),
      (1...1000).contains(rows)
    else { throw ValidationError("'\(text)' is not a grid: columns and rows from 1 to 1000, as 10x10") }
    return StoryboardGrid(columns: columns, rows: rows)
  }
}
