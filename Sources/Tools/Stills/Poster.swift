package import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
package import ReelReading
package import ReelSources

extension StillExtractor {
  /// Finds the frame that represents a source, from few bytes; returns it, and the result of `body` for it.
  ///
  /// It examines the first frame and some key frames after it (`KeyFrameSpread`), each decoded by itself, and
  /// selects the best by `StillMeasures`. Segments, and key frames in the index of a file, are fetched
  /// individually. A source without either is read forward, up to the next key frames. So is one with few
  /// segments, if all of them begin with poor frames.
  ///
  /// - Parameters:
  ///   - recordFirst: Called before further candidates are read. From then on, the time limit of the
  ///     extractor applies.
  ///   - body: Called on a thread that may block.
  ///
  /// Throws the error of `body`, `ReelError` or `CancellationError`. The error's kind is `badMedia` if the
  /// source has no frame, `usage` if the time is after its end, and `unsupported` for Dolby Vision of profile
  /// 5.
  package func poster<Result: Sendable>(
    _ choice: Poster.Choice, of source: MediaSource, recordFirst: @escaping @Sendable () -> Void = {},
    _ body: @escaping @Sendable (Poster) throws -> Result
  ) async throws -> (poster: Poster, result: Result) {
    let counter = TrafficCounter(opener.fetcher, collectsChunks: true)
    var opener = opener
    opener.fetcher = counter
    opener.configuration.shownSize = size
    // The frame at a time may need earlier ones.
    if case .at = choice {
    } else {
      opener.configuration.reading = .keyFrames(endsTransfers: true, skipsRefused: false)
      opener.configuration.skipsDeblocking = true
    }
    if case .best = choice, size != nil { opener.configuration.usesIFramePlaylists = true }
    let (stillLimit, clock) = (stillLimit, clock)
    return try await opener.use(source, readsAhead: false) { opening in
      let opening = if case .best = choice { try await opening.readingIndex() } else { opening }
      return try await BlockingThread.run(
        named: "poster", on: opening.context.scope.runtime, cachesMemory: true
      ) {
        var search = PosterSearch(opening: opening, counter: counter) {
          ReadingLimit(stillLimit, in: opening.context.scope, clock: clock)
        }
        let poster = try search.run(choice, name: source.name, recordFirst: recordFirst)
        return (poster, try body(poster))
      }
    }
  }
}

/// The search for the poster of one source, on its thread.
private struct PosterSearch {
  private let opening: OpenSource
  private let counter: TrafficCounter
  private let reader: FrameReader
  private let makeLimit: () -> ReadingLimit
  /// The limit whose scope all reading uses.
  private var limit: ReadingLimit
  /// The number of candidates that did not arrive in time.
  private var lateCount = 0
  private var candidates: [Poster.Candidate] = []
  private var best: (index: Int, frame: VideoFrame)?
  private var faults: [ReelError] = []

  init(opening: OpenSource, counter: TrafficCounter, makeLimit: @escaping () -> ReadingLimit) {
    self.opening = opening
    self.counter = counter
    self.makeLimit = makeLimit
    limit = makeLimit()
    reader = FrameReader(opening, scope: limit.scope)
  }

  mutating func run(_ choice: Poster.Choice, name: String, recordFirst: () -> Void) throws -> Poster {
    switch choice {
    case .at(let time):
      var found: VideoFrame?
      _ = try FramePicker(reader: reader, recorder: opening.context.recorder, name: name)
        .pick(.times([time])) { found = $0 }
      if let found { try add(found) }
    case .first:
      try addFirst()
    case .best(let count):
      try addFirst()
      if count > 0, best != nil {
        recordFirst()
        try addKeyFrames(count)
      }
    }
    guard let best else { throw ReelError(.badMedia, "no frame in the media", at: name) }
    let order = candidates.indices.sorted { candidates[$0].time < candidates[$1].time }
    return Poster(
      frame: best.frame, candidates: order.map { candidates[$0] },
      chosenIndex: order.firstIndex(of: best.index) ?? 0, traffic: traffic,
      startup: opening.context.recorder.current,
      rung: opening.isIndexedFile
        ? nil : reader.track.map { ($0.rung.id, $0.rung.bitsPerSecond ?? $0.rung.averageBitsPerSecond) },
      track: opening.isIndexedFile ? nil : reader.track.map { $0.rung.stillTrack },
      faults: reader.faults + faults.filter { $0 != reader.source.status.cut }
        + [reader.source.status.cut].compactMap(\.self))
  }

