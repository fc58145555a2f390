import ReelCore
import ReelFFmpeg
import ReelPool
import ReelReplay

/// The items of a walk side by side in one image, each with its number in the feed, its title, and its delay.
enum ContactSheet {
  /// An item of the sheet.
  struct Tile: Sendable, Hashable {
    /// The item's index in the feed, as reports count it.
    let index: Int
    let title: String
    /// The delay of its first frame, or why there is none.
    let caption: String
    /// The first frame; nil for an item that failed or showed none.
    let image: RGBImage?
  }

  private static let gap = 12
  private static let columnLimit = 6
  private static let textScale = 2
  /// Lines of a title, and of a caption.
  private static let titleLines = 2
  private static let captionLines = 3
  private static let background: UInt8 = 32

  /// The items that were looked at, and those that failed, in the order of the feed.
  static func tiles(_ report: WalkReport, names: [String], images: [Int: RGBImage]) -> [Tile] {
    var visits: [Int: SwipeRecord] = [:]
    for swipe in report.swipes where !swipe.isPassing && visits[swipe.itemIndex] == nil {
      visits[swipe.itemIndex] = swipe
    }
    var failures: [Int: String] = [:]
    for item in report.failedItems { failures[item.index] = item.error }
    let indices = Set(visits.keys).union(failures.keys).union(images.keys).sorted()
    return indices.prefix(FirstFrames.limit).map { index in
      let caption: String
      if let delay = visits[index]?.timeToFirstFrame {
        caption = visits[index]?.outcome(after: delay) ?? ""
      } else if let error = failures[index] {
        caption = "failed: \(Redaction.clean(error))"
      } else {
        caption = "left before its first frame"
      }
      return Tile(
        index: index, title: names.indices.contains(index) ? names[index] : "", caption: caption,
        image: images[index])
    }
  }

  /// Draws the tiles in rows of six. Rows are as high as their highest image.
  static func draw(_ tiles: [Tile]) -> RGBImage {
    let columns = max(1, min(tiles.count, columnLimit))
    let cell = PixelSize(
      width: BitmapFont.cell.width * textScale, height: BitmapFont.cell.height * textScale)
    let textWidth = FirstFrames.box.width / cell.width
    let rows = stride(from: 0, to: tiles.count, by: columns).map { first in
      Array(tiles[first..<min(first + columns, tiles.count)])
    }
    let heights = rows.map { row in row.map { $0.image?.size.height ?? 160 }.max() ?? 0 }
    let textHeight = (titleLines + captionLines) * cell.height + 8
    let size = PixelSize(
      width: columns * (FirstFrames.box.width + gap) + gap,
      height: heights.reduce(gap) { $0 + $1 + textHeight + gap })
    var pixels = [UInt8](repeating: background, count: size.width * size.height * 3)
    var top = gap
    for (row, height) in zip(rows, heights) {
      for (column, tile) in row.enumerated() {
        let left = gap + column * (FirstFrames.box.width + gap)
        if let image = tile.image {
          copy(image, x: left, y: top + height - image.size.height, size, into: &pixels)
        } else {
          cross(
            x: left, y: top + height - 160, PixelSize(width: FirstFrames.box.width, height: 160), size,
            &pixels)
        }
        let title = BitmapFont.wrap(
          BitmapFont.writable("\(tile.index) \(tile.title)".printable), columns: textWidth, lines: titleLines)
        let caption = BitmapFont.wrap(
          BitmapFont.writable(tile.caption.printable), columns: textWidth, lines: captionLines)
        for (line, text) in (title + caption).enumerated() {
          BitmapFont.draw(
            text, x: left, y: top + height + 8 + line * cell.height, scale: textScale,
            gray: line < title.count ? 240 : 170, size: size, into: &pixels)
        }
      }
      top += height + textHeight + gap
    }
    return RGBImage(size: size, pixels: pixels)
  }

  // MARK: - Private

  private static func copy(_ image: RGBImage, x: Int, y: Int, _ size: PixelSize, into pixels: inout [UInt8]) {
    for row in 0..<image.size.height {
      let target = ((y + row) * size.width + x) * 3
      let source = row * image.size.width * 3
      pixels.replaceSubrange(
        target..<target + image.size.width * 3, with: image.pixels[source..<source + image.size.width * 3])
    }
  }

  /// A frame with a cross in it, in the place of an image.
  private static func cross(
    x: Int, y: Int, _ tile: PixelSize, _ size: PixelSize, _ pixels: inout [UInt8]
  ) {
    for row in 0..<tile.height {
      for column in 0..<tile.width {
        let diagonal = row * tile.width / tile.height
        let isEdge = row < 2 || row >= tile.height - 2 || column < 2 || column >= tile.width - 2
        let isCross = abs(column - diagonal) < 2 || abs(tile.width - 1 - column - diagonal) < 2
        guard isEdge || isCross else { continue }
        let place = ((y + row) * size.width + x + column) * 3
        pixels[place] = 200
        pixels[place + 1] = 80
        pixels[place + 2] = 80
      }
    }
  }
}
