internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelReading
internal import ReelRules
internal import ReelSources

/// Reads one source: its start as a player opens it, then each rung alone. What was measured so far can be taken at any
/// time, so that a source that takes too long is judged by what is known.
final class SourceReading: Sendable {
  private let source: MediaSource
  private let fetcher: RequestLog
  private let recording: StartRecording
  private let configuration: LoadingConfiguration
  private let options: CheckOptions
  private let logger: Logger
  private let clock = SystemMonotonicClock()
  /// The time of the clock at which reading ends; nil for no limit.
  private let end: Duration?
  private let state = Locked(StreamFacts())

  /// The number of rungs that are read at once.
  private static let concurrency = 4
  /// The number of sizes that are requested at once, and the most for one rung.
  private static let sizeConcurrency = 8
  private static let sizeLimit = 400
  private static let segmentByteLimit = 256 << 20
  /// With `Sample.start`, the most bytes of a first segment that are read, and of those of all rungs together.
  private static let beginningByteCount = 192 << 10
  private static let allBeginningsByteCount = 800_000
  /// The parts of the time left that the start, and then the playlists and indexes, may take.
  private static let startShare = 0.4
  private static let listShare = 0.5
  /// How long a server may take before others are asked meanwhile, and the least time after which it counts as silent.
  private static let patience = Duration.seconds(1)
  /// A server that takes longer than this is at fault, however short the time limit is: players give up then.
  private static let playerPatience = 10.0
  /// The same for one that takes this many times as long as for other segments, and at least these seconds.
  private static let usualTimes = 4.0
  private static let leastPatience = 2.0

  /// - Parameter end: The time of the system's monotonic clock at which reading ends; nil for no limit.
  init(
    _ source: MediaSource, fetcher: RequestLog, recording: StartRecording,
    configuration: LoadingConfiguration, options: CheckOptions, end: Duration?, logger: Logger
  ) {
    self.source = source
    self.fetcher = fetcher
    self.recording = recording
    self.configuration = configuration
    self.options = options
    self.end = end
    self.logger = logger
  }

  /// What was measured so far.
  var facts: StreamFacts { state.withLock { $0 } }

  /// What was measured if reading ends now. Of a rung that is being read, only the silence of its server is known for
  /// certain.
  ///
  /// - Parameters:
  ///   - reason: A clause without a full stop.
  ///   - isTimeUp: False for an interruption, for which servers are not to blame.
  func facts(endedBecause reason: String, isTimeUp: Bool) -> StreamFacts {
    var facts = facts
    for index in facts.rungs.indices where facts.rungs[index].status == .unread {
      let rung = facts.rungs[index]
      if isTimeUp, !rung.hasAnswered, let pending = rung.pending, isSilent(pending) {
        var sample = SegmentFacts(index: pending.index)
        sample.failure = silence(pending, in: rung)
        facts.rungs[index].samples[pending.index] = sample
      }
      if !rung.hasAnswered, !facts.rungs[index].samples.isEmpty {
        facts.rungs[index].status = .read
      } else if !rung.segments.isEmpty || facts.presentation == nil {
        facts.rungs[index].status = .cutOff(reason)
      }
    }
    return facts
  }

  /// Reads the source. Throws `ReelError` if it can't be opened, or `CancellationError`.
  func run() async throws {
    let documents = Locked<[LoadedManifest.Document]>([])
    let opener = TrackOpener(fetcher: fetcher, configuration: configuration, logger: logger)
    let loaded = try await opener.use(
      source, readsAhead: false, recording: { document in documents.withLock { $0.append(document) } }
    ) { opening -> LoadedManifest? in
      if isReadOnce, !opening.isPresentation {
        // The start of what can be read only once is not replayed.
        _ = try await readFile(opening, wantsVideo: true)
        return nil
      }
      if let format = opening.manifestFormat { change { $0.format = format.rawValue } }
      try await readStart(opening)
      fetcher.endStart()
      recording.close()
      guard opening.isPresentation else { return nil }
      return try await opening.loadManifest(until: time(for: Self.listShare), documents)
    }
    if let loaded {
      try await readRungs(of: loaded)
    } else if !isReadOnce {
      let hasVideo = try await opener.use(source, readsAhead: true) {
        try await readFile($0, wantsVideo: true)
      }
      if !hasVideo {
        // A response can be read only once.
        _ = try await opener.use(source, readsAhead: true) { try await readFile($0, wantsVideo: false) }
      }
    }
    let probe = ServerProbe(
      log: fetcher, headers: configuration.headers(of: source.url), thresholds: options.thresholds)
    try await probe.run(facts)
  }

