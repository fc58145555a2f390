package import ReelCore

/// How the segments of an image track are divided into tiles: rows from top to bottom, each from left to right.
package struct ImageTiles: Sendable, Hashable {
  package var columns = 1
  package var rows = 1
  /// The size of a tile as the manifest states it; nil if it does not.
  package var size: PixelSize?
  /// How long a tile is shown; nil for an equal part of its segment's duration.
  package var duration: MediaTime?

  /// The most columns, and rows, of a segment.
  static let sideLimit: Int64 = 1000

  package init(columns: Int = 1, rows: Int = 1, size: PixelSize? = nil, duration: MediaTime? = nil) {
    (self.columns, self.rows, self.size, self.duration) = (columns, rows, size, duration)
  }

  /// Columns and rows as manifests write them: `10x5`. Nil for anything else, and for more than 1000 of either.
  init?(layout text: String) {
    let parts = text.trimmed.lowercased().split(separator: "x", omittingEmptySubsequences: false)
    guard parts.count == 2, let columns = String(parts[0]).trimmed.integer,
      let rows = String(parts[1]).trimmed.integer, (1...Self.sideLimit).contains(columns),
      (1...Self.sideLimit).contains(rows)
    else { return nil }
    self.init(columns: Int(columns), rows: Int(rows))
  }

  /// The number of tiles of a whole segment.
  package var count: Int { columns * rows }
}