  // MARK: - Private

  private mutating func addFirst() throws {
    guard let frame = try reader.firstFrame() else { return }
    opening.context.recorder.close(reader.timing)
    try add(frame)
  }

  private mutating func add(_ frame: VideoFrame) throws {
    try frame.stream.checkColors()
    let candidate = try Poster.Candidate(frame, byteCount: reader.keyByteCount)
    candidates.append(candidate)
    if let best, !candidate.isBetter(than: candidates[best.index]) { return }
    best = (candidates.count - 1, frame)
  }

  /// Examines further key frames. Unreadable ones are left out.
  private mutating func addKeyFrames(_ count: Int) throws {
    let (spread, reader) = (KeyFrameSpread(count: count), reader)
    var number = 0
    let places = reader.source.keyFramePlaces { place in
      number += 1
      return spread.isEnough(place, number: number)
    }
    if let places {
      let chosen = spread.chosen(of: places)
      reader.source.plan(chosen)
      for place in chosen {
        guard try addKeyFrame({ try reader.seek(to: place, scope: $0) }) else { break }
      }
      // There may be others within the segments.
      guard opening.isPresentation, places.count < count, !hasGood else { return }
      let start = candidates[0].time
      let place = KeyFramePlace(time: start, seekTime: start)
      guard try addKeyFrame({ try reader.seek(to: place, scope: $0) }) else { return }
      try addFollowing(count - candidates.count + 1)
    } else if let start = candidates.first?.time, let indexed = try indexedPlaces() {
      for place in spread.chosen(of: indexed.filter { $0.time > start }) {
        guard try addKeyFrame({ try reader.seek(to: place, scope: $0) }) else { return }
      }
    } else {
      try addFollowing(count)
    }
  }

  /// Reads forward, up to the next key frames of the first part.
  private mutating func addFollowing(_ count: Int) throws {
    let end = candidates.count + count
    var position: MediaTime?
    while candidates.count < end, position.map({ $0 < KeyFrameSpread.length }) ?? true {
      guard try addKeyFrame(record: { position = $0 }) else { return }
    }
  }

  /// The number of late candidates after which no others are tried.
  private static let lateLimit = 2

  private var hasGood: Bool { candidates.contains { $0.flaws.isEmpty } }

  /// Examines the key frame after a seek. Returns false if further attempts are useless.
  ///
  /// - Parameters:
  ///   - seek: Receives the scope to read in; nil to continue reading.
  ///   - record: Receives the frame's time.
  private mutating func addKeyFrame(
    _ seek: ((LoadScope) throws -> Void)? = nil, record: (MediaTime) -> Void = { _ in }
  ) throws -> Bool {
    if seek != nil { limit = makeLimit() }
    let scope = limit.scope
    return try trying { search in
      try seek?(scope)
      guard let frame = try search.reader.keyFrame() else { return false }
      record(frame.time)
      // A seek may lead back to a known frame.
      if search.candidates.contains(where: { $0.time == frame.time }) { return true }
      try search.add(frame)
      return true
    }
      // If a server repeatedly does not answer, stop waiting for it.
      ?? (seek != nil && lateCount < Self.lateLimit)
  }

  /// Calls `body`, which reads from the source, within the time limit.
  ///
  /// Records a fault instead of throwing it. Returns false if the search should stop, and nil if the time ran out.
  private mutating func trying(_ body: (inout PosterSearch) throws -> Bool) throws -> Bool? {
    limit.begin()
    defer { limit.end() }
    do {
      return try body(&self)
    } catch let error as ReelError where error.kind != .internalFault {
      faults.append(error)
      return error.concernsOneResource
    } catch  where limit.isLate && !opening.context.scope.isCancelled {
      faults.append(
        ReelError(
          .timedOut, "nothing came in time",
          at: reader.source.status.segmentURL?.reelName ?? opening.context.name))
      lateCount += 1
      return nil
    }
  }

