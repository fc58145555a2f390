internal import Foundation
package import ReelCore
package import ReelFFmpeg

/// The files to write of a storyboard.
package struct StoryboardStyle: Sendable {
  package var outputs: [StoryboardOutput]
  /// The format of sheets.
  package var format: StillFormat
  /// The quality; nil for the format's default.
  package var quality: Int?
  package var grid: StoryboardGrid

  /// The maximum number of pixels of a sheet: 192 MB of memory.
  static let pixelLimit = 64 << 20

  package init(outputs: [StoryboardOutput], format: StillFormat, quality: Int? = nil, grid: StoryboardGrid) {
    (self.outputs, self.format, self.quality, self.grid) = (outputs, format, quality, grid)
  }

  /// True if every slot gets a tile, as players of HLS expect.
  var isRegular: Bool { outputs.contains(.hls) }

  /// Returns the files that every source gets, without the numbered ones after the first.
  package func names(_ stem: String) -> [String] {
    let names = outputs.flatMap { output in
      switch output {
      case .vtt: ["\(stem).vtt"]
      case .hls: [Self.playlistName(stem), "\(stem).m3u8"]
      }
    }
    return names + [sheetName(stem, 1)]
  }

  func sheetName(_ stem: String, _ number: Int) -> String {
    "\(stem)-\(String(format: "%03d", number)).\(format.fileExtension)"
  }

  static func playlistName(_ stem: String) -> String { "\(stem)-images.m3u8" }
}

/// Makes the files of one storyboard from its tiles, in order. Confined to one thread.
package final class StoryboardWriter {
  /// A file that was written.
  package struct File: Sendable {
    package let name: String
    /// `sheet`, `vtt` or `hls`.
    package let kind: String
    package let byteCount: Int
    package let size: PixelSize?
  }

  private let style: StoryboardStyle
  private let stem: String
  private let write: (_ name: String, _ bytes: [UInt8]) throws(ReelError) -> Void
  /// The tiles of the sheet that is not written yet.
  private var pending: [Still] = []
  private var sheets: (names: [String], byteCounts: [Int]) = ([], [])
  /// The slot of each tile of all sheets.
  private var slots: [Int] = []
  private var last: Still?
  /// The grid of all sheets, once one is written.
  private var grid: StoryboardGrid?
  package private(set) var files: [File] = []
  /// The number of slots that show a neighbour's tile.
  package private(set) var repeatedCount = 0
  package private(set) var tileSize: PixelSize?

  /// - Parameters:
  ///   - stem: The beginning of the files' names.
  ///   - write: Writes a file.
  package init(
    _ style: StoryboardStyle, stem: String,
    write: @escaping (_ name: String, _ bytes: [UInt8]) throws(ReelError) -> Void
  ) {
    (self.style, self.stem, self.write) = (style, stem, write)
  }

  /// Throws `ReelError`: `usage` if the sheet would be too large.
  package func add(_ tile: Storyboard.Tile) throws(ReelError) {
    if tileSize == nil { try begin(tile.still.size) }
    if style.isRegular { try fill(upTo: tile.slot, with: last ?? tile.still) }
    try append(tile.still, slot: tile.slot)
    last = tile.still
  }

  /// Writes the last sheet, and the files that list the tiles.
  package func finish(_ storyboard: Storyboard.Report) throws(ReelError) {
    guard let last, let tileSize else { return }
    if style.isRegular { try fill(upTo: storyboard.slotCount, with: last) }
    if !pending.isEmpty { try writeSheet() }
    let grid = grid ?? style.grid
    let made = StoryboardIndex.Sheets(
      names: sheets.names, byteCounts: sheets.byteCounts, codec: style.format.codec, tile: tileSize,
      columns: grid.columns, rows: grid.rows, interval: storyboard.interval,
      duration: min(storyboard.duration, storyboard.slotCount * storyboard.interval))
    for output in style.outputs { try write(output, made, storyboard) }
  }

  // MARK: - Private

  private func begin(_ tile: PixelSize) throws(ReelError) {
    tileSize = tile
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
    // A single sheet has no empty rows or columns. The last one of several has no empty rows, unless players
    // expect all to have the same size.
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
    try write(name, kind: "sheet", bytes, size: sheet.size)
  }

  private func write(
    _ output: StoryboardOutput, _ sheets: StoryboardIndex.Sheets, _ storyboard: Storyboard.Report
  ) throws(ReelError) {
    switch output {
    case .vtt:
      let text = StoryboardIndex.webVTT(cells(sheets, storyboard), sheets)
      try write("\(stem).vtt", kind: "vtt", Array(text.utf8))
    case .hls:
      let name = StoryboardStyle.playlistName(stem)
      try write(name, kind: "hls", Array(StoryboardIndex.imagePlaylist(sheets).utf8))
      let master = StoryboardIndex.multivariantPlaylist(sheets, playlist: name)
      try write("\(stem).m3u8", kind: "hls", Array(master.utf8))
    }
  }

  /// Returns the tiles with their times. The first begins at 0, and each ends where the next one begins.
  private func cells(
    _ sheets: StoryboardIndex.Sheets, _ storyboard: Storyboard.Report
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
    _ name: String, kind: String, _ bytes: [UInt8], size: PixelSize? = nil
  ) throws(ReelError) {
    try write(name, bytes)
    files.append(File(name: name, kind: kind, byteCount: bytes.count, size: size))
  }
}

