import Foundation
import ReelCore

/// The texts and the container that name the tiles of a storyboard.
enum StoryboardIndex {
  /// A tile in a sheet.
  struct Cell: Sendable {
    /// In milliseconds.
    let start: Int
    let end: Int
    /// The index of the sheet.
    let sheet: Int
    /// In pixels, from the sheet's upper left corner.
    let x: Int
    let y: Int
  }

  /// Sheets of the same grid.
  struct Sheets: Sendable {
    /// File names.
    var names: [String] = []
    var byteCounts: [Int] = []
    let mediaType: String
    let tile: PixelSize
    let columns: Int
    let rows: Int
    /// Of a tile, in milliseconds.
    let interval: Int
    /// In milliseconds.
    let duration: Int

    /// What a whole sheet lasts, in milliseconds.
    var sheetDuration: Int { interval * columns * rows }

    /// What each sheet lasts, in milliseconds. The last one may be shorter.
    var durations: [Int] {
      byteCounts.indices.map { max(1, min(duration - $0 * sheetDuration, sheetDuration)) }
    }

    /// The highest bit rate of a sheet, rounded up (RFC 8216 §4.3.4.2).
    var peakBitRate: Int {
      zip(byteCounts, durations).map { Self.bitRate($0, $1) }.max() ?? 1
    }

    /// The bit rate of the largest sheet over the duration of a whole one, rounded up (DASH-IF IOP 4.3 §6.2.6).
    var bandwidth: Int { Self.bitRate(byteCounts.max() ?? 0, sheetDuration) }

    private static func bitRate(_ bytes: Int, _ milliseconds: Int) -> Int {
      max(1, (bytes * 8000 + milliseconds - 1) / max(1, milliseconds))
    }
  }

  // MARK: Texts

  /// WebVTT with a media fragment (W3C Media Fragments §4.2.2) for each tile, as players read it for previews.
  static func webVTT(_ cells: [Cell], _ sheets: Sheets) -> String {
    var text = "WEBVTT\n"
    for cell in cells {
      text += "\n\(time(cell.start)) --> \(time(cell.end))\n"
      text += "\(uri(sheets.names[cell.sheet]))#xywh=\(cell.x),\(cell.y),"
      text += "\(sheets.tile.width),\(sheets.tile.height)\n"
    }
    return text
  }

  /// An HLS media playlist of images (Image Media Playlist, version 0.4, Disney Streaming and WarnerMedia).
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

  /// The multivariant playlist with the one line that names the playlist of images.
  static func multivariantPlaylist(_ sheets: Sheets, playlist: String) -> String {
    let codec = sheets.mediaType == "image/jpeg" ? "jpeg" : String(sheets.mediaType.dropFirst("image/".count))
    return """
      #EXTM3U
      #EXT-X-VERSION:7
      #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=\(sheets.peakBitRate),RESOLUTION=\(sheets.tile),CODECS="\(codec)",\
      URI="\(uri(playlist))"

      """
  }

  /// A static MPD with one AdaptationSet of tiled images (DASH-IF IOP 4.3 §6.2.6).
  ///
  /// The set has no `id`, which might collide with another one where it is inserted into a presentation's Period.
  ///
  /// - Parameter pattern: The names of the sheets, with a DASH template for the number.
  static func mpd(_ sheets: Sheets, pattern: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" type="static" \
    mediaPresentationDuration="PT\(seconds(sheets.duration))S" minBufferTime="PT\(seconds(sheets.interval))S">
      <Period id="1" start="PT0S">
        <AdaptationSet contentType="image" mimeType="\(sheets.mediaType)">
          <SegmentTemplate media="\(pattern)" startNumber="1" timescale="1000" duration="\(sheets.sheetDuration)"/>
          <Representation id="thumbnails" bandwidth="\(sheets.bandwidth)" \
    width="\(sheets.tile.width * sheets.columns)" height="\(sheets.tile.height * sheets.rows)">
            <EssentialProperty schemeIdUri="http://dashif.org/guidelines/thumbnail_tile" \
    value="\(sheets.columns)x\(sheets.rows)"/>
          </Representation>
        </AdaptationSet>
      </Period>
    </MPD>

    """
  }

  /// A name as a relative reference.
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

  // MARK: BIF

  /// A still in a BIF file.
  struct Image: Sendable {
    /// In units of the interval.
    let slot: Int
    let bytes: [UInt8]
  }

  /// The bytes before the images of a BIF file (Roku's Base Index Frames, version 0): a header of 64 bytes, and the index.
  ///
  /// - Parameter interval: In milliseconds.
  static func bifHeader(_ images: [Image], interval: Int) -> [UInt8] {
    var bytes: [UInt8] = [0x89, 0x42, 0x49, 0x46, 0x0d, 0x0a, 0x1a, 0x0a]
    func add(_ value: Int) {
      let word = UInt32(clamping: value)
      bytes += (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * UInt32($0))) }
    }
    add(0)
    add(images.count)
    add(interval)
    bytes += [UInt8](repeating: 0, count: 64 - bytes.count)
    var offset = 64 + 8 * (images.count + 1)
    for image in images {
      add(image.slot)
      add(offset)
      offset += image.bytes.count
    }
    add(0xffff_ffff)
    add(offset)
    return bytes
  }
}
