import ReelCore
import ReelFFmpeg
import ReelPlayback

/// The JSON record of `reel poster` for a source.
struct PosterRecord: Encodable {
  /// The written file.
  struct File: Encodable, Sendable {
    let path: String
    let format: String
    let width: Int
    let height: Int
    /// Nil for Y4M.
    let bytes: Int?
    /// Nil for formats that lose nothing.
    let quality: Int?
  }

  struct Candidate: Encodable {
    let time: Double
    let score: Double
    /// Why it is no good poster.
    let flaws: [String]
    let mean: Double
    let deviation: Double
    let contrast: Double
    let darkShare: Double
    let uniformShare: Double
    let entropy: Double
    let sharpness: Double
    /// Of the frame's packet.
    let bytes: Int

    init(_ candidate: Poster.Candidate) {
      let measures = candidate.measures
      time = candidate.time.seconds.rounded(places: 6)
      score = measures.score.rounded(places: 4)
      flaws = candidate.flaws.map(\.rawValue)
      mean = measures.mean.rounded(places: 4)
      deviation = measures.deviation.rounded(places: 4)
      contrast = measures.contrast.rounded(places: 4)
      darkShare = measures.darkShare.rounded(places: 4)
      uniformShare = measures.uniformShare.rounded(places: 4)
      entropy = measures.entropy.rounded(places: 4)
      sharpness = measures.sharpness.rounded(places: 5)
      bytes = candidate.byteCount
    }
  }

  struct Read: Encodable {
    let requests: Int
    /// All body bytes.
    let bytes: Int64
    let keyFrameBytes: Int64
    let manifestBytes: Int64?
    let initBytes: Int64?

    init(_ traffic: Poster.Traffic) {
      requests = traffic.requestCount
      bytes = traffic.readByteCount
      keyFrameBytes = traffic.keyFrameByteCount
      manifestBytes = traffic.manifestByteCount
      initBytes = traffic.initializationByteCount
    }
  }

  /// Nil in results files, where the source is the `url`.
  let source: String?
  var file: File?
  /// On the timeline of the source.
  var time: Double?
  var pts: Int64?
  var ptsTime: Double?
  /// Why this frame was chosen, in words.
  var why: String?
  /// False if every candidate has flaws.
  var good: Bool?
  /// The index in `candidates`.
  var chosen: Int?
  var candidates: [Candidate]?
  /// `pq` or `hlg` for a source in HDR.
  var hdr: String?
  /// True if HDR was mapped to SDR.
  var toneMapped: Bool?
  /// `video` or `key_frames`: the kind of track that was read; nil for a media file.
  var track: String?
  var rung: String?
  var rungBandwidth: Int?
  var read: Read?
  var startup: StartupRecord?
  var faults: [ErrorRecord]?
  var error: ErrorRecord?

  private enum CodingKeys: String, CodingKey {
    case source, file, time, pts, ptsTime, why, good, chosen, candidates, hdr, toneMapped, track, rung
    case rungBandwidth, read, startup, faults, error
  }

  init(source: String, error: ReelError) {
    self.source = source
    self.error = ErrorRecord(error)
  }

  init(
    source: String?, _ poster: Poster, _ choice: Poster.Choice, hdr handling: StillRenderer.HDRHandling?,
    file: File
  ) {
    self.source = source
    self.file = file
    time = poster.chosen.time.seconds.rounded(places: 6)
    pts = poster.frame.frame.decoded.presentationTicks
    ptsTime = pts == nil ? nil : poster.frame.frame.ptsTime
    why = PosterText.why(poster, choice)
    good = poster.chosen.flaws.isEmpty
    chosen = poster.chosenIndex
    candidates = poster.candidates.map(Candidate.init)
    hdr = poster.frame.frame.decoded.color.hdrTransfer
    toneMapped = hdr == nil ? nil : handling == .sdr
    track = poster.track?.rawValue
    rung = poster.rung?.id
    rungBandwidth = poster.rung?.bitsPerSecond
    read = Read(poster.traffic)
    startup = StartupRecord(poster.startup)
    faults = poster.faults.isEmpty ? nil : poster.faults.map { ErrorRecord($0) }
  }
}

/// A poster in words.
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
      guard flaws.isEmpty else { return "least bad of \(count), \(flaws): no good one" }
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
