internal import Foundation
internal import ReelCore
internal import ReelManifest
internal import ReelModels
internal import ReelSimulation

/// The start of a checked source on a link, and how it plays on, with the player of a model in place of Reel's.
///
/// The sizes are those that were measured; nothing is fetched again.
struct ModelledStart {
  private let model: PlayerModel
  private let play: RungPlayback
  private var item: ItemFacts
  /// The indices among all rungs of those of the item.
  private var rungs: [Int] = []
  /// The number of segments of each of them whose size was estimated.
  private var estimatedCounts: [Int] = []
  /// The media of the item, in seconds.
  private var duration = 0.0

  private var facts: StreamFacts { play.facts }
  private var link: LinkSpec { play.link }

  /// - Parameter rung: The only rung that there is; nil for all beside the one of Reel's start.
  /// - Throws: Why the player can't play it.
  init(_ model: PlayerModel, _ play: RungPlayback, _ options: CheckOptions, alone rung: Int? = nil)
    throws(RungPlayback.Unknown)
  {
    let facts = play.facts
    let format = facts.presentation.map { $0.format == .hls ? PlayerModel.Format.hls : .dash } ?? .file
    if let refusal = model.refusal(of: format) { throw RungPlayback.Unknown(reason: refusal) }
    guard let start = rung ?? facts.startRungIndex else {
      throw RungPlayback.Unknown(reason: "the rung of the start is not known")
    }
    var model = model
    model.preload.players = 1
    if options.isDeviceNamed {
      let frame = options.device.decodeCost.duration(
        of: facts.start?.codec, pixelCount: facts.start?.pixelCount ?? 0)
      model.costs.openDecoderMs = options.device.decodeCost.opening.milliseconds
      model.costs.decodeMs = frame.milliseconds
    }
    self.model = model
    self.play = play
    item = ItemFacts(format, manifest: nil, video: [])
    try addRungs(beside: start, isAlone: rung != nil)
    // Before redirects.
    if let source = facts.requests.first(where: { $0.purpose == .source })?.url {
      if format == .file {
        item.video[0].segments[0].url = source
      } else {
        item.manifest = play.request(source, .source)
      }
    }
    let head = format == .file ? 0 : item.video[item.firstFrameRung].initialization?.byteCount ?? 0
    let end = facts.file?.firstSample?.end ?? facts.start?.firstFrameEnd
    item.firstFrameByteCount = end.map { max(1, $0 - head) }
    let sample = facts.rungs[start].samples.min { $0.key < $1.key }?.value
    if format != .file { item.firstSoundByteCount = sample?.audio?.firstEnd.map { max(1, $0 - head) } }
    guard let first = facts.start else { return }
    (item.codec, item.pixelCount, item.frameDuration) = (first.codec, first.pixelCount, first.frameDuration)
    item.reorderDelay = Double(first.reorderDepth) * first.frameDuration
  }

  private mutating func addRungs(beside start: Int, isAlone: Bool) throws(RungPlayback.Unknown) {
    let place = facts.rungs[start].place
    for (index, rung) in facts.rungs.enumerated() {
      let isBeside =
        !isAlone && (rung.place.period, rung.place.group) == (place.period, place.group) && rung.wantsVideo
      guard index == start || isBeside && !rung.segments.isEmpty else { continue }
      let material: RungPlayback.Material
      do throws(RungPlayback.Unknown) { material = try play.material(of: index) } catch {
        guard index != start else { throw error }
        continue
      }
      item.video.append(play.rung(index, material.tracks[0]))
      if facts.presentation == nil {
        item.video[0].index = material.opening.first?.first
        item.video[0].index?.purpose = .manifest
      }
      rungs.append(index)
      estimatedCounts.append(material.estimatedCount)
      guard index == start else { continue }
      item.firstFrameRung = rungs.count - 1
      duration = material.duration
      if material.tracks.count > 1, let audio = play.audioIndex(beside: index) {
        item.audio = play.rung(audio, material.tracks[1])
      }
    }
  }

  /// The name of the rung that the player begins with.
  var rungName: String { facts.rungs[rungs[model.item(item).firstRung]].name }

  // MARK: Start

  /// The times until which a start is walked, one after the other, if no frame is on show before.
  private static let ends = [Duration.seconds(10), .seconds(60), .seconds(600)]