extension StillFormat {
  /// The codec of an image playlist.
  fileprivate var codec: String { self == .ppm ? "x-portable-pixmap" : rawValue }
  /// The maximum length of a side of an image in pixels: the format's own limit, and Reel's.
  fileprivate var sideLimit: Int { self == .webp ? 16383 : 16384 }
}

/// A kind of files that a storyboard is written as.
package enum StoryboardOutput: String, CaseIterable, Sendable {
  /// Sheets, and WebVTT that locates the tiles.
  case vtt
  /// Sheets, and HLS playlists of images.
  case hls
}

/// The columns and rows of a sheet.
package struct StoryboardGrid: Sendable, Hashable {
  package let columns: Int
  package let rows: Int

  package init(columns: Int, rows: Int) { (self.columns, self.rows) = (columns, rows) }
}

/// The texts that list the tiles of a storyboard.
enum StoryboardIndex {
  /// A tile in a sheet.
  struct Cell: Sendable {
    /// The start in milliseconds.
    let start: Int
    let end: Int
    let sheet: Int
    /// The position in pixels, from the sheet's upper left corner.
    let x: Int
    let y: Int
  }

  /// Sheets with the same grid.
  struct Sheets: Sendable {
    var names: [String] = []
    var byteCounts: [Int] = []
    let codec: String
    let tile: PixelSize
    let columns: Int
    let rows: Int
    /// The display time of a tile, in milliseconds.
    let interval: Int
    /// The duration in milliseconds.
    let duration: Int

    /// The display time of a whole sheet, in milliseconds.
    var sheetDuration: Int { interval * columns * rows }

    /// The display time of each sheet, in milliseconds. The last one may be shorter.
    var durations: [Int] {
      byteCounts.indices.map { max(1, min(duration - $0 * sheetDuration, sheetDuration)) }
    }

    /// The highest bit rate of a sheet, rounded up (RFC 8216 §4.3.4.2).
    var peakBitRate: Int {
      zip(byteCounts, durations).map { Self.bitRate($0, $1) }.max() ?? 1
    }

    private static func bitRate(_ bytes: Int, _ milliseconds: Int) -> Int {
      max(1, (bytes * 8000 + milliseconds - 1) / max(1, milliseconds))
    }
  }

  // MARK: Texts

  /// Returns WebVTT with a media fragment (W3C Media Fragments §4.2.2) for each tile, as players expect for
  /// previews.
  static func webVTT(_ cells: [Cell], _ sheets: Sheets) -> String {
    var text = "WEBVTT\n"
    for cell in cells {
      text += "\n\(time(cell.start)) --> \(time(cell.end))\n"
      text += "\(uri(sheets.names[cell.sheet]))#xywh=\(cell.x),\(cell.y),"
      text += "\(sheets.tile.width),\(sheets.tile.height)\n"
    }
    return text
  }

  /// Returns an HLS media playlist of images (Image Media Playlist, version 0.4, Disney Streaming and
  /// WarnerMedia).
  static func imagePlaylist(_ sheets: Sheets) -> String {
    let tiles = "RESOLUTION=\(sheets.tile),LAYOUT=\(sheets.columns)x\(sheets.rows)"
    var text = """
      #EXTM3U
      #EXT-X-VERSION:7
      #EXT-X-TARGETDURATION:\(((sheets.durations.max() ?? 1) + 999) / 1000)
      #EXT-X-MEDIA-SEQUENCE:1
      #EXT-X-PLAYLIST-TYPE:VOD
      #EXT-X-IMAGES-ONLY

      """
    for (name, duration) in zip(sheets.names, sheets.durations) {
      text += "#EXTINF:\(seconds(duration)),\n"
      text += "#EXT-X-TILES:\(tiles),DURATION=\(seconds(sheets.interval))\n\(uri(name))\n"
    }
    return text + "#EXT-X-ENDLIST\n"
  }

  /// Returns the multivariant playlist, whose only entry is the playlist of images.
  static func multivariantPlaylist(_ sheets: Sheets, playlist: String) -> String {
    """
    #EXTM3U
    #EXT-X-VERSION:7
    #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=\(sheets.peakBitRate),RESOLUTION=\(sheets.tile),CODECS="\(sheets.codec)",\
    URI="\(uri(playlist))"

    """
  }

  /// Returns a name as a relative reference.
  static func uri(_ name: String) -> String {
    var text = ""
    for byte in name.utf8 {
      let isUnreserved =
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
        || [0x2d, 0x2e, 0x5f, 0x7e].contains(byte)
      text += isUnreserved ? String(UnicodeScalar(byte)) : String(format: "%%%02X", Int(byte))
    }
    return text
  }

  /// `00:01:30.500`.
  private static func time(_ milliseconds: Int) -> String {
    let seconds = milliseconds / 1000
    return String(
      format: "%02d:%02d:%02d.%03d", seconds / 3600, seconds / 60 % 60, seconds % 60, milliseconds % 1000)
  }

  private static func seconds(_ milliseconds: Int) -> String {
    (Double(milliseconds) / 1000).formatted(places: 3)
  }
}
