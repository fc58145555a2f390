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
    let scope = LoadScope()
    let recorder = StartupRecorder()
    return try await withTaskCancellationHandler {
      defer { scope.cancel() }
      do {
        let opening = try await TrackOpening.prepare(
          source, readsAhead: false, seeks: false, fetcher: fetcher, configuration: configuration, gate: gate,
          logger: logger, scope: scope, recorder: recorder)
        var description = await describe(opening)
        let begun = description
        description = try await BlockingThread.run(named: "probe") {
          var description = begun
          do {
            try addPicture(to: &description, opening: opening, recorder: recorder)
          } catch let error as ReelError {
            description.failure = description.failure ?? error.located(at: source.name)
          }
          return description
        }
        description.startup = recorder.current
        return description
      } catch let error as ReelError {
        throw error.located(at: source.name)
      } catch {
        if scope.isCancelled || Task.isCancelled { throw CancellationError() }
        throw error
      }
    } onCancel: {
      scope.cancel()
    }
  }

  // MARK: - Private

  /// What the manifest tells, the chosen rung's playlist or index included.
  private func describe(_ opening: TrackOpening) async -> SourceDescription {
    guard case .presentation(let presentation, _) = opening.source else {
      guard case .resource(let resource) = opening.source else { return SourceDescription(kind: "") }
      return SourceDescription(kind: resource.format.rawValue)
    }
    var description = SourceDescription(kind: presentation.format.rawValue)
    description.presentation = presentation
    description.isLive = presentation.isLive
    description.duration = presentation.duration?.seconds
    do {
      guard let period = presentation.periods.first else { return description }
      let selector = RungSelector(
        bandwidthCap: configuration.bandwidthCap, maximumHeight: configuration.maximumHeight)
      let rung = try selector.videoRung(in: period)
      description.chosenRung = rung
      let segments = try await opening.resolver.segments(of: rung, variables: presentation.variables)
      description.segments = SourceDescription.SegmentSummary(segments)
      if description.duration == nil, !presentation.isLive { description.duration = segments.end.seconds }
    } catch let error as ReelError {
      description.failure = error.located(at: opening.context.name)
    } catch {}
    return description
  }

  private func addPicture(
    to description: inout SourceDescription, opening: TrackOpening, recorder: StartupRecorder
  ) throws {
    let track = try opening.open()
    let picture = try track.firstPicture()
    guard let picture, let reader = track.picture else {
      throw ReelError(.badMedia, "no picture in the media")
    }
    recorder.add(.segment, track.timing.source)
    recorder.add(.demux, track.timing.demux)
    recorder.add(.decode, track.timing.decode)
    recorder.close()
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