  /// The start with changes, until the first frame is on show; nil if that takes longer than 10 minutes.
  ///
  /// - Parameter rung: The index of a rung that is listed first.
  func course(_ changes: [StartChange] = [], listingFirst rung: Int? = nil) -> StartResult.Course? {
    var (model, item) = changed(changes)
    if let place = rung.flatMap({ rungs.firstIndex(of: $0) }) {
      let start = item.video[item.firstFrameRung].id
      item.video.insert(item.video.remove(at: place), at: 0)
      item.firstFrameRung = item.video.firstIndex { $0.id == start } ?? 0
    }
    var time: Duration?
    for end in Self.ends where time == nil { time = walk(model, item, until: end).visits.first?.shownAt }
    guard let shown = time else { return nil }
    // What had arrived by then.
    let walked = walk(model, item, until: shown)
    let opening = walked.visits.first?.mediaReadyAt ?? shown
    let requests = walked.exchanges.filter { $0.sentAt < opening }.map { exchange in
      let way = exchange.answeredAt.map { $0 - link.roundTripTime - exchange.request.wait }
      return CourseRequest(
        url: exchange.request.url, purpose: exchange.request.purpose, began: exchange.sentAt,
        left: way.map { max($0, exchange.sentAt) }, answered: exchange.answeredAt, end: exchange.endedAt,
        byteCount: Int64(exchange.arrivedCount))
    }
    let costs = model.rules.costs
    let decoding = opening + costs.openDecoder
    return StartResult.Course(
      until: shown, requests: requests,
      decoding: [opening..<decoding, decoding..<decoding + costs.decode], idle: \.working)
  }

  private func walk(
    _ model: PlayerModel, _ item: ItemFacts, until end: Duration
  ) -> ModelledWalk.Outcome {
    let swipe = ModelledWalk.Swipe(to: 0, draggedAt: .zero, settledAt: .zero)
    return ModelledWalk(model, items: [item], link: link, swipes: [swipe], end: end).run()
  }

  // MARK: Playing on

  /// The longest time that is walked, in seconds.
  private static let longestWalk = 3600.0

  /// How it plays to the end or for 10 minutes, and the time at which the second frame is on show; nil if no frame is.
  func played() -> (rung: PlayedRung, secondFrame: Duration?)? {
    let (model, item) = changed([])
    let byteCount = (item.video.map(\.byteCount).max() ?? 0) + (item.audio?.byteCount ?? 0)
    let loading = Double(byteCount) * 8 / Double(link.bitsPerSecond)
    let end = min(2 * (duration + loading) + 60, Self.longestWalk)
    let walked = walk(model, item, until: .seconds(end))
    guard let visit = walked.visits.first, visit.shownAt != nil else { return nil }
    var course = LinkPlayback.Course(opened: walked.stays.first?.openedAt ?? .zero)
    (course.start, course.stalls) = (visit.secondAt, visit.stalls)
    course.isCut = visit.rungs.reduce(0) { $0 + $1.seconds } < duration - 0.1
    var places: [Int] = []
    for played in visit.rungs where !places.contains(played.rung) { places.append(played.rung) }
    let media = walked.exchanges.filter { $0.request.purpose == .segment }
    let bits = media.reduce(0.0) { $0 + Double($1.arrivedCount) * 8 }
    let rung = PlayedRung(
      rung: places.map { facts.rungs[rungs[$0]].name }.joined(separator: ", "), course: course,
      duration: duration, bitsPerSecond: bits / max(duration, 0.001),
      estimatedCount: places.map { estimatedCounts[$0] }.max() ?? 0)
    return (rung, visit.secondAt)
  }

  // MARK: Changes

  /// The model and the item as they are once findings are mended.
  private func changed(_ changes: [StartChange]) -> (PlayerModel, ItemFacts) {
    var (model, item) = (model, item)
    var hiddenCount = facts.file?.hiddenSampleCount ?? 0
    var prompt: Set<FetchPurpose> = []
    var (dropsRedirects, keepsConnections) = (false, false)
    for change in changes {
      switch change {
      case .free(let parts, let count):
        hiddenCount -= count
        for part in parts { remove(part, from: &item) }
      case .remove(let parts): for part in parts { remove(part, from: &item) }
      case .moveToFront(_, let index):
        let length = item.video[0].index?.byteCount ?? index.length ?? 0
        item.video[0].index = nil
        item.video[0].segments[0].pieces.insert(.init(byteCount: length, duration: 0), at: 0)
        item.firstFrameByteCount = item.firstFrameByteCount.map { $0 + length }
      case .dropRedirects: dropsRedirects = true
      case .dropWaits(let purposes): prompt.formUnion(purposes)
      case .dropHandshakes: keepsConnections = true
      // The model asks for no ranges, and reads no text.
      case .serveRanges, .rewrite: break
      }
    }
    // The frames before the first one that is shown are decoded too.
    model.costs.decodeMs *= Double(1 + max(0, hiddenCount))
    var areClosed = false
    item.setWaits { url, purpose in
      let behaviour = behaviour(of: url, purpose)
      areClosed = areClosed || behaviour.closesConnection
      return (prompt.contains(purpose) ? .zero : behaviour.wait)
        + (dropsRedirects ? .zero : duration(of: behaviour.hops, from: url))
    }
    if areClosed, !keepsConnections { model.connections.kept = false }
    return (model, item)
  }