  // MARK: - Private

  /// True for standard input and for pipes.
  private var isReadOnce: Bool {
    guard case .url(let url) = source else { return true }
    guard url.isFileURL else { return false }
    var status = stat()
    // Through links: a shell names its pipes by those in /dev/fd.
    return stat(url.path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
  }

  private func change(_ body: (inout StreamFacts) -> Void) { state.withLock { body(&$0) } }

  /// The time of the clock at which a share of the time left has passed; nil without a limit.
  private func time(for share: Double) -> Duration? {
    end.map { end in
      let now = clock.now
      return now + max(.zero, end - now) * share
    }
  }

  // MARK: Start

  /// Decodes the first frame, as a player does that opens the source.
  private func readStart(_ opening: OpenSource) async throws {
    let (name, scope, began) = (source.name, opening.context.scope, clock.now)
    let read = { @Sendable () async throws -> StartFacts in
      try await BlockingThread.run(named: "check", on: scope.runtime, cachesMemory: true) {
        let reader = FrameReader(opening, beginsAsPlayer: true)
        guard let frame = try reader.firstFrame() else {
          throw ReelError(.badMedia, "no frame in the media", at: name)
        }
        var start = StartFacts()
        start.rung = reader.track?.rung.id
        start.firstFrameEnd = reader.firstFrameEnd
        start.mediaURL = reader.source.status.segmentURL
        start.codec = frame.stream.videoCodec
        start.pixelCount = frame.size.width * frame.size.height
        start.reorderDepth = reader.reorderDepth
        if let rate = frame.frameRate?.value, rate > 1 { start.frameDuration = 1 / rate }
        return start
      }
    }
    do {
      guard let start = try await TimeLimit.run(until: time(for: Self.startShare), on: clock, read) else {
        // Its transfers and its thread end.
        scope.cancel()
        throw ReelError(.timedOut, "no first frame within \((clock.now - began).text)")
      }
      change { $0.start = start }
    } catch let error as ReelError {
      change { $0.startFailure = error.located(at: name) }
    }
  }

  // MARK: Rungs

  private func readRungs(of loaded: LoadedManifest) async throws {
    let presentation = loaded.presentation
    let (violations, rungs, plan) = try await BlockingThread.run(named: "check") {
      [configuration, options] in
      let violations = loaded.documents.flatMap { document in
        RuleChecker(limits: configuration.manifestLimits).violations(
          in: document.bytes, format: document.format, url: document.url)
      }
      let rungs = RungList.rungs(of: loaded, options.rungs)
      return (violations, rungs, SamplePlan(rungs, options))
    }
    let omitted = rungs.reduce(0) { $0 + $1.omittedCount }
    change { facts in
      if omitted > 0 {
        let words = presentation.isLive ? "oldest" : "last"
        facts.notChecked.append(
          NotChecked(nil, "the manifest lists too many segments: the \(words) \(omitted) were left out"))
      }
      facts.format = presentation.format.rawValue
      facts.url = loaded.url
      facts.isLive = presentation.isLive
      facts.duration = presentation.duration?.seconds
      facts.presentation = presentation
      facts.rungs = rungs
      facts.violations = violations
    }
    if plan.isCut {
      change { $0.notChecked.append(NotChecked(nil, "the budget of bytes does not reach all samples")) }
    }
    let scope = LoadScope()
    let segments = SegmentFetcher(
      loaded, configuration: configuration, name: source.name, scope: scope, logger: logger)
    try await withTaskCancellationHandler {
      defer { scope.cancel() }
      try await forEach(
        rungs.indices.filter { rungs[$0].isToBeRead }, atOnce: Self.concurrency,
        isWaiting: { index in self.pending(of: index).map(self.isSilent) ?? false }
      ) { index in
        try await self.read(index, plan.indices[index], segments)
      }
      if options.sample != .start { try await readSizes(rungs, segments) }
      if let seconds = options.watch, facts.isLive {
        _ = try await LiveWatch(facts, fetcher: loaded.fetcher, configuration: configuration)
          .run(for: seconds) { live in self.change { $0.live = live } }
      }
    } onCancel: {
      scope.cancel()
    }
  }

  /// Reads the samples of a rung: neighbours are decoded one after the other.
  private func read(_ rung: Int, _ indices: [Int], _ fetcher: SegmentFetcher) async throws {
    let facts = state.withLock { $0.rungs[rung] }
    let meter = MediaMeter(
      name: source.name, logger: logger, stillChange: Float(options.thresholds.normalized(.frozenChange)),
      scope: fetcher.scope)
    var silentCount = 0
    reading: for run in SamplePlan.runs(of: indices, in: facts.segments) {
      var medias: [MediaMeter.Media] = []
      for index in run {
        try Task.checkCancellation()
        let (sample, media) = try await read(index, of: rung, facts, fetcher, meter)
        silentCount = sample.failure?.isUnanswered == true ? silentCount + 1 : 0
        change { all in
          all.rungs[rung].samples[index] = sample
          if let reason = sample.refusal(in: facts) { all.rungs[rung].status = .excused(reason) }
          if sample.byteCount > 0,
            let size = sample.promisedByteCount ?? (sample.isPartial ? nil : sample.byteCount)
          {
            all.rungs[rung].sizes[index] = size
          }
        }
        if let media { medias.append(media) }
        if sample.failure != nil || sample.truncation != nil {
          // What follows something that is missing is not blamed for it.
          try await decode(&medias, of: rung, meter)
        }
        // A server that is silent is not asked for everything.
        if silentCount == Self.silenceCount, !hasAnswered(rung) { break reading }
      }
      try await decode(&medias, of: rung, meter)
    }
    change { facts in
      facts.rungs[rung].pending = nil
      if facts.rungs[rung].status == .unread { facts.rungs[rung].status = .read }
      guard facts.rungs[rung].hasAnswered else { return }
      // A server that is slow with all segments may only be slower than a short time limit allows.
      let slowest = facts.rungs[rung].samples.values.compactMap(\.fetchTime).max() ?? 0
      let patience = min(Self.playerPatience, max(Self.usualTimes * slowest, Self.leastPatience))
      let given = facts.rungs[rung].samples.values.filter {
        $0.failure?.error.kind == .timedOut && $0.failure?.waited ?? .infinity < patience
      }
      for sample in given.sorted(by: { $0.index < $1.index }) {
        facts.rungs[rung].samples[sample.index] = nil
        let reason = "segment \(sample.index + 1): \(sample.failure?.error.reason ?? "not there in time")"
        facts.notChecked.append(NotChecked(.segmentMissing, rung: facts.rungs[rung].name, reason))
      }
    }
  }

  /// The number of samples that a silent server is asked for.
  private static let silenceCount = 2

  // MARK: Silence

  private func pending(of rung: Int) -> PendingSegment? {
    state.withLock { $0.rungs.indices.contains(rung) ? $0.rungs[rung].pending : nil }
  }

  private func hasAnswered(_ rung: Int) -> Bool { state.withLock { $0.rungs[rung].hasAnswered } }

  /// True if its server does not answer, or next to nothing comes.
  private func isSilent(_ pending: PendingSegment) -> Bool {
    let waited = clock.now - pending.began
    return waited >= Self.patience && TransportFindings.isSilence(pending.byteCount, within: waited)
  }

  /// The failure of a fetch whose server is silent.
  private func silence(_ pending: PendingSegment, in rung: RungFacts) -> SegmentFailure {
    let waited = clock.now - pending.began
    let what =
      switch pending.part {
      case .segment: "answer"
      case .initialization: "initialization"
      case .key: "key"
      }
    var failure = SegmentFailure(
      pending.part, .status,
      ReelError(
        .timedOut,
        pending.byteCount == 0
          ? "no \(what) within \(waited.text)" : "only \(pending.byteCount) bytes within \(waited.text)",
        at: rung.segments[pending.index].url.reelName))
    failure.waited = waited / .seconds(1)
    return failure
  }

  /// Fetches what a sample consists of; nil if that takes half of the time left, and the server is silent.
  private func fetchUnlessSilent<Result: Sendable>(
    _ rung: Int, _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result? {
    guard let end = time(for: 0.5) else { return try await body() }
    let least = clock.now + Self.patience
    return try await TimeLimit.run(
      until: max(least, end), on: clock,
      extended: { [clock] in
        let isSilent = self.pending(of: rung).map(self.isSilent) ?? false
        return isSilent ? nil : clock.now + Self.patience / 2
      }, body)
  }

  private func decode(_ medias: inout [MediaMeter.Media], of rung: Int, _ meter: MediaMeter) async throws {
    guard !medias.isEmpty else { return }
    let run = options.sample == .start ? medias.map(\.beginning) : medias
    medias = []
    let content = try await BlockingThread.run(named: "check", cachesMemory: true) { meter.decode(run) }
    change { facts in
      if let failure = content.failure, failure.kind == .unsupported {
        facts.rungs[rung].status = .excused(Unjudged(failure))
      }
      facts.rungs[rung].content.append(content)
    }
  }

  /// What a sample consists of, or the part that failed.
  private enum Fetched: Sendable {
    case segment(initialization: [UInt8], SegmentFetcher.Content)
    case failure(SegmentFailure.Part, SegmentFailure.Reason, ReelError)
  }

  /// Fetches the key, the initialization and the bytes of a segment. Says what it waits for.
  private func fetch(
    _ index: Int, of place: Int, _ rung: RungFacts, _ fetcher: SegmentFetcher
  ) async throws -> Fetched {
    let segment = rung.segments[index]
    func begin(_ part: SegmentFailure.Part) throws {
      // Something else may be pending by then.
      try Task.checkCancellation()
      change { $0.rungs[place].pending = PendingSegment(index: index, part: part, began: clock.now) }
    }
    var part = SegmentFailure.Part.key
    do {
      try begin(part)
      try await fetcher.key(of: segment)
      part = .initialization
      try begin(part)
      var initialization = try await fetcher.initialization(of: segment)
      if segment.initialization != nil, initialization.isEmpty {
        return .failure(part, .empty, ReelError(.badMedia, "the initialization is empty"))
      }
      if let range = segment.initialization?.byteRange, segment.initialization?.url == segment.url,
        let media = rung.segments.lazy.compactMap(\.byteRange?.offset).min(), media > range.offset
      {
        // A range that reaches into the media would give that twice.
        initialization = Array(initialization.prefix(Int(clamping: media - range.offset)))
      }
      part = .segment
      try begin(part)
      let isBeginning = options.sample == .start
      let content = try await fetcher.content(
        of: segment, after: initialization,
        upTo: isBeginning ? beginningByteCount : Self.segmentByteLimit, cutsOff: isBeginning
      ) { count in
        self.change { $0.rungs[place].pending?.byteCount = count }
      }
      return .segment(initialization: initialization, content)
    } catch let error as ReelError {
      return .failure(part, .init(error), error)
    }
  }

  /// Reads one segment.
  ///
  /// - Parameter place: The index of the rung.
  private func read(
    _ index: Int, of place: Int, _ rung: RungFacts, _ fetcher: SegmentFetcher, _ meter: MediaMeter
  ) async throws -> (SegmentFacts, MediaMeter.Media?) {
    let segment = rung.segments[index]
    let began = clock.now
    var facts = SegmentFacts(index: index)
    func failure(
      _ part: SegmentFailure.Part, _ reason: SegmentFailure.Reason, _ error: ReelError
    ) -> SegmentFailure {
      var failure = SegmentFailure(part, reason, error.located(at: segment.url.reelName))
      failure.waited = (clock.now - began) / .seconds(1)
      return failure
    }
    let fetched = try await fetchUnlessSilent(place) {
      try await self.fetch(index, of: place, rung, fetcher)
    }
    guard let fetched else {
      if let pending = pending(of: place) { facts.failure = silence(pending, in: rung) }
      return (facts, nil)
    }
    change { $0.rungs[place].pending = nil }
    switch fetched {
    case .failure(let part, let reason, let error):
      facts.failure = failure(part, reason, error)
      return (facts, nil)
    case .segment(let initialization, let content):
      facts.fetchTime = (clock.now - began) / .seconds(1)
      facts.byteCount = Int64(content.bytes.count)
      // The padding of a segment that is encrypted as a whole is not in its bytes.
      facts.promisedByteCount = content.isDecrypted ? nil : content.statedByteCount
      facts.isPartial = content.isCut
      if let (reason, error) = Self.fault(of: content) {
        facts.failure = failure(.segment, reason, error)
        return (facts, nil)
      }
      if let damage = content.damage { facts.truncation = damage.reason }
      let keys = fetcher.sampleKeys(of: segment, protection: rung.declared?.protection)
      let fetchedFacts = facts
      return try await BlockingThread.run(named: "check", cachesMemory: true) {
        try Self.demux(initialization, content, of: segment, keys, in: rung, fetchedFacts, meter)
      }
    }
  }

  /// Why the content of a segment is not read as media; nil if it is.
  private static func fault(of content: SegmentFetcher.Content) -> (SegmentFailure.Reason, ReelError)? {
    guard !content.bytes.isEmpty else { return (.empty, ReelError(.badMedia, "the segment is empty")) }
    let start = Array(content.bytes.prefix(SourceSniffer.largestByteCount))
    let error: ReelError?
    switch SourceSniffer.kind(of: start) {
    case .other(let what, let found) where TextFormat.isText(start):
      error = ReelError(found: found, "not media: \(what)")
    case .manifest: error = ReelError(found: .notMedia, "not media: a manifest")
    default: error = content.fault
    }
    return error.map { (.init($0), $0) }
  }

  /// Demuxes a segment, and adds what is found to `facts`.
  private static func demux(
    _ initialization: [UInt8], _ content: SegmentFetcher.Content, of segment: SegmentReference,
    _ keys: any SampleKeys, in rung: RungFacts, _ facts: SegmentFacts, _ meter: MediaMeter
  ) throws -> (SegmentFacts, MediaMeter.Media?) {
    let bytes = initialization + content.bytes
    var found = facts
    do {
      let media = try meter.demux(
        bytes, at: segment.start, keys: keys, wantsVideo: rung.wantsVideo, into: &found)
      // Bytes after complete media are harmless.
      if let skipped = media.skippedBytes,
        !media.endsWithSkippedBytes || media.duration < segment.duration.seconds - 0.1
      {
        found.readingFault = ReelError(.badMedia, skipped, at: segment.url.reelName)
      }
      return (found, media)
    } catch let error as ReelError {
      // A track that is missing is found by comparing with what the manifest says.
      if rung.wantsVideo, error.kind == .badMedia {
        var other = facts
        if let media = try? meter.demux(
          bytes, at: segment.start, keys: keys, wantsVideo: false, into: &other)
        {
          return (other, media)
        }
      }
      if found.video == nil, found.audio == nil {
        let isOfInitialization =
          !initialization.isEmpty && !content.isDecrypted && isUnreadable(initialization)
        found.failure = SegmentFailure(
          isOfInitialization ? .initialization : .segment, .init(error),
          error.located(at: segment.url.reelName))
      } else {
        found.readingFault = error.located(at: segment.url.reelName)
      }
      return (found, nil)
    }
  }

  private var beginningByteCount: Int {
    let count = state.withLock { $0.rungs.count(where: \.isToBeRead) }
    return min(Self.beginningByteCount, Self.allBeginningsByteCount / max(1, count))
  }

  /// True if the bytes are no initialization of MP4 with a `moov` box.
  private static func isUnreadable(_ bytes: [UInt8]) -> Bool {
    bytes.firstRange(of: Array("moov".utf8)) == nil || bytes.firstRange(of: Array("stsd".utf8)) == nil
  }

  /// Asks for the sizes of segments that were not read.
  private func readSizes(_ rungs: [RungFacts], _ fetcher: SegmentFetcher) async throws {
    for (place, rung) in rungs.enumerated() where rung.isToBeRead {
      let known = state.withLock { $0.rungs[place] }
      var missing = rung.segments.indices.filter {
        known.samples[$0] == nil && known.sizes[$0] == nil && rung.isRequested($0)
      }
      if missing.count > Self.sizeLimit {
        let words =
          "\(missing.count - Self.sizeLimit) segments were not asked for: only \(Self.sizeLimit) are"
        change { $0.notChecked.append(NotChecked(nil, rung: rung.name, words)) }
        missing = Array(missing.prefix(Self.sizeLimit))
      }
      try await forEach(missing, atOnce: Self.sizeConcurrency) { index in
        let segment = rung.segments[index]
        do {
          let count = try await fetcher.byteCount(of: segment)
          self.change { $0.rungs[place].sizes[index] = count }
        } catch let error as ReelError {
          var facts = SegmentFacts(index: index)
          facts.failure = SegmentFailure(
            .segment, .init(error), error.located(at: segment.url.reelName))
          self.change { [facts] in $0.rungs[place].samples[index] = facts }
        }
      }
    }
  }

  /// Runs `body` for each index, some at once.
  ///
  /// - Parameter isWaiting: True for an index whose server is silent. Another one is begun beside it.
  private func forEach(
    _ indices: [Int], atOnce count: Int, isWaiting: @escaping @Sendable (Int) -> Bool = { _ in false },
    _ body: @escaping @Sendable (Int) async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Int?.self) { group in
      var (next, running, hasTimer) = (indices.startIndex, Set<Int>(), false)
      while true {
        let busyCount = running.count { !isWaiting($0) }
        for index in indices[next...].prefix(max(0, count - busyCount)) {
          running.insert(index)
          next += 1
          group.addTask {
            try await body(index)
            return index
          }
        }
        if running.isEmpty { break }
        // Nil for a look at who waits.
        if next < indices.endIndex, !hasTimer {
          hasTimer = true
          group.addTask { [clock] in
            try await clock.sleep(for: Self.patience / 2)
            return nil
          }
        }
        guard let ended = try await group.next() else { break }
        if let ended { running.remove(ended) } else { hasTimer = false }
      }
      group.cancelAll()
    }
  }

  // MARK: Files

  /// Reads a media file as the one segment of the one rung. Returns false if it has no video, but other streams.
  private func readFile(_ opening: OpenSource, wantsVideo: Bool) async throws -> Bool {
    let meter = MediaMeter(
      name: source.name, logger: logger, stillChange: Float(options.thresholds.normalized(.frozenChange)),
      scope: opening.context.scope)
    let (sample, name, state) = (options.sample, source.name, state)
    change { facts in
      facts.rungs = [RungFacts(name: "file", kind: .video)]
      facts.rungs[0].sizes = [nil]
    }
    var outcome = try await BlockingThread.run(
      named: "check", on: opening.context.scope.runtime, cachesMemory: true
    ) { () -> FileOutcome in
      var outcome = FileOutcome(segment: SegmentFacts(index: 0))
      do {
        guard let container = try opening.container(wantsVideo: wantsVideo) else { return outcome }
        outcome.format = container.format.rawValue
        outcome.duration = container.durationMicroseconds.map { Double($0) / 1e6 }
        state.withLock { [outcome] facts in
          facts.format = outcome.format
          facts.duration = outcome.duration
        }
        try FileMeter(meter: meter, container: container, sample: sample).read(into: &outcome)
      } catch let error as ReelError {
        if outcome.segment.video == nil, outcome.segment.audio == nil {
          outcome.segment.failure = SegmentFailure(.segment, .init(error), error.located(at: name))
        } else {
          outcome.segment.readingFault = error.located(at: name)
        }
      }
      return outcome
    }
    let isOther = outcome.segment.failure?.error.found == .neitherVideoNorAudio
    let other = isOther ? outcome.segment.failure.map { Unjudged(.unsupported, $0.error.reason) } : nil
    if isOther { outcome.segment.failure?.reason = .unsupported }
    let refusal =
      other ?? outcome.segment.refusal()
      ?? outcome.content.lazy.compactMap(\.failure).first { $0.kind == .unsupported }.map { Unjudged($0) }
    let hasNoVideo = outcome.segment.failure?.error.kind == .badMedia && refusal != nil
    if wantsVideo, hasNoVideo, !isReadOnce { return false }
    change { facts in
      facts.format = outcome.format
      facts.duration = outcome.duration
      facts.rungs[0].samples[0] = outcome.segment
      facts.rungs[0].content = outcome.content
      if let size = outcome.content.lazy.flatMap(\.frames).first?.presentationSize {
        facts.rungs[0].name = "\(min(size.width, size.height))p"
      }
      if !wantsVideo { facts.rungs[0].kind = .audio }
      facts.rungs[0].status = refusal.map { .excused($0) } ?? .read
    }
    return true
  }
}

/// What was measured of a media file.
struct FileOutcome: Sendable {
  var format = ""
  var duration: Double?
  var segment: SegmentFacts
  var content: [ContentFacts] = []
}

/// Reads a media file: all of a short one; of a longer one the beginning, the middle and the end.
struct FileMeter {
  let meter: MediaMeter
  let container: ContainerReader
  let sample: CheckOptions.Sample

