public import Logging
public import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Describes sources: reads the manifest or container, and decodes the first frame.
public struct SourceProber: Sendable {
  /// Fetches manifests and media.
  package var fetcher: any Fetching {
    get { opener.fetcher }
    set { opener.fetcher = newValue }
  }
  private var opener: TrackOpener

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
    self.init(fetcher: fetcher, configuration: configuration, cores: nil, logger: logger)
  }

  /// - Parameter cores: Limits concurrent work among all that share it.
  package init(
    fetcher: any Fetching, configuration: LoadingConfiguration = LoadingConfiguration(),
    cores: CoreGate?, logger: Logger
  ) {
    opener = TrackOpener(fetcher: fetcher, configuration: configuration, cores: cores, logger: logger)
  }

  /// Returns a description of a source. If no frame can be decoded, the description has a
  /// ``SourceDescription/failure``, unless the source holds only images.
  ///
  /// Throws `ReelError` if the source can't be read or its format is unknown, or `CancellationError`.
  public func probe(_ source: MediaSource) async throws -> SourceDescription {
    try await opener.use(source, readsAhead: false) { opening in
      try await describe(opening, source)
    }
  }

  // MARK: - Private

  private func describe(_ opening: TrackOpening, _ source: MediaSource) async throws -> SourceDescription {
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
      description.faults = (reader.faults + [reader.cut].compactMap(\.self)).filter {
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
    let segments = supply.knownIndexes.compactMap { index -> SegmentReference? in
      if case .segment(let segment) = supply.peek(at: index) { segment } else { nil }
    }
    description.segments = SourceDescription.SegmentSummary(segments)
    description.isLive = description.isLive || supply.live != nil
    if description.duration == nil, !description.isLive, let last = segments.last {
      description.duration = (last.start + last.duration).seconds
    }
  }

  private func addFrame(
    to description: inout SourceDescription, from reader: FrameReader, recorder: StartupRecorder
  ) throws {
    guard let frame = try reader.firstFrame(), let decoder = reader.frameDecoder else {
      throw ReelError(.badMedia, "no frame in the media")
    }
    recorder.close(reader.timing)
    description.streams = reader.streams
    if description.presentation == nil {
      description.duration = reader.duration?.seconds
    }
    let stream = frame.stream
    description.firstFrame = SourceDescription.FirstFrame(
      byteCount: reader.firstFrameEnd, codec: stream.codecName, profile: decoder.facts.profileName,
      level: decoder.facts.level,
      pixelFormat: frame.decoded.pixelFormat, size: frame.decoded.size,
      displaySize: frame.geometry().output,
      sampleAspectRatio: frame.sampleAspectRatio, frameRate: frame.frameRate, color: frame.decoded.color,
      rotation: stream.rotation, isMirrored: stream.isMirrored, isInterlaced: frame.decoded.isInterlaced,
      isDamaged: frame.decoded.isDamaged, reorderDepth: decoder.facts.reorderDepth,
      entry: decoder.opening?.entry,
      time: frame.time.seconds,
      presentationTime: frame.decoded.presentationTicks.map { Double($0) * stream.timeBase.value },
      md5: try frame.decoded.md5())
  }
}
