import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback

/// How to write storyboards.
struct StoryboardStyle: Sendable {
  var directory: String
  var outputs: [StoryboardOutput]
  /// The format of sheets.
  var format: StillFormat
  /// Nil for the format's default.
  var quality: Int?
  var grid: StoryboardGrid

  /// The most pixels of a sheet: 192 MB of memory.
  static let pixelLimit = 64 << 20

  var writesSheets: Bool { outputs.contains { $0 != .bif } }
  /// Every slot gets a tile.
  var isRegular: Bool { outputs.contains(where: \.isRegular) }

  /// The files that every source gets, without the numbered ones after the first.
  func names(_ stem: String) -> [String] {
    var names = outputs.flatMap { output -> [String] in
      switch output {
      case .vtt: ["\(stem).vtt"]
      case .bif: ["\(stem).bif"]
      case .hls: [Self.playlistName(stem), "\(stem).m3u8"]
      case .dash: ["\(stem).mpd"]
      }
    }
    if writesSheets { names.append(sheetName(stem, 1)) }
    return names
  }

  func sheetName(_ stem: String, _ number: Int) -> String {
    "\(stem)-\(String(format: "%03d", number)).\(format.fileExtension)"
  }

  /// The URLs of sheets, as a template of DASH.
  func sheetPattern(_ stem: String) -> String {
    "\(StoryboardIndex.uri(stem))-$Number%03d$.\(format.fileExtension)"
  }

  static func playlistName(_ stem: String) -> String { "\(stem)-images.m3u8" }
}

/// Writes the files of one storyboard from its tiles, in order. Confined to one thread.
final class StoryboardWriter {
  private let style: StoryboardStyle
  private let stem: String
  private let existing: ExistingFiles
  /// The tiles of the sheet that is not written yet.
  private var pending: [Still] = []
  private var sheets: (names: [String], byteCounts: [Int]) = ([], [])
  /// The slot of each tile of all sheets.
  private var slots: [Int] = []
  private var images: [StoryboardIndex.Image] = []
  private var last: Still?
  /// The grid of all sheets, once one is written.
  private var grid: StoryboardGrid?
  private(set) var files: [StoryboardRecord.File] = []
  private(set) var frames: [StoryboardRecord.Frame] = []
  /// The number of slots that show a neighbour's tile.
  private(set) var repeatedCount = 0
  private(set) var tileSize: PixelSize?

  init(_ style: StoryboardStyle, stem: String, existing: ExistingFiles) {
    (self.style, self.stem, self.existing) = (style, stem, existing)
  }

  /// Throws `ReelError.cannotCreateOutput` if a file may not be written.
  func check() throws(ReelError) {
    for name in style.names(stem) { try existing.check(path(name)) }
  }

  /// Throws `ReelError`: `usage` if the sheet would be too large.
  func add(_ tile: Storyboard.Tile) throws(ReelError) {
    if tileSize == nil { try begin(tile.still.size) }
    frames.append(StoryboardRecord.Frame(tile))
    if style.outputs.contains(.bif) {
      let bytes = try StillEncoder.encode(
        tile.still, as: .jpeg, quality: style.format == .jpeg ? style.quality : nil)
      images.append(StoryboardIndex.Image(slot: tile.slot, bytes: bytes))
    }
    if style.writesSheets {
      if style.isRegular { try fill(upTo: tile.slot, with: last ?? tile.still) }
      try append(tile.still, slot: tile.slot)
    }
    last = tile.still
  }

  /// Writes the last sheet, and the files that list the tiles.
  func finish(_ storyboard: Storyboard) throws(ReelError) {
    guard let last, let tileSize else { return }
    if style.writesSheets {
      if style.isRegular { try fill(upTo: storyboard.slotCount, with: last) }
      if !pending.isEmpty { try writeSheet() }
      let grid = grid ?? style.grid
      let made = StoryboardIndex.Sheets(
        names: sheets.names, byteCounts: sheets.byteCounts, mediaType: style.format.mediaType, tile: tileSize,
        columns: grid.columns, rows: grid.rows, interval: storyboard.interval,
        duration: min(storyboard.duration, storyboard.slotCount * storyboard.interval))
      for output in style.outputs { try write(output, made, storyboard) }
    }
    if style.outputs.contains(.bif) {
      let header = StoryboardIndex.bifHeader(images, interval: storyboard.interval)
      try write("\(stem).bif", kind: "bif", [header] + images.map(\.bytes))
    }
  }

  /// Removes the files that were written, after a failure.
  func discard() {
    for file in files { try? FileManager.default.removeItem(atPath: file.path) }
    files = []
  }

  // MARK: - Private

