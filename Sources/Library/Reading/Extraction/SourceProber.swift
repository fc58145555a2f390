public import Logging
public import ReelCore
public import ReelFFmpeg
public import ReelManifest
public import ReelSources

/// Describes sources: reads the manifest or container, and decodes the first frame.
public struct SourceProber: Sendable {
  private let opener: TrackOpener

  /// Creates a prober.
  ///
  /// - Parameters:
  ///   - fetcher: Fetches manifests and media.
  ///   - configuration: The configuration of loading.
  ///   - logger: Receives the messages of FFmpeg's libraries.
  public init(
    fetcher: any Fetching, configuration: LoadingConfiguration = LoadingConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(
      TrackOpener(fetcher: fetcher, configuration: configuration, limit: .sources, logger: logger))
  }

  /// Creates a prober that opens sources with `opener`.
  package init(_ opener: TrackOpener) { self.opener = opener }

  /// Returns a description of a source. If no frame can be decoded, the description has a
  /// ``SourceDescription/failure``, unless the source contains only images.
  ///
  /// Throws `ReelError` if the source can't be read or its format is unknown, or `CancellationError`.
  public func probe(_ source: MediaSource) async throws -> SourceDescription {
    try await opener.use(source, readsAhead: false) { opening in
      try await describe(opening, source)
    }
  }

  // MARK: - Private

  private func describe(_ opening: OpenSource, _ source: MediaSource) async throws -> SourceDescription {
    try await BlockingThread.run(named: "probe", on: opening.context.scope.runtime) {
      var description = describe(opening.source)
      guard description.presentation?.holdsImagesOnly != true else {
        description.startup = opening.context.recorder.current
        return description
      }
      let reader = FrameReader(opening)
      do {
        try addFrame(to: &description, from: reader, recorder: opening.context.recorder)
      } catch let error as ReelError {
        description.failure = error.located(at: source.name)
      }
      if let track = reader.track { add(track, to: &description) }
      description.faults = (reader.faults + [reader.source.status.cut].compactMap(\.self)).filter {
        $0 != description.failure
      }
      description.startup = opening.context.recorder.current
      return description
    }
  }

  /// Describes the manifest, or names the container.
  private func describe(_ source: ResolvedSource) -> SourceDescription {
    let presentation: Presentation
    switch source {
    case .resource(let resource): return SourceDescription(kind: resource.format.rawValue)
    case .presentation(let resolved): presentation = resolved.presentation
    }
    var description = SourceDescription(kind: presentation.format.rawValue)
    description.presentation = presentation
    description.isLive = presentation.isLive
    description.duration = presentation.duration?.seconds
    if let period = presentation.periods(carrying: .main(wantsAudio: false)).first {
      description.chosenRung = try? RungSelector(opener.configuration).videoRung(in: period)
      description.chosenPeriod = presentation.periods.firstIndex { $0.hasVideo }
    }
    return description
  }

  /// Adds the rung that was opened, and its segments.
  private func add(_ track: RungTrack, to description: inout SourceDescription) {
    description.chosenRung = track.rung
    let supply = track.supply
    let last = supply.knownIndexes.last.flatMap { supply[$0] }
    description.segments = SourceDescription.SegmentSummary(supply)
    description.isLive = description.isLive || supply.timing != nil
    if description.duration == nil, !description.isLive, let last {
      description.duration = (last.start + last.duration).seconds
    }
  }

  private func addFrame(
    to description: inout SourceDescription, from reader: FrameReader, recorder: StartupRecorder
  ) throws {
    guard let frame = try reader.firstFrame(), let decoder = reader.decoder.decoder else {
      throw ReelError(.badMedia, "no frame in the media")
    }
    recorder.close(reader.timing)
    description.streams = reader.source.status.containerStreams
    if description.presentation == nil {
      description.duration = reader.source.streams.duration?.seconds
    }
    let stream = frame.stream
    description.firstFrame = SourceDescription.FirstFrame(
      byteCount: reader.firstFrameEnd, codec: stream.codecName, profile: decoder.facts.profileName,
      level: decoder.facts.level, pixelFormat: frame.pixelFormat, size: frame.size,
      displaySize: frame.presentationSize,
      sampleAspectRatio: frame.sampleAspectRatio, frameRate: frame.frameRate, color: frame.color,
      rotation: stream.rotation, isMirrored: stream.isMirrored, isInterlaced: frame.isInterlaced,
      isDamaged: frame.isDamaged, reorderDepth: decoder.facts.reorderDepth,
      entry: decoder.opening?.entry,
      time: frame.time.seconds,
      presentationTime: frame.presentationTicks.map { Double($0) * stream.timeBase.value },
      md5: try frame.md5())
  }
}