  /// The seconds of a file that is read as a whole.
  private static let wholeDuration = 24.0
  /// The seconds of each part of a longer one.
  private static let partDuration = 6.0
  /// The largest number of bytes of a part, and of a file that is read as a whole. They are held in memory.
  private static let partByteLimit = 256 << 20
  private static let wholeByteLimit = 1 << 30

  func read(into outcome: inout FileOutcome) throws {
    let duration = container.durationMicroseconds.map { Double($0) / 1e6 }
    let isWhole = sample == .all || duration.map { $0 <= Self.wholeDuration } ?? false
    let length: Double? = isWhole ? nil : sample == .start ? 0 : Self.partDuration
    try readPart(from: nil, length: length, into: &outcome)
    outcome.segment.truncation = container.cut
    guard !isWhole, sample != .start, let duration, container.isSeekable, let video = container.video else {
      return
    }
    for start in [duration / 2, duration - Self.partDuration] {
      let ticks = Int64(start / video.timeBase.value)
      guard try container.seek(toKeyFrameAtOrBefore: ticks, of: video) else { return }
      try readPart(from: start, length: Self.partDuration, into: &outcome)
    }
    outcome.segment.truncation = container.cut
  }

  /// True if media is as long as the file states.
  private func isComplete(_ media: MediaMeter.Media) -> Bool {
    container.durationMicroseconds.map { media.duration > Double($0) / 1e6 - 0.1 } ?? false
  }

