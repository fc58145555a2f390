import Foundation
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelLab
import ReelReading
import ReelSources
import ReelStills

/// The JSON record of `reel poster` for a source.
struct PosterRecord: SourceRecord {
  /// The written file.
  struct File: Encodable, Sendable {
    let path: String
    let format: String
    let width: Int
    let height: Int
    /// Nil for Y4M.
    let bytes: Int?
    /// Nil for lossless formats.
    let quality: Int?
  }

  let source: String
  var file: File?
  /// The time on the timeline of the source.
  var time: Double?
  var pts: Int64?
  var ptsTime: Double?
  /// The reason why this frame was chosen, in words.
  var why: String?
  /// False if every candidate has flaws.
  var good: Bool?
  /// The index in `candidates`.
  var chosen: Int?
  /// Each with its measures, and the reasons why it is not a good poster.
  var candidates: [JSONFields]?
  /// `pq` or `hlg` for a source in HDR.
  var hdr: String?
  /// True if HDR was mapped to SDR.
  var toneMapped: Bool?
  /// `video` or `key_frames`: the kind of track that was read; nil for a media file.
  var track: String?
  var rung: String?
  var rungBandwidth: Int?
  var read: JSONFields?
  var startup: StartupReport?
  var faults: [ErrorRecord]?
  var error: ErrorRecord?

  init(source: String, error: ReelError) {
    self.source = source
    self.error = ErrorRecord(error)
  }

  init(
    source: String, _ poster: Poster, _ choice: Poster.Choice, hdr handling: StillRenderer.HDRHandling?,
    file: File
  ) {
    self.source = source
    self.file = file
    time = poster.chosen.time.roundedSeconds
    pts = poster.frame.presentationTicks
    ptsTime = pts == nil ? nil : poster.frame.ptsTime
    why = PosterText.why(poster, choice)
    good = poster.chosen.flaws.isEmpty
    chosen = poster.chosenIndex
    candidates = poster.candidates.map(Self.candidate)
    hdr = poster.frame.color.hdrTransfer
    toneMapped = hdr == nil ? nil : handling == .sdr
    track = poster.track?.rawValue
    rung = poster.rung?.id
    rungBandwidth = poster.rung?.bitsPerSecond
    let traffic = poster.traffic
    read = [
      "requests": traffic.requestCount, "bytes": traffic.readByteCount,
      "key_frame_bytes": traffic.keyFrameByteCount, "manifest_bytes": traffic.manifestByteCount,
      "init_bytes": traffic.initializationByteCount,
    ]
    startup = poster.startup
    faults = poster.faults.isEmpty ? nil : poster.faults.map { ErrorRecord($0) }
  }

  private static func candidate(_ candidate: Poster.Candidate) -> JSONFields {
    let measures = candidate.measures
    return [
      "time": candidate.time.roundedSeconds, "score": measures.score.rounded(places: 4),
      "flaws": candidate.flaws.map(\.rawValue), "mean": measures.mean.rounded(places: 4),
      "deviation": measures.deviation.rounded(places: 4), "contrast": measures.contrast.rounded(places: 4),
      "dark_share": measures.darkShare.rounded(places: 4),
      "uniform_share": measures.uniformShare.rounded(places: 4),
      "entropy": measures.entropy.rounded(places: 4), "sharpness": measures.sharpness.rounded(places: 5),
      "bytes": candidate.byteCount,
    ]
  }
}

enum PosterText {
  /// `best of 7, 2 rejected: black 1, faded 1`.
  static func why(_ poster: Poster, _ choice: Poster.Choice) -> String {
    let count = poster.candidates.count
    let flaws = flaws(of: poster.chosen)
    switch choice {
    case .first: return flaws.isEmpty ? "first frame" : "first frame, \(flaws)"
    case .at: return flaws.isEmpty ? "at that time" : "at that time, \(flaws)"
    case .best where count == 1: return flaws.isEmpty ? "the only candidate" : "the only candidate, \(flaws)"
    case .best:
      guard flaws.isEmpty else { return "least bad of \(count), \(flaws)" }
      let rejected = poster.candidates.count { !$0.flaws.isEmpty }
      if rejected == 0 { return "best of \(count)" }
      let counts = StillMeasures.Flaw.allCases.compactMap { flaw -> String? in
        let count = poster.candidates.count { $0.flaws.first == flaw }
        return count == 0 ? nil : "\(count) \(flaw.rawValue)"
      }
      return "best of \(count), rejected \(counts.joined(separator: ", "))"
    }
  }

  private static func flaws(of candidate: Poster.Candidate) -> String {
    candidate.flaws.map(\.rawValue).joined(separator: " and ")
  }

  /// `out/clip.jpg	3.000000 s	320x180	best of 7`.
  static func line(_ record: PosterRecord) -> String? {
    guard let file = record.file, let time = record.time, let why = record.why else { return nil }
    var line = "\(file.path.printable)\t\(time.formatted(places: 6)) s\t\(file.width)x\(file.height)\t\(why)"
    if let hdr = record.hdr {
      line += "\t\(hdr.uppercased())" + (record.toneMapped == true ? ", tone mapped" : "")
    }
    return line
  }
}

/// Writes the file of a poster.
struct PosterWriter: Sendable {
  var format: StillFileFormat
  var size: SizeLimit?
  /// Nil for the format's default.
  var quality: Int?
  var byteLimit: Int?
  var hdr = StillRenderer.HDRHandling.sdr

  /// Writes the file. Throws `ReelError`: `unsupported` if the format can't hold the frame, or `cannotCreateOutput` if
  /// the file would be larger than the limit at any quality.
  func write(
    _ frame: VideoFrame, to place: OutputPlace, _ names: FrameNames
  ) throws(ReelError) -> PosterRecord.File {
    var names = names
    let name = names.next(number: 1, time: frame.time)
    let path = place.path(name)
    guard let still = format.still else {
      let writer = Y4MWriter(to: try place.open(name))
      let size = try writer.write(frame)
      try writer.finish()
      return PosterRecord.File(
        path: path, format: format.rawValue, width: size.width, height: size.height,
        bytes: nil, quality: nil)
    }
    let natural = frame.presentationSize
    let image = try StillRenderer().render(
      frame.decoded, geometry: frame.geometry(target: size?.fitted(natural), gravity: .resize),
      orientation: frame.orientation, hdr: hdr)
    let (bytes, quality) = try encoded(image, as: still, path: path)
    try place.write(bytes, to: name)
    return PosterRecord.File(
      path: path, format: format.rawValue, width: image.size.width, height: image.size.height,
      bytes: bytes.count, quality: quality)
  }

  // MARK: - Private

  private func encoded(
    _ image: Still, as format: StillFormat, path: String
  ) throws(ReelError) -> (bytes: [UInt8], quality: Int?) {
    let wanted = quality ?? format.defaultQuality
    guard let byteLimit else {
      return (try StillEncoder.encode(image, as: format, quality: wanted), wanted)
    }
    guard let made = try StillEncoder.encode(image, as: format, quality: wanted, byteLimit: byteLimit) else {
      throw ReelError(
        .cannotCreateOutput,
        "a \(format.rawValue) of \(image.size) has more than \(byteLimit) bytes at any quality", at: path,
        advice: "choose a smaller --size")
    }
    return made
  }
}