/// A description of a source: its manifest and its streams. For its first frame, use ``FrameExtractor``.
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
  package var chosenPeriod: Int?
  /// A summary of the chosen rung's segments. Nil for a media file, or if the rung could not be opened.
  package var segments: SegmentSummary?
  /// The streams of the container that was opened. Empty if no frame was decoded.
  public var streams: [StreamInfo] = []
  /// The first frame. Nil if it could not be decoded, or the source contains only images.
  package var firstFrame: FirstFrame?
  /// The reason why there is no first frame. Nil for a source with only images, if these could be described.
  public var failure: ReelError?
  /// The errors despite which probing continued: media was left out, or loaded from elsewhere. The first 100
  /// are kept.
  public var faults: [ReelError] = []
  /// The duration of each stage up to the first frame.
  public var startup = StartupReport()

  /// The number and durations of a rung's segments.
  package struct SegmentSummary: Sendable, Hashable {
    /// The number of segments; of a live source, those that the manifest currently lists.
    package var count: Int
    /// The shortest duration in seconds; 0 if there are no segments.
    package var shortest: Double
    /// The longest duration in seconds.
    package var longest: Double
    /// The sum of all durations in seconds.
    package var total: Double
    /// The number of discontinuities between the segments.
    package var discontinuityCount: Int

    /// The number of segments that are looked at: a day of 2 s.
    private static let limit = 50_000

    /// Of a very long list, the durations and discontinuities are those of its beginning, and the total is that from
    /// the first segment to the last.
    init(_ supply: SegmentSupply) {
      let indexes = supply.knownIndexes
      (count, shortest, longest, total, discontinuityCount) = (0, .infinity, 0, 0, 0)
      var last: Int?
      for segment in indexes.prefix(Self.limit).lazy.compactMap({ supply[$0] }) {
        let seconds = segment.duration.seconds
        count += 1
        shortest = min(shortest, seconds)
        longest = max(longest, seconds)
        total += seconds
        if let last, last != segment.discontinuity { discontinuityCount += 1 }
        last = segment.discontinuity
      }
      if indexes.count > Self.limit, let first = supply[indexes.lowerBound],
        let last = supply[indexes.upperBound - 1]
      {
        count = indexes.count
        total = (last.start + last.duration - first.start).seconds
      }
      if count == 0 { shortest = 0 }
    }
  }

  /// The earliest frame, with the properties of its stream.
  package struct FirstFrame: Sendable, Hashable {
    /// The bytes of the container up to the end of the frame's packet, with the initialization segment.
    package var byteCount: Int64?
    /// The codec's name in libavcodec, such as `h264`.
    package var codec: String
    /// The codec profile's name.
    package var profile: String?
    /// The level as the bitstream states it: 31 is level 3.1 of H.264, 93 is level 3.1 of HEVC.
    package var level: Int?
    /// The pixel format's name in FFmpeg, such as `yuv420p`.
    package var pixelFormat: String
    /// The size as decoded, in pixels.
    package var size: PixelSize
    /// The size upright and with square pixels.
    package var displaySize: PixelSize
    /// The ratio of pixel width to pixel height. Nil if it is not stated.
    package var sampleAspectRatio: Rational?
    /// The frame rate in frames per second. Nil if it is not stated.
    package var frameRate: Rational?
    /// The frame's color properties.
    package var color: ColorDescription
    /// The clockwise rotation that makes the frame upright: 0, 90, 180 or 270 degrees.
    package var rotation: Int
    /// Whether the frame is mirrored, before the rotation.
    package var isMirrored: Bool
    package var isInterlaced: Bool
    /// Whether a reference was missing or parts were concealed.
    package var isDamaged: Bool
    /// The number of frames that the decoder may hold back to reorder them.
    package var reorderDepth: Int
    package var entry: OpeningPicture.Entry?
    /// The frame's time on the timeline of the source, in seconds.
    package var time: Double
    /// The frame's timestamp in the container, in seconds. Nil if it has none.
    package var presentationTime: Double?
    /// The MD5 of the pixels as `ffmpeg -f framemd5` computes it: 32 hexadecimal digits.
    package var md5: String
  }
}