  /// Reads and decodes some seconds, or everything.
  private func readPart(from start: Double?, length: Double?, into outcome: inout FileOutcome) throws {
    var media = MediaMeter.Media(index: 0)
    defer {
      if let skipped = media.skippedBytes, !media.endsWithSkippedBytes || !isComplete(media) {
        outcome.segment.readingFault = ReelError(.badMedia, skipped, at: meter.name)
      }
      let packets = (media.video?.packets ?? []) + (media.audio?.packets ?? [])
      outcome.segment.byteCount += packets.reduce(0) { $0 + Int64($1.byteCount) }
      if start == nil {
        outcome.segment.video = media.video.map { MediaMeter.track($0, in: container.format) }
        outcome.segment.audio = media.audio.map { MediaMeter.track($0, in: container.format) }
      }
    }
    let unit = container.video?.timeBase.value ?? 0
    var first: Double?
    do {
      let byteLimit = length == nil ? Self.wholeByteLimit : Self.partByteLimit
      try meter.read(container, into: &media, byteLimit: byteLimit) { packet in
        guard let length, let ticks = packet.presentationTicks, !packet.isDiscarded else { return true }
        let time = Double(ticks) * unit
        first = first ?? time
        return time < (start ?? first ?? 0) + length
      }
    } catch {
      outcome.content.append(meter.decode([media]))
      throw error
    }
    outcome.content.append(meter.decode([media]))
  }
}

extension SegmentFailure.Reason {
  init(_ error: ReelError) {
    self =
      switch (error.kind, error.found) {
      case (.unsupported, _), (_, .unsupportedContainer), (_, .otherStreams): .unsupported
      case (_, .notMedia): .notMedia
      case (.badMedia, nil), (.badMedia, .neitherVideoNorAudio): .broken
      default: .status
      }
  }
}

extension MediaMeter.Media {
  /// The units up to the first key frame, which the beginning of a segment has whole; audio if there is no video.
  var beginning: MediaMeter.Media {
    guard let video else { return self }
    var media = self
    media.audio = nil
    media.video = (video.stream, Array(video.packets.dropLast().prefix(1)))
    return media
  }
}

extension SegmentFacts {
  /// Why it could not be read although that is no fault of the stream; nil if there is no such reason.
  fileprivate func refusal(in rung: RungFacts? = nil) -> Unjudged? {
    let error: ReelError?
    if let failure {
      error = failure.reason == .unsupported ? failure.error : nil
    } else {
      error = readingFault?.kind == .unsupported ? readingFault : nil
    }
    return error.map { Unjudged($0, isProtected: rung?.declared?.protection != nil) }
  }
}

extension RungFacts {
  /// True if something of it arrived.
  fileprivate var hasAnswered: Bool { samples.values.contains { $0.failure?.isUnanswered != true } }

  /// True if its segments are to be read, or have been.
  var isToBeRead: Bool { (status == .unread || status == .read) && !segments.isEmpty }

  /// False for audio alone.
  var wantsVideo: Bool {
    guard kind != .audio else { return false }
    let codecs = declared?.codecs ?? []
    return codecs.isEmpty || codecs.contains { CodecFamily($0) != .audio }
  }
}
