public import Logging
public import ReelCore
public import ReelFFmpeg
internal import ReelManifest

/// Finds out what sources are: reads their manifest, and decodes their first picture.
public struct SourceProber: Sendable {
  private let fetcher: any Fetching
  private let configuration: LoadingConfiguration
  private let gate: (any DecodingGate)?
  private let logger: Logger

  public init(
    fetcher: any Fetching, configuration: LoadingConfiguration = LoadingConfiguration(),
    gate: (any DecodingGate)? = nil, logger: Logger = Logger(label: "reel.playback")
  ) {
    self.fetcher = fetcher
    self.configuration = configuration
    self.gate = gate
    self.logger = logger
  }

  /// What `source` is. A source that can be read but whose picture can't be decoded is described with its `failure`.
  ///
  /// Throws `ReelError` where not even its kind can be told, or `CancellationError`.
  public func probe(_ source: MediaSource) async throws -> SourceDescription {
    try await TrackOpening.use(
      source, readsAhead: false, seeks: false, fetcher: fetcher, configuration: configuration, gate: gate,
      logger: logger
    ) { opening in
      let (begun, first) = await describe(opening)
      return try await BlockingThread.run(named: "probe") {
        var description = begun
        do {
          try addPicture(to: &description, opening: opening, first: first)
        } catch let error as ReelError {
          description.failure = description.failure ?? error.located(at: source.name)
        }
        description.startup = opening.context.recorder.current
        return description
      }
    }
  }

  // MARK: - Private

  /// What the manifest tells, the chosen rung's playlist or index included.
  private func describe(
    _ opening: TrackOpening
  ) async -> (SourceDescription, (rung: Rung, segments: RungSegments)?) {
    let presentation: Presentation
    switch opening.source {
    case .resource(let resource): return (SourceDescription(kind: resource.format.rawValue), nil)
    case .presentation(let resolved): presentation = resolved.presentation
    }
    var description = SourceDescription(kind: presentation.format.rawValue)
    description.presentation = presentation
    description.isLive = presentation.isLive
    description.duration = presentation.duration?.seconds
    var first: (rung: Rung, segments: RungSegments)?
    do {
      guard let period = presentation.periods(carrying: .main(wantsAudio: false)).first else {
        return (description, nil)
      }
      let selector = RungSelector(configuration)
      let candidates = try selector.candidates(in: period)
      description.chosenRung = candidates.first
      description.chosenPeriod = presentation.periods.firstIndex { $0.hasVideo }
      let (rung, found) = try await opening.resolver.segments(
        ofFirst: candidates, variables: presentation.variables)
      first = (rung, found)
      description.chosenRung = rung
      description.segments = SourceDescription.SegmentSummary(found.list)
      description.isLive = presentation.isLive || found.live != nil
      if description.duration == nil, !description.isLive { description.duration = found.list.end.seconds }
    } catch let error as ReelError {
      description.failure = error.located(at: opening.context.name)
    } catch {}
    return (description, first)
  }

  private func addPicture(
    to description: inout SourceDescription, opening: TrackOpening,
    first: (rung: Rung, segments: RungSegments)?
  ) throws {
    let track = try opening.open(first: first)
    let picture = try track.firstPicture()
    guard let picture, let reader = track.picture else {
      throw ReelError(.badMedia, "no picture in the media")
    }
    opening.context.recorder.close(track.timing)
    description.streams = reader.streams
    if description.presentation == nil {
      description.duration = reader.durationMicroseconds.map { Double($0) / 1e6 }
    }
    let stream = picture.stream
    description.firstPicture = SourceDescription.FirstPicture(
      byteCount: reader.firstPictureEnd, codec: stream.codecName, profile: reader.profileName,
      level: reader.level,
      pixelFormat: picture.frame.pixelFormat, size: picture.frame.size,
      displaySize: picture.geometry().output,
      sampleAspectRatio: picture.sampleAspectRatio, frameRate: picture.frameRate, color: picture.frame.color,
      rotation: stream.rotation, isMirrored: stream.isMirrored, isInterlaced: picture.frame.isInterlaced,
      isDamaged: picture.frame.isDamaged, reorderDepth: reader.reorderDepth, entry: reader.opening?.entry,
      time: picture.time.seconds,
      presentationTime: picture.frame.presentationTicks.map { Double($0) * stream.timeBase.value },
      md5: try picture.frame.md5())
  }
}