  /// Returns the key frames in the index of a Matroska file; nil for other sources, and without an index.
  /// None after a fault.
  private mutating func indexedPlaces() throws -> [KeyFramePlace]? {
    guard opening.isMatroska else { return nil }
    var places: [KeyFramePlace]?
    let isRead = try trying { search in
      places = try search.reader.source.allKeyFramePlaces()
      return true
    }
    return isRead == true ? places : []
  }

  private var traffic: Poster.Traffic {
    Poster.Traffic(
      of: opening, counter, fileByteCount: reader.readByteCount,
      keyFrameByteCount: candidates.reduce(0) { $0 + Int64($1.byteCount) })
  }
}

/// The frame that represents a source, and the reasons for its choice.
package struct Poster: Sendable {
  /// The rule for choosing the frame.
  package enum Choice: Sendable, Hashable {
    /// The best of the first frame and this many key frames after it.
    case best(of: Int)
    /// The first frame in presentation order, from as few bytes as possible.
    case first
    /// The frame on show at a time.
    case at(MediaTime)
  }

  /// A frame that was examined.
  package struct Candidate: Sendable {
    /// The time on the timeline of the source.
    package let time: MediaTime
    /// The number of bytes of its packet, as far as known.
    package let byteCount: Int
    package let measures: StillMeasures
    /// The reasons why it is not a good poster; empty if it is one.
    package let flaws: [StillMeasures.Flaw]

    init(_ frame: VideoFrame, byteCount: Int) throws(ReelError) {
      time = frame.time
      self.byteCount = byteCount
      measures = StillMeasures(try LumaPlane(frame.decoded))
      flaws = (frame.isDamaged ? [.damaged] : []) + measures.flaws
    }

    /// Returns true if `self` makes a better poster than `other`: any good one is better than any with flaws,
    /// and otherwise the score decides.
    func isBetter(than other: Candidate) -> Bool {
      flaws.isEmpty != other.flaws.isEmpty ? flaws.isEmpty : measures.score > other.measures.score
    }
  }

  /// The chosen frame.
  package let frame: VideoFrame
  /// All frames that were examined, in order of time; never empty.
  package let candidates: [Candidate]
  /// The index of the chosen one in `candidates`.
  package let chosenIndex: Int
  /// The amount of data that was read.
  package let traffic: Traffic
  /// The duration of each stage up to the first frame.
  package let startup: StartupReport
  /// The id and the bit rate of the rung that was read; nil for a media file.
  package let rung: (id: String, bitsPerSecond: Int?)?
  /// The kind of track that was read; nil for a media file.
  package let track: StillTrack?
  /// The errors despite which the search continued: media that was left out or loaded from elsewhere,
  /// candidates that could not be read.
  package let faults: [ReelError]

  package var chosen: Candidate { candidates[chosenIndex] }

  /// The bytes that a poster required.
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
    ///   - counter: The counter of the opening's requests and bytes.
    ///   - fileByteCount: The number of bytes read from a local file, which is not fetched.
    init(
      of opening: OpenSource, _ counter: TrafficCounter, fileByteCount: Int64, keyFrameByteCount: Int64
    ) {
      self.keyFrameByteCount = keyFrameByteCount
      requestCount = counter.network.requestCount + counter.local.requestCount
      readByteCount = counter.network.byteCount + counter.local.byteCount
      if opening.isPresentation {
        let startup = opening.context.recorder.current
        manifestByteCount = startup[.open].byteCount + startup[.manifest].byteCount
        initializationByteCount = startup[.initialization].byteCount
      } else if opening.isLocal || opening.isPipe {
        requestCount = 1
        readByteCount = fileByteCount
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
  /// The kind of track of its key frames.
  var stillTrack: StillTrack { holdsKeyFramesOnly ? .keyFrames : .video }
}

extension StreamInfo {
  /// Throws `ReelError.unsupported` for colors that can be converted only with the metadata of each frame.
  func checkColors() throws(ReelError) {
    guard dolbyVisionProfile != 5 else {
      throw ReelError(
        .unsupported, "Dolby Vision profile 5: its colors can't be converted without its metadata",
        advice: "choose a source with HDR10, HLG or SDR")
    }
  }
}
