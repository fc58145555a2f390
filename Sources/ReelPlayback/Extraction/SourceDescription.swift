public import ReelCore
public import ReelFFmpeg
public import ReelManifest

/// What a source is: everything that `reel probe` prints.
public struct SourceDescription: Sendable {
  /// `hls`, `dash`, or the container of a media file.
  public var kind: String
  public var isLive = false
  /// In seconds; nil where nothing tells.
  public var duration: Double?
  /// The presentation of a manifest; nil for a media file.
  public var presentation: Presentation?
  /// The rung that is opened.
  public var chosenRung: Rung?
  /// The index of the chosen rung's period, which is the first that has video.
  public var chosenPeriod: Int?
  /// The segments of that rung.
  public var segments: SegmentSummary?
  /// The streams of the container that was opened.
  public var streams: [StreamInfo] = []
  public var firstFrame: FirstFrame?
  /// Why there is no first frame.
  public var failure: ReelError?
  /// What could not be read on the way, and was left out or had from elsewhere.
  public var faults: [ReelError] = []
  public var startup = StartupReport()

  /// How a rung is cut.
  public struct SegmentSummary: Sendable, Hashable {
    public var count: Int
    /// In seconds.
    public var shortest: Double
    public var longest: Double
    public var total: Double
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

  /// The earliest frame, and how the stream begins.
  public struct FirstFrame: Sendable, Hashable {
    /// Bytes of container up to the end of the frame, initialization included.
    public var byteCount: Int64?
    public var codec: String
    public var profile: String?
    /// As the bitstream writes it: H.264 31 and HEVC 93 are 3.1.
    public var level: Int?
    public var pixelFormat: String
    public var size: PixelSize
    /// Upright, with square pixels.
    public var displaySize: PixelSize
    public var sampleAspectRatio: Rational?
    public var frameRate: Rational?
    public var color: ColorDescription
    public var rotation: Int
    public var isMirrored: Bool
    public var isInterlaced: Bool
    public var isDamaged: Bool
    /// Frames that are held back to bring them into order.
    public var reorderDepth: Int
    package var entry: OpeningPicture.Entry?
    /// On the presentation's timeline, and as the media has it, in seconds.
    public var time: Double
    public var presentationTime: Double?
    /// Of the decoded samples.
    public var md5: String
  }
}
