internal import Foundation
internal import ReelCore
package import ReelFFmpeg
internal import ReelManifest
internal import ReelSources

/// Reads the packets of one media file.
///
/// A seekable file keeps its container open, and with it the index. For a seek back, other files are read
/// again from the beginning; for a seek forward, reading continues.
final class ResourcePacketReader: PacketReader {
  private let resource: MediaResource
  private let context: TrackContext
  private let role: ReaderRole
  private let log: ReadingLog
  private var open: Open? {
    didSet {
      guard let oldValue, oldValue !== open else { return }
      finishedWait += oldValue.container.sourceWait
    }
  }
  /// The time that closed containers have waited for media.
  private var finishedWait = Duration.zero
  private var scope: LoadScope
  private var loop = LoopIteration()
  private var dropsAudio = false
  private var hasRead = false
  /// True if only key frames in the index are wanted.
  private var closesIndex = false
  /// The reason why fewer bytes than announced have arrived.
  private let earlyEnd = Locked<ReelError?>(nil)
  /// True if the body of the first response, or the kept part of it, has been used.
  private var isFirstAnswerUsed = false

  /// The distance from which a seek is worthwhile: key frames are rarely further apart than a few seconds.
  private static let worthwhileDistance = MediaTime(value: 2, timescale: 1)

  /// Two key frames are fetched with one request if the bytes between them are at most this fraction of the
  /// first one.
  private static let mergedShare = 10

  /// The bytes of the file. The transfers of a remote one depend on what will be read.
  private enum FileBytes {
    case local(any ByteSource)
    case remote(ResourceByteSource)

    var source: any ByteSource {
      switch self {
      case .local(let source): source
      case .remote(let source): source
      }
    }
    var remote: ResourceByteSource? { if case .remote(let source) = self { source } else { nil } }
  }

  private final class Open {
    let bytes: FileBytes
    let container: ContainerReader
    let offset: TimestampOffset
    let keys: ContainerKeys
    var mapper: TimestampMapper
    /// The bytes that were skipped last, and the end of the media before them.
    var skipped: (error: ReelError, end: MediaTime)?

    init(
      bytes: FileBytes, container: ContainerReader, offset: TimestampOffset, keys: ContainerKeys,
      mapper: TimestampMapper
    ) {
      self.bytes = bytes
      self.container = container
      self.offset = offset
      self.keys = keys
      self.mapper = mapper
    }

    /// True if the container was opened for seeking.
    var isSeekable: Bool { container.isSeekable }
    private var kind: TrackKind { container.video == nil ? .audio : .video }
    /// The end of the media so far, on the item's timeline.
    var end: MediaTime { max(mapper.end(of: .video) ?? .zero, mapper.end(of: .audio) ?? .zero) }

    /// Returns the media that is missing after the last packet; nil for none.
    ///
    /// - Parameters:
    ///   - cut: The error if the file ends inside of a packet.
    ///   - duration: The duration that the file states.
    func lossAtEnd(cut: ReelError?, duration: MediaTime?) -> (error: ReelError, loss: MediaLoss)? {
      let second = MediaTime(value: 1, timescale: 1)
      var error = cut
      // The demuxer reads these bytes before it returns the last packets.
      if error == nil, let skipped, end - skipped.end < second,
        duration.map({ $0 - end > MediaTime(value: 1, timescale: 10) }) ?? true
      {
        error = skipped.error
      }
      return error.map { error in
        (error, MediaLoss(kind: kind, reason: .damaged, range: end..<max(end, duration ?? end)))
      }
    }
  }

  init(
    _ resource: MediaResource, role: ReaderRole, context: TrackContext, log: @escaping ReadingLog,
    scope: LoadScope
  ) {
    self.log = log
    self.resource = resource
    self.role = role
    self.context = context
    self.scope = scope
  }

  /// Returns the container, to be read without this reader, which is not used any more.
  func openContainer() throws -> ContainerReader { try container().container }

  private(set) var streams = ReaderStreams()
  var waits: ReaderWaits { ReaderWaits(media: finishedWait + (open?.container.sourceWait ?? .zero)) }

  var status: ReaderStatus {
    guard let container = open?.container else { return ReaderStatus() }
    var status = ReaderStatus(containerStreams: container.streams, position: container.position)
    status.cut = container.cut.map { cut in
      earlyEnd.withLock { $0 } ?? ReelError(.badMedia, cut, at: resource.name)
    }
    return status
  }

