package import ReelCore

/// How the segments of an image track are divided into tiles: rows from top to bottom, each from left to right.
package struct ImageTiles: Sendable, Hashable {
  package var columns = 1
  package var rows = 1
  /// The size of a tile as the manifest states it; nil if it does not.
  package var size: PixelSize?
  /// How long a tile is shown; nil for an equal part of its segment's duration.
  package var duration: MediaTime?
  /// Why the layout can't be used; nil if it can. Otherwise, columns and rows say nothing, and the images have no stills.
  package private(set) var fault: String?

  /// The most columns, and rows, of a segment.
  static let sideLimit: Int64 = 1000

  package init(columns: Int = 1, rows: Int = 1, size: PixelSize? = nil, duration: MediaTime? = nil) {
    (self.columns, self.rows, self.size, self.duration) = (columns, rows, size, duration)
  }

  /// The tiles of a layout as manifests write it: `10x5`. Anything else, and more than 1000 columns or rows, is a `fault`.
  ///
  /// - Parameter text: Nil if the manifest states none where it has to.
  init(layout text: String?) {
    guard let text, !text.trimmed.isEmpty else {
      fault = "the tile layout is missing"
      return
    }
    guard let (columns, rows) = Self.layout(text) else {
      let most = "\(Self.sideLimit)x\(Self.sideLimit)"
      fault = "the tile layout '\(text.excerpt)' is not from 1x1 to \(most)"
      return
    }
    (self.columns, self.rows) = (columns, rows)
  }

  private static func layout(_ text: String) -> (columns: Int, rows: Int)? {
    let parts = text.trimmed.lowercased().split(separator: "x", omittingEmptySubsequences: false)
    guard parts.count == 2, let columns = String(parts[0]).trimmed.integer,
      let rows = String(parts[1]).trimmed.integer, (1...sideLimit).contains(columns),
      (1...sideLimit).contains(rows)
    else { return nil }
    return (Int(columns), Int(rows))
  }

  /// The number of tiles of a whole segment.
  package var count: Int { columns * rows }
}
