package import ReelCore
package import ReelFFmpeg
internal import ReelManifest

/// The frame of a source that represents it, and why it was chosen.
package struct Poster: Sendable {
  /// Which frame to take.
  package enum Choice: Sendable, Hashable {
    /// The best of the first frame and this many key frames after it.
    case best(of: Int)
    /// The first frame in presentation order, from as few bytes as possible.
    case first
    /// The frame on show at a time.
    case at(MediaTime)
  }

  /// A frame that was looked at.
  package struct Candidate: Sendable {
    /// On the timeline of the source.
    package let time: MediaTime
    /// The number of bytes of its packet, as far as known.
    package let byteCount: Int
    package let measures: StillMeasures
    /// Why it is no good poster; empty if it is one.
    package let flaws: [StillMeasures.Flaw]

    init(_ frame: borrowing TimedFrame, byteCount: Int) throws(ReelError) {
      time = frame.time
      self.byteCount = byteCount
      measures = StillMeasures(try LumaPlane(frame.decoded))
      flaws = (frame.decoded.isDamaged ? [.damaged] : []) + measures.flaws
    }

    /// True if `self` makes a better poster than `other`: any good one is better than any with flaws, then the higher
    /// score is.
    func isBetter(than other: Candidate) -> Bool {
      flaws.isEmpty != other.flaws.isEmpty ? flaws.isEmpty : measures.score > other.measures.score
    }
  }

  /// The chosen frame.
  package let frame: SharedFrame
  /// All frames that were looked at, in order of time; never empty.
  package let candidates: [Candidate]
  /// The index of the chosen one in `candidates`.
  package let chosenIndex: Int
  /// What was read.
  package let traffic: Traffic
  /// How long each stage up to the first frame took.
  package let startup: StartupReport
  /// The id and the bit rate of the rung that was read; nil for a media file.
  package let rung: (id: String, bitsPerSecond: Int?)?
  /// What was read; nil for a media file.
  package let track: StillTrack?
  /// The errors that were overcome: media that was left out or loaded from elsewhere, candidates that could not be read.
  package let faults: [ReelError]

  package var chosen: Candidate { candidates[chosenIndex] }

  /// The bytes that a poster took.
  package struct Traffic: Sendable, Hashable {
    /// The number of requests; opening a local file counts as one.
    package var requestCount = 0
    /// The number of body bytes that were read, decompressed.
    package var readByteCount: Int64 = 0
    /// Of these, the manifest's, with media playlist and index; nil for a media file.
    package var manifestByteCount: Int64?
    /// Of these, the initialization segment's; nil for a media file.
    package var initializationByteCount: Int64?
    /// Of these, the bytes of the key frames themselves.
    package var keyFrameByteCount: Int64 = 0

    /// - Parameters:
    ///   - counter: Counts what the opening fetches.
    ///   - fileByteCount: The number of bytes read from a local file, which is not fetched.
    init(
      of opening: TrackOpening, _ counter: TrafficCounter, fileByteCount: Int64, keyFrameByteCount: Int64
    ) {
      self.keyFrameByteCount = keyFrameByteCount
      requestCount = counter.network.requestCount + counter.local.requestCount
      readByteCount = counter.network.byteCount + counter.local.byteCount
      switch opening.source {
      case .presentation:
        let startup = opening.context.recorder.current
        manifestByteCount = startup[.resolve].byteCount + startup[.manifest].byteCount
        initializationByteCount = startup[.initialization].byteCount
      case .resource(let resource):
        switch resource.access {
        case .file, .standardInput:
          requestCount = 1
          readByteCount = fileByteCount
        case .response where !resource.isRepeatable:
          // A pipe.
          requestCount = 1
          readByteCount = fileByteCount
        case .spooled, .response: break
        }
      }
    }
  }
}

/// The kind of track that stills were taken from.
package enum StillTrack: String, Sendable, Hashable {
  /// Key frames of a rung that can be played.
  case video
  /// A playlist of I-frames (HLS), or a rung for trick mode (DASH).
  case keyFrames = "key_frames"
}

extension Rung {
  /// The kind of track that its key frames make.
  var stillTrack: StillTrack { holdsKeyFramesOnly ? .keyFrames : .video }
}

extension StreamInfo {
  /// Throws `ReelError.unsupported` for colors that only metadata of each frame could convert.
  func checkColors() throws(ReelError) {
    guard dolbyVisionProfile != 5 else {
      throw ReelError(
        .unsupported, "Dolby Vision profile 5: its colors can't be converted without its metadata",
        advice: "choose a source with HDR10, HLG or SDR")
    }
  }
}
