public import ReelCore
public import ReelFFmpeg
public import ReelManifest

/// A description of a source: its manifest, its streams and its first frame, as `reel probe` prints them.
public struct SourceDescription: Sendable {
  /// `hls`, `dash`, or the container format of a media file.
  public var kind: String
  /// Whether the source is live.
  public var isLive = false
  /// The duration in seconds. Nil if it is unknown.
  public var duration: Double?
  /// The presentation that the manifest describes. Nil for a media file.
  public var presentation: Presentation?
  /// The rung that was chosen. Nil for a media file, or if no rung can be played.
  public var chosenRung: Rung?
  /// The index of the chosen rung's period, the first one with video. Nil for a media file.
  public var chosenPeriod: Int?
  /// A summary of the chosen rung's segments. Nil for a media file, or if the rung could not be opened.
  public var segments: SegmentSummary?
  /// The streams of the container that was opened. Empty if no frame was decoded.
  public var streams: [StreamInfo] = []
  /// The first frame. Nil if it could not be decoded, or the source holds only images.
  public var firstFrame: FirstFrame?
  /// Why there is no first frame. Nil for a source that holds only images, if these could be described.
  public var failure: ReelError?
  /// The errors that were overcome: the media was left out, or loaded from elsewhere. The first 100 are kept.
  public var faults: [ReelError] = []
  /// How long each stage up to the first frame took.
  public var startup = StartupReport()

  /// The number and durations of a rung's segments.
  public struct SegmentSummary: Sendable, Hashable {
    /// The number of segments; of a live source, those that the manifest names now.
    public var count: Int
    /// The shortest duration in seconds; 0 if there are no segments.
    public var shortest: Double
    /// The longest duration in seconds.
    public var longest: Double
    /// The sum of all durations in seconds.
    public var total: Double
    /// The number of discontinuities between the segments.
    public var discontinuityCount: Int

    init(_ segments: [SegmentReference]) {
      count = segments.count
      (shortest, longest, total, discontinuityCount) = (.infinity, 0, 0, 0)
      var last: Int?
      for segment in segments {
        let seconds = segment.duration.seconds
        shortest = min(shortest, seconds)
        longest = max(longest, seconds)
        total += seconds
        if let last, last != segment.discontinuity { discontinuityCount += 1 }
        last = segment.discontinuity
      }
      if count == 0 { shortest = 0 }
    }
  }

  /// The earliest frame, with the properties of its stream.
  public struct FirstFrame: Sendable, Hashable {
    /// The bytes of the container up to the end of the frame's packet, with the initialization segment.
    public var byteCount: Int64?
    /// The codec's name in libavcodec, such as `h264`.
    public var codec: String
    /// The codec profile's name.
    public var profile: String?
    /// The level as the bitstream states it: 31 is level 3.1 of H.264, 93 is level 3.1 of HEVC.
    public var level: Int?
    /// The pixel format's name in FFmpeg, such as `yuv420p`.
    public var pixelFormat: String
    /// The size as decoded, in pixels.
    public var size: PixelSize
    /// The size upright and with square pixels.
    public var displaySize: PixelSize
    /// The width of a pixel to its height. Nil if it is not stated.
    public var sampleAspectRatio: Rational?
    /// The frame rate in frames per second. Nil if it is not stated.
    public var frameRate: Rational?
    /// The frame's color properties.
    public var color: ColorDescription
    /// The clockwise rotation that makes the frame upright: 0, 90, 180 or 270 degrees.
    public var rotation: Int
    /// Whether the frame is mirrored, before the rotation.
    public var isMirrored: Bool
    /// Whether the frame is interlaced.
    public var isInterlaced: Bool
    /// Whether a reference was missing or parts were concealed.
    public var isDamaged: Bool
    /// The number of frames that the decoder may hold back to reorder them.
    public var reorderDepth: Int
    package var entry: OpeningPicture.Entry?
    /// The frame's time on the timeline of the source, in seconds.
    public var time: Double
    /// The frame's timestamp in the container, in seconds. Nil if it has none.
    public var presentationTime: Double?
    /// The MD5 of the pixels as `ffmpeg -f framemd5` computes it: 32 hexadecimal digits.
    public var md5: String
  }
}