  private func path(_ name: String) -> String {
    style.directory == "." ? name : (style.directory as NSString).appendingPathComponent(name)
  }

  private func begin(_ tile: PixelSize) throws(ReelError) {
    tileSize = tile
    guard style.writesSheets else { return }
    let (width, height) = (tile.width * style.grid.columns, tile.height * style.grid.rows)
    guard max(width, height) <= style.format.sideLimit, width * height <= StoryboardStyle.pixelLimit else {
      throw ReelError(
        .usage,
        """
        a sheet of \(style.grid.columns)x\(style.grid.rows) tiles of \(tile) would have \(width)x\(height) pixels; \
        the limit is \(style.format.sideLimit) a side and \(StoryboardStyle.pixelLimit >> 20) Mi in all
        """,
        advice: "choose a smaller --grid or --size")
    }
  }

  private func fill(upTo slot: Int, with still: Still) throws(ReelError) {
    while slots.count < slot {
      repeatedCount += 1
      try append(still, slot: slots.count)
    }
  }

  private func append(_ still: Still, slot: Int) throws(ReelError) {
    if pending.count == style.grid.columns * style.grid.rows { try writeSheet() }
    slots.append(slot)
    pending.append(still)
  }

  private func writeSheet() throws(ReelError) {
    guard let tileSize else { return }
    // A single sheet has no empty rows or columns. The last one of several has no empty rows, unless players expect all
    // to be alike.
    let columns = grid?.columns ?? min(style.grid.columns, pending.count)
    var rows = grid?.rows ?? min(style.grid.rows, (pending.count + columns - 1) / columns)
    if grid == nil { grid = StoryboardGrid(columns: columns, rows: rows) }
    if !style.isRegular { rows = min(rows, (pending.count + columns - 1) / columns) }
    var sheet = StillSheet(tile: tileSize, columns: columns, rows: rows)
    for (index, still) in pending.enumerated() { try sheet.place(still, at: index) }
    pending = []
    let bytes = try StillEncoder.encode(sheet.still, as: style.format, quality: style.quality)
    let name = style.sheetName(stem, sheets.names.count + 1)
    sheets.names.append(name)
    sheets.byteCounts.append(bytes.count)
    try write(name, kind: "sheet", [bytes], size: sheet.size)
  }

  private func write(
    _ output: StoryboardOutput, _ sheets: StoryboardIndex.Sheets, _ storyboard: Storyboard
  ) throws(ReelError) {
    switch output {
    case .bif: break
    case .vtt:
      try write(
        "\(stem).vtt", kind: "vtt", [Array(StoryboardIndex.webVTT(cells(sheets, storyboard), sheets).utf8)])
    case .hls:
      let name = StoryboardStyle.playlistName(stem)
      try write(name, kind: "hls", [Array(StoryboardIndex.imagePlaylist(sheets).utf8)])
      let master = StoryboardIndex.multivariantPlaylist(sheets, playlist: name)
      try write("\(stem).m3u8", kind: "hls", [Array(master.utf8)])
    case .dash:
      let text = StoryboardIndex.mpd(sheets, pattern: style.sheetPattern(stem))
      try write("\(stem).mpd", kind: "dash", [Array(text.utf8)])
    }
  }

  /// The tiles with their times. The first begins at 0, and each ends where the next one begins.
  private func cells(
    _ sheets: StoryboardIndex.Sheets, _ storyboard: Storyboard
  ) -> [StoryboardIndex.Cell] {
    let count = style.grid.columns * style.grid.rows
    return slots.indices.map { index in
      let place = index % count
      return StoryboardIndex.Cell(
        start: index == 0 ? 0 : slots[index] * storyboard.interval,
        end: index + 1 < slots.count
          ? slots[index + 1] * storyboard.interval
          : max(storyboard.duration, slots[index] * storyboard.interval + 1),
        sheet: index / count, x: place % sheets.columns * sheets.tile.width,
        y: place / sheets.columns * sheets.tile.height)
    }
  }

  private func write(
    _ name: String, kind: String, _ parts: [[UInt8]], size: PixelSize? = nil
  ) throws(ReelError) {
    let path = path(name)
    let file = try OutputFile(path: path, existing: existing)
    for part in parts { try file.write(part) }
    try file.commit()
    files.append(
      StoryboardRecord.File(
        path: path, kind: kind, bytes: parts.reduce(0) { $0 + $1.count }, width: size?.width,
        height: size?.height))
  }
}

extension StillFormat {
  fileprivate var mediaType: String { self == .ppm ? "image/x-portable-pixmap" : "image/\(rawValue)" }
  /// The longest side of an image in pixels: the format's own limit, and Reel's.
  fileprivate var sideLimit: Int { self == .webp ? 16383 : 16384 }
}