  var endFault: ReelError? {
    guard let container = open?.container else { return nil }
    if container.isTruncated || !hasRead, let error = earlyEnd.withLock({ $0 }) { return error }
    if container.isTruncated {
      return ReelError(.badMedia, container.truncation, at: resource.name)
    }
    guard !hasRead, let detail = container.takeLastError() else { return nil }
    return ReelError(.badMedia, "no frame could be decoded: \(detail)", at: resource.name)
  }

  func prepare() throws {
    do {
      _ = try container()
    } catch let error as ReelError {
      throw fault(error)
    }
  }

  func next() throws -> MediaPacket? {
    do {
      let open = try container()
      while true {
        let unit = try open.container.next()
        let skipped = open.container.takeSkippedBytes()
        if let damage = skipped ?? open.container.takeDamage() {
          let error = ReelError(.badMedia, damage, at: resource.name)
          log(.damage(error, rung: "", in: nil))
          open.mapper.recordDamage()
          if skipped != nil { open.skipped = (error, open.end) }
        }
        defer { recordHole(open) }
        if streams.audio == nil, let audio = open.container.audio {
          streams.audio = audio
          open.mapper.add(audio: audio)
        }
        switch unit {
        case .video(let unit):
          hasRead = true
          if let packet = open.mapper.stamped(unit, .video) { return packet }
        case .audio(let unit):
          if let packet = open.mapper.stamped(unit, .audio) { return packet }
        case .programChanged:
          begin(open)
        case .end:
          // `endFault` says how an index is cut off.
          if !open.container.isTruncated,
            let (error, loss) = open.lossAtEnd(cut: status.cut, duration: streams.duration)
          {
            log(.hole(error, rung: "", loss))
          }
          return nil
        }
      }
    } catch let error as ReelError {
      throw fault(error)
    }
  }

  func seek(to time: MediaTime?, loop: LoopIteration, scope: LoadScope) throws {
    self.scope = scope
    self.loop = loop
    open?.bytes.remote?.interruption = scope
    open?.keys.setScope(scope)
    open?.container.forgetInterruption()
    guard let time, time > .zero else {
      if open != nil { try restart() }
      return
    }
    do {
      // A source that can't seek is read up to the position.
      guard canSeek else {
        if open == nil { _ = try container() } else { try restart() }
        return
      }
      if open == nil {
        open = try makeOpen(on: try fileBytes(), offset: nil, isSeekable: true)
      } else if let open, !open.isSeekable {
        try open.bytes.source.seek(to: 0)
        self.open = nil
        self.open = try makeOpen(on: open.bytes, offset: open.offset, isSeekable: true)
      }
      let open = try container()
      if closesIndex { open.container.closeIndex() }
      try placeTimeline(of: open)
      guard let stream = open.container.video ?? open.container.audio,
        try open.container.seek(
          toKeyFrameAtOrBefore: stream.ticks(of: time - open.offset.value), of: stream)
      else { return try restart() }
      open.bytes.remote?.leave(
        expecting: context.configuration.reading == .everything
          ? nil
          : range(ofKeyFrameAtOrBefore: stream.ticks(of: time - open.offset.value), in: open.container))
      open.mapper = mapper(open.container, open.offset)
    } catch let error as ReelError {
      throw fault(error)
    }
  }

  func isSeekWorthwhile(to time: MediaTime, from position: MediaTime) -> Bool {
    // To seek in a fragmented file, its demuxer visits all fragments.
    guard canSeek, resource.layout != .indexFirst(isFragmented: true) else { return false }
    return time < position || time - position > Self.worthwhileDistance
  }

