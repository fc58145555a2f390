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
      guard case .presentation(let resolved) = opening.source else {
        return try await describe(opening, source)
      }
      return try await describe(opening, source, resolved.presentation)
    }
  }

  // MARK: - Private

  /// Playlists of images that are read for their layout.
  private static let imagePlaylistLimit = 8

  private enum Part: Sendable {
    case description(SourceDescription)
    case images(Result<RungSegments, ReelError>)
  }

  /// Describes a manifest, and reads its playlists of images at the same time. They are not waited for long when all the
  /// rest is known, unless there is nothing else.
  private func describe(
    _ opening: TrackOpening, _ source: MediaSource, _ presentation: Presentation
  ) async throws -> SourceDescription {
    let rungs = presentation.imagePlaylists.prefix(Self.imagePlaylistLimit)
    guard !rungs.isEmpty else { return try await describe(opening, source) }
    let count = 1 + rungs.count
    let parts = try await Patience.gather(
      count: count, neededCount: presentation.holdsImagesOnly ? count : 1, concurrency: count,
      clock: opening.context.recorder.clock
    ) { index -> Part in
      guard index > 0 else { return .description(try await describe(opening, source)) }
      return .images(
        try await opening.resolver.outcome(of: rungs[index - 1], variables: presentation.variables))
    }
    guard case .description(var description) = parts[0] else { throw CancellationError() }
    description.take(
      rungs.enumerated().map { index, rung in
        if case .images(let outcome) = parts[index + 1] { outcome } else { .failure(rung.lateImages) }
      })
    return description
  }

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
      byteCount: reader.firstFrameEnd, codec: stream.codecName, profile: decoder.profileName,
      level: decoder.level,
      pixelFormat: frame.decoded.pixelFormat, size: frame.decoded.size,
      displaySize: frame.geometry().output,
      sampleAspectRatio: frame.sampleAspectRatio, frameRate: frame.frameRate, color: frame.decoded.color,
      rotation: stream.rotation, isMirrored: stream.isMirrored, isInterlaced: frame.decoded.isInterlaced,
      isDamaged: frame.decoded.isDamaged, reorderDepth: decoder.reorderDepth, entry: decoder.opening?.entry,
      time: frame.time.seconds,
      presentationTime: frame.decoded.presentationTicks.map { Double($0) * stream.timeBase.value },
      md5: try frame.decoded.md5())
  }
}

extension SourceDescription {
  /// Adds what playlists of images state.
  ///
  /// - Parameter outcomes: In the order of the playlists.
  fileprivate mutating func take(_ outcomes: [Result<RungSegments, ReelError>]) {
    var next = outcomes.makeIterator()
    let isAlone = presentation?.holdsImagesOnly == true
    presentation?.updateImagePlaylists { rung in
      guard let outcome = next.next() else { return }
      switch outcome {
      case .failure(let error): faults.append(error)
      case .success(let found):
        if let tiles = found.list.first?.tiles { rung.tiles = tiles }
        if let fault = rung.tiles?.fault {
          faults.append(
            ReelError(.badManifest, "the images of '\(rung.id)': \(fault)", at: found.playlistURL?.reelName))
        }
        rung.media = .segments(found.list)
        guard isAlone else { return }
        isLive = isLive || found.live != nil
        if found.live == nil { duration = max(duration ?? 0, found.list.end.seconds) }
      }
    }
    // Nothing else describes such a source.
    if isAlone, !outcomes.isEmpty, outcomes.allSatisfy({ if case .failure = $0 { true } else { false } }) {
      failure = faults.removeFirst()
    }
  }
}
