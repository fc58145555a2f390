import ReelCore
import ReelPlayback

/// The JSON record of `reel storyboard` for a source.
struct StoryboardRecord: Encodable {
  struct File: Encodable, Sendable {
    let path: String
    /// `sheet`, `vtt`, `bif`, `hls` or `dash`.
    let kind: String
    let bytes: Int
    let width: Int?
    let height: Int?
  }

  /// A key frame.
  struct Frame: Encodable, Sendable {
    /// Its slot begins at `slot * interval`.
    let slot: Int
    /// Of the frame itself, in seconds from `start`.
    let time: Double
    /// Of its packet.
    let bytes: Int

    init(_ tile: Storyboard.Tile) {
      slot = tile.slot
      time = tile.time.seconds.rounded(places: 6)
      bytes = tile.byteCount
    }
  }

  struct Missing: Encodable {
    let slot: Int
    let error: ErrorRecord
  }

  struct Read: Encodable {
    let requests: Int
    /// All body bytes.
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
  /// In seconds.
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
  /// Of the threads that read, decoded, scaled and encoded.
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
    source: String, _ storyboard: Storyboard, _ writer: StoryboardWriter, wall: Duration, processor: Duration
  ) {
    self.source = source
    stills = writer.frames.count
    repeated = writer.repeatedCount == 0 ? nil : writer.repeatedCount
    tileWidth = writer.tileSize?.width
    tileHeight = writer.tileSize?.height
    interval = Double(storyboard.interval) / 1000
    duration = Double(storyboard.duration) / 1000
    start = storyboard.start.seconds.rounded(places: 6)
    live = storyboard.isLive
    files = writer.files
    frames = writer.frames
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
        "\(count) of \(count + writer.frames.count) stills \(count == 1 ? "is" : "are") missing", at: source)
      self.loss = loss
      error = ErrorRecord(loss)
    } else if !storyboard.isLive,
      let fault = storyboard.endFault
        ?? (storyboard.rung == nil ? storyboard.faults.first(where: \.endsReading) : nil)
    {
      // Of a file that is read through, nobody knows how many stills are missing.
      loss = fault
      error = ErrorRecord(fault)
    }
  }
}

/// A storyboard in words.
enum StoryboardText {
  /// `out/clip.vtt	60 stills of 320x180, every 10 s	4 files	read 9.4 MB: key frames 9.1 MB, index 0.2 MB	0.9 s`.
  static func line(_ record: StoryboardRecord) -> String? {
    guard let files = record.files, let stills = record.stills, let interval = record.interval,
      let width = record.tileWidth, let height = record.tileHeight, let read = record.read,
      let wall = record.wallMs, let main = files.first(where: { $0.kind != "sheet" })
    else { return nil }
    var line = "\(main.path.printable)\t\(stills.counted("still")) of \(width)x\(height), every "
    line += "\(interval.formatted(places: 3)) s\t\(files.count.counted("file"))"
    line += "\tread \(megabytes(read.bytes)): key frames \(megabytes(read.keyFrameBytes)), "
    line += "index \(megabytes(read.indexBytes))\t\((wall / 1000).formatted(places: 2)) s"
    if let rung = record.rung { line += "\trung \(rung.printable)" }
    if record.live == true {
      line += "\tlive: the window of \((record.duration ?? 0).formatted(places: 1)) s"
    }
    if let hdr = record.hdr { line += "\t\(hdr.uppercased()), tone mapped" }
    if let missing = record.missing { line += "\t\(missing.count.counted("key frame")) missing" }
    if let repeated = record.repeated { line += "\t\(repeated.counted("tile")) repeated" }
    return line
  }

  private static func megabytes(_ count: Int64) -> String {
    "\((Double(count) / 1e6).formatted(places: count < 100_000 ? 3 : 1)) MB"
  }
}

extension ReelError {
  /// True for an error of a server or of the network, after which nothing more was read.
  fileprivate var endsReading: Bool { [.network, .server, .timedOut].contains(kind) }
}