  /// How the server behaves, for what Reel's start did not request as it did for the same of that start.
  func behaviour(of url: URL, _ purpose: FetchPurpose) -> LinkServers.Behaviour {
    let start = item.video[item.firstFrameRung]
    let other =
      switch purpose {
      case .manifest: (start.playlist ?? start.index)?.url
      case .initialization: start.initialization?.url
      case .segment: start.segments.first?.url
      default: URL?.none
      }
    let isKnown = play.recording.byteCount(of: url) != nil
    return play.recording.behaviour(of: isKnown ? url : other ?? url)
  }

  /// The time that redirects take: a round trip, and those of a connection to another server.
  private func duration(of hops: [URL], from url: URL) -> Duration {
    zip([url] + hops, hops).reduce(.zero) { sum, hop in
      let server = ServerAddress(hop.1)
      let handshakeCount = server == ServerAddress(hop.0) ? 0 : server?.isSecure == true ? 2 : 1
      return sum + link.roundTripTime * (1 + handshakeCount)
    }
  }

  /// Removes bytes that a start does not need. They were found with the rung of Reel's start.
  private func remove(_ part: StartBytes, from item: inout ItemFacts) {
    guard let url = play.recording.url(named: part.url), let count = part.range.length else { return }
    func isHere(_ other: URL?) -> Bool { other.map { play.recording.target(of: $0) == url } ?? false }
    func shorten(_ request: inout LinkPlayback.Request?) {
      let left = (request?.byteCount ?? 1) - count
      request?.byteCount = max(1, left)
    }
    let rung = item.firstFrameRung
    if isHere(item.manifest?.url) { return shorten(&item.manifest) }
    if isHere(item.video[rung].playlist?.url) { return shorten(&item.video[rung].playlist) }
    let initialization = facts.startSegment?.initialization
    if isHere(initialization?.url), initialization?.byteRange?.contains(part.range.offset) ?? true {
      return shorten(&item.video[rung].initialization)
    }
    if let index = facts.file?.index, item.video[rung].index != nil, index.contains(part.range.offset) {
      return shorten(&item.video[rung].index)
    }
    guard isHere(item.video[rung].segments.first?.url) else { return }
    var left = count
    for place in item.video[rung].segments[0].pieces.indices {
      let removed = min(left, item.video[rung].segments[0].pieces[place].byteCount)
      item.video[rung].segments[0].pieces[place].byteCount -= removed
      left -= removed
    }
    item.firstFrameByteCount = item.firstFrameByteCount.map { max(1, $0 - count) }
  }
}

extension ByteRange {
  fileprivate func contains(_ position: Int64) -> Bool { position >= offset && position < end ?? .max }
}

extension RungPlayback {
  fileprivate func request(_ url: URL, _ purpose: FetchPurpose) -> LinkPlayback.Request {
    let answer = facts.requests.first { $0.url == url && $0.isComplete }
    return LinkPlayback.Request(url, byteCount: answer?.receivedByteCount ?? 1000, purpose: purpose)
  }

  fileprivate func rung(_ index: Int, _ segments: [LinkPlayback.Segment]) -> ItemFacts.Rung {
    let rung = facts.rungs[index]
    var item = ItemFacts.Rung(segments)
    (item.id, item.bitsPerSecond) = (rung.declared?.id, rung.declared?.bitsPerSecond)
    item.initialization = segments.first?.initialization
    item.initialization?.purpose = .initialization
    if facts.presentation != nil, let url = rung.url, url != facts.url {
      item.playlist = request(url, .manifest)
    }
    // In one file, the index is between the initialization and the first segment.
    if facts.presentation?.format == .dash, let first = rung.segments.first, let range = first.byteRange,
      let head = first.initialization?.byteRange?.end, range.offset > head
    {
      item.index = LinkPlayback.Request(first.url, byteCount: range.offset - head, purpose: .manifest)
    }
    return item
  }
}

extension ItemFacts {
  fileprivate mutating func setWaits(_ wait: (URL, FetchPurpose) -> Duration) {
    manifest?.setWait(wait)
    for place in video.indices { video[place].setWaits(wait) }
    audio?.setWaits(wait)
  }
}

extension ItemFacts.Rung {
  fileprivate var byteCount: Int64 { segments.reduce(0) { $0 + $1.byteCount } }

  fileprivate mutating func setWaits(_ wait: (URL, FetchPurpose) -> Duration) {
    playlist?.setWait(wait)
    index?.setWait(wait)
    initialization?.setWait(wait)
    for place in segments.indices { segments[place].wait = wait(segments[place].url, .segment) }
  }
}

extension LinkPlayback.Request {
  fileprivate mutating func setWait(_ wait: (URL, FetchPurpose) -> Duration) {
    self.wait = wait(url, purpose)
  }
}