  func keyFramePlaces(until isEnough: (KeyFramePlace) -> Bool) -> [KeyFramePlace]? {
    // The demuxer's index of a fragmented file covers only the fragments read so far.
    guard let open, open.isSeekable, resource.format == .mp4,
      resource.layout != .indexFirst(isFragmented: true),
      let stream = open.container.video, open.offset.knownValue != nil
    else { return nil }
    var places: [KeyFramePlace] = []
    var frames: [(time: MediaTime, bytes: Range<Int64>)] = []
    /// A seek uses presentation times, which are not in the index: halfway to the next key frame is safe.
    func add(_ frame: (time: MediaTime, bytes: Range<Int64>), before next: MediaTime) -> Bool {
      places.append(
        KeyFramePlace(
          time: frame.time, seekTime: MediaTime(seconds: (frame.time.seconds + next.seconds) / 2),
          bytes: frame.bytes.isEmpty ? nil : frame.bytes))
      return isEnough(places[places.count - 1])
    }
    var isComplete = false
    open.container.forEachIndexedKeyFrame { frame in
      frames.append((stream.time(ticks: frame.decodingTicks) + open.offset.value, frame.bytes))
      // The first one is known.
      guard frames.count > 2 else { return true }
      isComplete = add(frames[frames.count - 2], before: frames[frames.count - 1].time)
      return !isComplete
    }
    if !isComplete, let last = frames.last, frames.count > 1 {
      _ = add(last, before: last.time + MediaTime(value: 1, timescale: 1))
    }
    return places
  }

  func allKeyFramePlaces() throws -> [KeyFramePlace]? {
    if resource.format == .matroska {
      // The demuxer reads the index (Cues) with the first seek.
      guard canSeek, let duration = streams.duration, duration > .zero else { return nil }
      closesIndex = true
      try seek(to: MediaTime(seconds: duration.seconds / 2), loop: loop, scope: scope)
    } else if resource.format != .mp4 || resource.layout == .indexFirst(isFragmented: true) {
      return nil
    }
    guard let open, open.isSeekable, let stream = open.container.video, open.offset.knownValue != nil
    else { return nil }
    var places: [KeyFramePlace] = []
    defer { if places.isEmpty { try? restart() } }
    open.container.forEachIndexedKeyFrame { frame in
      let time = stream.time(ticks: frame.decodingTicks) + open.offset.value
      if let last = places.last {
        guard time > last.time else { return true }
        // A seek uses presentation times, which are not in the index of MP4: halfway to the next key frame is
        // safe.
        places[places.count - 1] = KeyFramePlace(
          time: last.time, seekTime: MediaTime(seconds: (last.time.seconds + time.seconds) / 2),
          bytes: last.bytes)
      }
      places.append(
        KeyFramePlace(
          time: time, seekTime: time + MediaTime(value: 1, timescale: 1),
          bytes: frame.bytes.isEmpty ? nil : frame.bytes))
      return true
    }
    return places.isEmpty ? nil : places
  }

  func plan(_ places: [KeyFramePlace]) {
    closesIndex = true
    guard let remote = open?.bytes.remote else { return }
    var ranges: [Range<Int64>] = []
    for place in places {
      guard let bytes = place.bytes else { return }
      if let last = ranges.last, bytes.lowerBound >= last.lowerBound,
        bytes.lowerBound - last.upperBound <= Int64(last.count / Self.mergedShare)
      {
        ranges[ranges.count - 1] = last.lowerBound..<max(last.upperBound, bytes.upperBound)
      } else {
        ranges.append(bytes)
      }
    }
    remote.plan(ranges)
  }

  func recordEnough() {
    // Key frames in the index are requested individually.
    guard context.configuration.reading.endsTransfers, let open, open.isSeekable, resource.format == .mp4,
      resource.layout != .indexFirst(isFragmented: true)
    else { return }
    open.bytes.remote?.endTransfers()
  }

  // The index of a file comes from its bytes, which are no longer held.
  func rest() -> Bool { false }

  func setDropsAudio(_ drops: Bool) {
    dropsAudio = drops
    guard let open else { return }
    open.container.setDropsAudio(drops)
    arrangeTransfers(of: open.bytes, for: open.container)
  }

  // MARK: - Private

