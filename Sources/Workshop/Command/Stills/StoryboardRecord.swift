import ArgumentParser
import Foundation
import ReelCore
import ReelPool
import ReelStills

/// The JSON record of `reel storyboard` for a source.
struct StoryboardRecord: SourceRecord {
  struct File: Encodable, Sendable {
    let path: String
    /// `sheet`, `vtt` or `hls`.
    let kind: String
    let bytes: Int
    let width: Int?
    let height: Int?
  }

  /// A key frame.
  struct Frame: Encodable, Sendable {
    /// The index of its slot, which begins at `slot * interval`.
    let slot: Int
    /// The time of the frame itself, in seconds from `start`.
    let time: Double
    /// The size of its packet.
    let bytes: Int

    init(_ tile: Storyboard.Tile) {
      slot = tile.slot
      time = tile.time.roundedSeconds
      bytes = tile.byteCount
    }
  }

  struct Missing: Encodable {
    let slot: Int
    let error: ErrorRecord
  }

  struct Read: Encodable {
    let requests: Int
    /// The number of all body bytes.
    let bytes: Int64
    let keyFrameBytes: Int64
    let indexBytes: Int64
  }

  let source: String
  /// The number of different stills.
  var stills: Int?
  /// The number of slots that show a neighbour's still, in sheets for HLS and DASH.
  var repeated: Int?
  var tileWidth: Int?
  var tileHeight: Int?
  /// The distance of the stills in seconds.
  var interval: Double?
  var duration: Double?
  /// The time at which the storyboard begins, on the timeline of the source.
  var start: Double?
  var live: Bool?
  var files: [File]?
  var frames: [Frame]?
  /// Key frames that could not be shown.
  var missing: [Missing]?
  /// `pq` or `hlg` for a source in HDR, which was mapped to SDR.
  var hdr: String?
  /// `video` or `key_frames`: the kind of track that was read; nil for a media file.
  var track: String?
  var rung: String?
  var rungBandwidth: Int?
  var read: Read?
  var wallMs: Double?
  /// The processor time of the threads that read, decoded, scaled and encoded.
  var cpuMs: Double?
  var faults: [ErrorRecord]?
  var error: ErrorRecord?
  /// The error of a source with missing stills; nil for a live presentation, whose segments expire.
  private(set) var loss: ReelError?

  private enum CodingKeys: String, CodingKey {
    case source, stills, repeated, tileWidth, tileHeight, interval, duration, start, live, files, frames,
      missing, hdr
    case track, rung, rungBandwidth, read, wallMs, cpuMs, faults, error
  }

  init(source: String, error: ReelError) {
    self.source = source
    self.error = ErrorRecord(error)
  }

  init(
    source: String, _ storyboard: Storyboard.Report, _ writer: StoryboardWriter, frames: [Frame],
    at place: OutputPlace,
    wall: Duration, processor: Duration
  ) {
    self.source = source
    stills = frames.count
    repeated = writer.repeatedCount == 0 ? nil : writer.repeatedCount
    tileWidth = writer.tileSize?.width
    tileHeight = writer.tileSize?.height
    interval = Double(storyboard.interval) / 1000
    duration = Double(storyboard.duration) / 1000
    start = storyboard.start.roundedSeconds
    live = storyboard.isLive
    files = writer.files.map { file in
      File(
        path: place.path(file.name), kind: file.kind, bytes: file.byteCount, width: file.size?.width,
        height: file.size?.height)
    }
    self.frames = frames
    let found = storyboard.missing.map { Missing(slot: $0.slot, error: ErrorRecord($0.error)) }
    missing = found.isEmpty ? nil : found
    hdr = storyboard.hdr
    track = storyboard.track?.rawValue
    rung = storyboard.rung?.id
    rungBandwidth = storyboard.rung?.bitsPerSecond
    let traffic = storyboard.traffic
    read = Read(
      requests: traffic.requestCount, bytes: traffic.readByteCount, keyFrameBytes: traffic.keyFrameByteCount,
      indexBytes: storyboard.indexByteCount)
    wallMs = (wall / .milliseconds(1)).rounded(places: 1)
    cpuMs = (processor / .milliseconds(1)).rounded(places: 1)
    let known = storyboard.faults + [storyboard.endFault].compactMap(\.self)
    faults = known.isEmpty ? nil : known.map { ErrorRecord($0) }
    if let first = storyboard.missing.first, !storyboard.isLive {
      let count = storyboard.missing.count
      let loss = ReelError(
        first.error.kind,
        "\(count) of \(count + frames.count) stills \(count == 1 ? "is" : "are") missing", at: source)
      self.loss = loss
      error = ErrorRecord(loss)
    } else if !storyboard.isLive,
      let fault = storyboard.endFault
        ?? (storyboard.rung == nil ? storyboard.faults.first(where: \.endsReading) : nil)
    {
      // In a file that is read through, the number of missing stills is unknown.
      loss = fault
      error = ErrorRecord(fault)
    }
  }
}

