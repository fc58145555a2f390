import ReelCore
import ReelFFmpeg
import ReelReading
import ReelSources

/// The JSON record of `reel frames` for a source.
struct FramesRecord: SourceRecord {
  struct Frame: Encodable, Sendable {
    let path: String
    let pts: Int64?
    let ptsTime: Double
    let timeBase: String
    let time: Double
    let width: Int
    let height: Int
    let keyFrame: Bool
    let damaged: Bool
    /// True for HDR whose samples were written unchanged.
    let hdrNotToneMapped: Bool
    /// True for HDR that was mapped to SDR.
    let toneMapped: Bool
    let md5: String?

    /// - Parameters:
    ///   - path: The path of the frame's file.
    ///   - size: The size of the frame in it.
    ///   - keepsSamples: False if HDR was mapped to SDR.
    init(_ frame: VideoFrame, path: String, size: PixelSize, md5: String?, keepsSamples: Bool) {
      self.path = path
      pts = frame.presentationTicks
      ptsTime = frame.ptsTime
      timeBase = frame.stream.timeBase.description
      time = frame.time.roundedSeconds
      width = size.width
      height = size.height
      keyFrame = frame.isKey
      damaged = frame.isDamaged
      hdrNotToneMapped = keepsSamples && frame.color.isHDR
      toneMapped = !keepsSamples && frame.color.isHDR
      self.md5 = md5
    }
  }

  let source: String
  let frames: [Frame]
  /// The number of frames that missed a reference or were concealed.
  let damaged: Int
  /// Live: the number of segments that could not be loaded, or had left the live window.
  let missedSegments: Int?
  /// The bit rate of the rung that was opened, as the manifest states it.
  let rungBandwidth: Int?
  /// The number of bytes of the container up to the end of the first frame.
  let firstFrameBytes: Int64?
  var startup: StartupReport?
  let error: ErrorRecord?
}

extension FramesRecord {
  /// The record of a source without any written frame.
  init(source: String, error: ReelError) {
    self.init(
      source: source, frames: [], damaged: 0, missedSegments: nil, rungBandwidth: nil, firstFrameBytes: nil,
      startup: nil, error: ErrorRecord(error))
  }
}