  /// Returns the bytes of a key frame, according to the index.
  private func range(ofKeyFrameAtOrBefore ticks: Int64, in container: ContainerReader) -> Range<Int64>? {
    var found: Range<Int64>?
    container.forEachIndexedKeyFrame { frame in
      if frame.decodingTicks <= ticks { found = frame.bytes }
      return frame.decodingTicks <= ticks
    }
    return found.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Returns the fault, unless media is cut off because fewer bytes than announced have arrived.
  private func fault(_ error: ReelError) -> ReelError {
    let cause = error.kind == .badMedia ? earlyEnd.withLock { $0 } : nil
    return (cause ?? error).located(at: resource.name)
  }

  /// Places the timeline. If it may begin at any timestamp, the first packet sets it, and a seek would skip
  /// that packet.
  private func placeTimeline(of open: Open) throws {
    while open.offset.knownValue == nil {
      switch try open.container.next() {
      case .video(let packet): _ = open.mapper.stamped(packet, .video)
      case .audio(let packet): _ = open.mapper.stamped(packet, .audio)
      case .programChanged: begin(open)
      case .end: return
      }
    }
  }

  private var wantsAudio: Bool {
    if case .main(let wantsAudio) = role { wantsAudio } else { true }
  }

  /// False for pipes, and for servers without range requests. Also for elementary streams, whose times come from counting
  /// frames.
  private var canSeek: Bool {
    if resource.format == .h264 || resource.format == .hevc { return false }
    switch resource.access {
    // `standardInput` is a redirected file. A pipe is a response.
    case .file, .spooled, .standardInput: return true
    case .response(let response, _): return response.supportsRanges && response.resourceByteCount != nil
    }
  }

  /// Starts again at the beginning.
  private func restart() throws {
    if let open, open.isSeekable, resource.format == .mp4,
      let stream = open.container.video ?? open.container.audio,
      try open.container.seek(
        toKeyFrameAtOrBefore: stream.ticks(of: .zero - open.offset.value), of: stream)
    {
      open.mapper = mapper(open.container, open.offset)
      return
    }
    let offset = open?.offset
    if let open, open.bytes.source.isSeekable {
      // Read again from the first byte: a search for timestamp 0 could miss the beginning.
      try open.bytes.source.seek(to: 0)
      self.open = nil
      self.open = try makeOpen(on: open.bytes, offset: offset, isSeekable: open.isSeekable)
      return
    }
    guard open == nil || canReopen else {
      throw ReelError(
        .unsupported, "this source is not seekable: it can be read only once", at: resource.name)
    }
    open = nil
    open = try makeOpen(on: try fileBytes(), offset: offset, isSeekable: opensSeekable)
  }

  private var canReopen: Bool {
    if case .standardInput = resource.access { false } else { resource.isRepeatable }
  }

  private func container() throws -> Open {
    if let open { return open }
    let made = try makeOpen(on: try fileBytes(), offset: nil, isSeekable: opensSeekable)
    open = made
    return made
  }

  /// Opening an MP4 file with whole samples for seeking is free, and necessary if its index comes last. In a
  /// fragmented file, all fragments would be visited, and other files would be read at their end, so they are
  /// opened that way only for a seek.
  private var opensSeekable: Bool {
    guard canSeek, resource.format == .mp4 else { return canSeek && resource.layout == .indexLast }
    return resource.layout != .indexFirst(isFragmented: true)
  }

  private func makeOpen(
    on bytes: FileBytes, offset known: TimestampOffset?, isSeekable: Bool
  ) throws -> Open {
    var options = ContainerReader.Options()
    options.isSeekable = isSeekable && bytes.source.isSeekable
    options.startsAtMedia = resource.layout == .indexFirst(isFragmented: false)
    if case .audio = role { options.wantsVideo = false }
    options.wantsAudio = wantsAudio
    options.audioLanguages = context.configuration.audioLanguages
    options.clock = context.recorder.clock
    let keys = context.keys(of: resource, scope: scope)
    options.keys = keys
    bytes.remote?.order = options.isSeekable ? .unknown : .forward
    let container = try ContainerReader(
      source: bytes.source, format: resource.format, options: options, name: resource.name,
      logger: context.logger)
    container.setDropsAudio(dropsAudio)
    arrangeTransfers(of: bytes, for: container)
    let offset: TimestampOffset
    switch resource.format {
    // MP4 and Matroska timelines begin at 0.
    case .mp4, .matroska: offset = known ?? TimestampOffset(offset: .zero)
    default: offset = known ?? TimestampOffset(offset: nil)
    }
    streams.video = container.video
    streams.audio = container.audio
    streams.areAllKnown = container.format.announcesStreamsFirst
    streams.duration = container.durationMicroseconds.map { MediaTime(value: $0, timescale: 1_000_000) }
    streams.canSeek = canSeek || canReopen
    return Open(
      bytes: bytes, container: container, offset: offset, keys: keys, mapper: mapper(container, offset))
  }

  /// Gives a remote file the reading order of the demuxer for its samples, which determines the transfers.
  private func arrangeTransfers(of bytes: FileBytes, for container: ContainerReader) {
    guard let remote = bytes.remote, container.isSeekable, resource.format == .mp4,
      resource.layout != .indexFirst(isFragmented: true)
    else { return }
    // Key frames are requested one by one.
    remote.order =
      context.configuration.reading == .everything ? ReadingOrder { container.forEachSample($0) } : .forward
  }

  /// Reports media that is missing before the last packet.
  private func recordHole(_ open: Open) {
    guard let hole = open.mapper.takeHole() else { return }
    let words =
      hole.followsDamage
      ? "there is no \(hole.kind.rawValue) \(hole.range.words)"
      : "the timestamps of \(hole.kind.rawValue) jump \(hole.range.words)"
    log(
      .hole(
        ReelError(.badMedia, words, at: resource.name), rung: "",
        MediaLoss(kind: hole.kind, reason: hole.followsDamage ? .damaged : .jumped, range: hole.range)))
  }

  /// Continues with the current streams of the container.
  private func begin(_ open: Open) {
    streams.video = open.container.video
    streams.audio = open.container.audio
    open.mapper.begin(open.container)
  }

  private func mapper(_ container: ContainerReader, _ offset: TimestampOffset) -> TimestampMapper {
    var placement = TimestampMapper.Placement(offset: offset)
    placement.loop = loop
    return TimestampMapper(container, placement)
  }

  private func fileBytes() throws -> FileBytes {
    let scope = context.scope
    let isCancelled = { @Sendable in scope.isCancelled }
    switch resource.access {
    case .file(let path): return .local(counted(try FileByteSource(path: path, isCancelled: isCancelled)))
    case .spooled(let file):
      if !isFirstAnswerUsed { log(.file(requestCount: 1, byteCount: file.byteCount)) }
      isFirstAnswerUsed = true
      return .local(FileByteSource(file, isCancelled: isCancelled))
    case .standardInput: return .local(counted(FileByteSource.standardInput(isCancelled: isCancelled)))
    case .response(let first, let read):
      let source: ResourceByteSource
      if isFirstAnswerUsed {
        let fetcher = context.fetcher
        let answer = try BlockingThread.wait(scope: self.scope) {
          try await fetcher.fetch(FetchRequest(url: first.url, purpose: .segment))
        }
        source = resourceSource(answer, read: [])
      } else {
        isFirstAnswerUsed = true
        source = resourceSource(first, read: read)
      }
      source.interruption = self.scope
      return .remote(source)
    }
  }

  /// Returns a newly opened file.
  private func counted(_ file: FileByteSource) -> CountedByteSource {
    let log = log
    log(.file(requestCount: 1, byteCount: 0))
    return CountedByteSource(file, recorder: context.recorder) {
      log(.file(requestCount: 0, byteCount: Int64($0)))
    }
  }

  private func resourceSource(_ response: FetchResponse, read: [UInt8]) -> ResourceByteSource {
    let (log, name, earlyEnd) = (log, resource.name, earlyEnd)
    return ResourceByteSource(
      response: response, read: read, isSeekable: true, fetcher: context.fetcher,
      scope: context.scope, recorder: context.recorder, capacity: context.configuration.pipeCapacity,
      spoolByteLimit: context.configuration.spoolByteLimit,
      recordDamage: { error in
        let error = error.located(at: name)
        earlyEnd.withLock { $0 = error }
        log(.failure(error, rung: "", outcome: .tolerated))
      },
      recordTraffic: { log(.file(requestCount: $0, byteCount: Int64($1))) })
  }
}

extension OpenSource {
  /// Returns a media file's container, to be read from its beginning, and once; nil for a presentation.
  ///
  /// Blocks, and throws like `ContainerReader`. Who reads it finds its faults.
  package func container(wantsVideo: Bool = true) throws -> ContainerReader? {
    guard case .resource(let resource) = source else { return nil }
    let role: ReaderRole = wantsVideo ? .main(wantsAudio: true) : .audio(group: nil)
    return try ResourcePacketReader(
      resource, role: role, context: context, log: { _ in }, scope: context.scope
    ).openContainer()
  }
}