enum StoryboardText {
  /// `out/clip.vtt	60 stills of 320x180, every 10 s	4 files	read 9.4 MB: key frames 9.1 MB, index 0.2 MB	0.9 s`.
  static func line(_ record: StoryboardRecord) -> String? {
    guard let files = record.files, let stills = record.stills, let interval = record.interval,
      let width = record.tileWidth, let height = record.tileHeight, let read = record.read,
      let wall = record.wallMs, let main = files.first(where: { $0.kind != "sheet" })
    else { return nil }
    var line = "\(main.path.printable)\t\(stills.counted("still")) of \(width)x\(height), every "
    line += "\(interval.formatted(places: 3)) s\t\(files.count.counted("file"))"
    line += "\tread \(size(read.bytes)): key frames \(size(read.keyFrameBytes)), "
    line += "index \(size(read.indexBytes))\t\((wall / 1000).formatted(places: 2)) s"
    if let rung = record.rung { line += "\trung \(rung.printable)" }
    if record.live == true {
      line += "\tlive: the window of \((record.duration ?? 0).formatted(places: 1)) s"
    }
    if let hdr = record.hdr { line += "\t\(hdr.uppercased()), tone mapped" }
    if let missing = record.missing { line += "\t\(missing.count.counted("key frame")) missing" }
    if let repeated = record.repeated { line += "\t\(repeated.counted("tile")) repeated" }
    return line
  }

  private static func size(_ count: Int64) -> String {
    ByteSize(byteCount: Int(clamping: count)).description
  }
}

extension ReelError {
  /// True for an error of a server or of the network, after which nothing more was read.
  fileprivate var endsReading: Bool { [.network, .server, .timedOut].contains(kind) }
}

extension StoryboardOutput: ExpressibleByArgument {
  /// The kinds with their descriptions, for the help text.
  static let forms = [
    ("vtt", "sheets, and a WebVTT file that locates the tiles with #xywh"),
    ("hls", "sheets, an image playlist, and a multivariant playlist that refers to it"),
  ]

  /// `vtt,hls`. An `ArgumentParser` transform.
  static func list(_ text: String) throws -> [StoryboardOutput] {
    let words = text.lowercased().split(separator: ",", omittingEmptySubsequences: false)
    let outputs = try words.map { word in
      guard let output = StoryboardOutput(rawValue: word.trimmingPrefix(" ").description) else {
        throw ValidationError("'\(word)' is not an output: use vtt or hls, or both, separated by a comma")
      }
      return output
    }
    return allCases.filter(outputs.contains)
  }
}

extension StoryboardGrid {
  /// `10x10`. An `ArgumentParser` transform.
  static func parse(_ text: String) throws -> StoryboardGrid {
    let parts = text.lowercased().split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
    guard parts.count == 2, let columns = parts[0], let rows = parts[1], (1...1000).contains(columns),
      (1...1000).contains(rows)
    else { throw ValidationError("'\(text)' is not a grid: columns and rows from 1 to 1000, such as 10x10") }
    return StoryboardGrid(columns: columns, rows: rows)
  }
}
