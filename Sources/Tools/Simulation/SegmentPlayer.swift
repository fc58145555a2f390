internal import Foundation
internal import ReelCore

/// One item in one player, by arithmetic: it sends requests over a link that others may share, and plays.
///
/// It moves no bytes and has no decoder: media is loaded once its bytes have arrived, in proportion within a `Piece`. The
/// loop around it calls `advance` whenever something has arrived and at `nextTime`. A pure value.
package struct SegmentPlayer: Sendable {
  /// One quality of a track.
  package struct Rung: Sendable, Hashable {
    package var bitsPerSecond: Double
    /// What has to come before its first segment if playback did not begin with it: a playlist, an initialization.
    package var preamble: [LinkPlayback.Request]
    package var segments: [LinkPlayback.Segment]

    package init(
      bitsPerSecond: Double = 0, preamble: [LinkPlayback.Request] = [], segments: [LinkPlayback.Segment]
    ) {
      (self.bitsPerSecond, self.preamble, self.segments) = (bitsPerSecond, preamble, segments)
    }
  }

  /// What is played: video, then audio with segments of its own.
  package struct Item: Sendable, Hashable {
    /// The requests before any media: those of a step are sent together, and a step begins when the one before has arrived.
    package var opening: [[LinkPlayback.Request]]
    /// The rungs of each track. Their segments have the same times.
    package var tracks: [[Rung]]
    /// The index of the rung of video that is loaded first.
    package var firstRung = 0
    /// The bytes of the first segment of video up to the end of the first frame.
    package var firstFrameByteCount: Int64 = 1

    package init(opening: [[LinkPlayback.Request]], tracks: [[Rung]]) {
      (self.opening, self.tracks) = (opening, tracks)
    }
  }

  /// A segment that was loaded, perhaps in part.
  package struct Loaded: Sendable, Hashable {
    package let rung: Int
    /// The part of the timeline that it covers, in seconds.
    package let start: Double
    package let end: Double
    package let byteCount: Int64
  }

  package let item: Item
  package var rules: LinkPlayback.Rules {
    get { playback.rules }
    set { playback.rules = newValue }
  }
  /// The time from which the first frame may be decoded; nil if loading ends before.
  package var decodesFrom: Duration?
  /// The time from which the first frame may be on show; nil in a player that is not on show.
  package var showsFrom: Duration?
  /// The time from which it plays, once it can.
  package var playsFrom: Duration?
  /// The rate of the link as the segments so far have measured it, in bits per second; nil before the first one.
  package var measuredRate: Double?

  /// The time at which the answers before any media had arrived.
  package private(set) var openedAt: Duration?
  /// The time at which everything had come that the first frame needs.
  package private(set) var mediaReadyAt: Duration?
  /// The time at which playback began last.
  package private(set) var playedAt: Duration?
  package private(set) var stalls: [LinkPlayback.Stall] = []
  /// The seconds of media that were played, at the time of the last call.
  package var position: Double { playback.position }
  /// The time at which the player does something although nothing arrives; nil for none. Valid after `advance`.
  package private(set) var nextTime: Duration?
  /// The numbers of all its requests, and of those for media.
  package private(set) var exchanges: [Int] = []
  package private(set) var mediaExchanges: [Int] = []

  private var tracks: [LoadingTrack]
  /// Has the levels of these tracks.
  private var playback: BufferedPlayback
  /// The time until which the player works on what has arrived.
  private var busyUntil: Duration
  /// The index of the next step, and the requests of the one before that have not arrived.
  private var step = 0
  private var stepExchanges: [Int] = []
  private var isParsed = true

  /// The least bytes that are read at a time.
  private let pieceByteCount: Int

  /// A player that begins to load at `now`.
  ///
  /// - Parameter pieceByteCount: The bytes that are read at a time.
  package init(
    _ item: Item, rules: LinkPlayback.Rules, pieceByteCount: Int = 8 << 10, at now: Duration = .zero
  ) {
    self.item = item
    self.pieceByteCount = pieceByteCount
    busyUntil = now + rules.costs.create
    tracks = item.tracks.enumerated().map { index, rungs in
      LoadingTrack(rungs, rung: index == 0 ? item.firstRung : 0)
    }
    playback = BufferedPlayback(trackCount: tracks.count, rules: rules, at: now)
    for index in tracks.indices { playback.tracks[index].isComplete = tracks[index].isComplete }
  }

  // MARK: Facts

  /// True if all media is loaded, and it plays or has played.
  package var isPlayingToEnd: Bool { playback.isPlaying && playback.tracks.allSatisfy(\.isComplete) }

  /// True if it has loaded what it should.
  package var isFull: Bool {
    openedAt != nil && (rules.target <= 0 || playback.tracks.allSatisfy { $0.isComplete || !$0.isFilling })
  }

  /// The time at which the first frame is decoded; nil if that is not known yet.
  package var decodedAt: Duration? {
    guard let mediaReadyAt, let decodesFrom else { return nil }
    return max(mediaReadyAt, decodesFrom) + rules.costs.openDecoder + rules.costs.decode
  }

  /// The time at which the first frame is on show; nil if that is not known yet.
  package var shownAt: Duration? {
    guard let decodedAt, let showsFrom else { return nil }
    return max(decodedAt + rules.costs.present, showsFrom)
  }

  /// The seconds of media that are loaded in all tracks.
  package var loadedEnd: Double { playback.loadedEnd }

  /// The segments of video that were loaded, in order, the last one perhaps in part.
  package var loadedSegments: [Loaded] { loadedParts(of: 0) }

  /// The bytes of media that were loaded and not played.
  package func unplayedByteCount(_ traffic: LinkTraffic) -> Int64 {
    let arrived = traffic.arrivedCount(of: mediaExchanges)
    let played = tracks.indices.reduce(0.0) { sum, index in
      sum
        + loadedParts(of: index).reduce(0.0) { sum, segment in
          let length = segment.end - segment.start
          let share = length > 0 ? min(max((playback.playedEnd - segment.start) / length, 0), 1) : 1
          return sum + Double(segment.byteCount) * share
        }
    }
    return max(0, arrived - Int64(played.rounded()))
  }

  private func loadedParts(of index: Int) -> [Loaded] {
    tracks.indices.contains(index) ? tracks[index].loadedParts(to: playback.tracks[index].end) : []
  }

  private var now: Duration { playback.now }

  // MARK: Actions

  /// Stops playing and keeps what is loaded. An item that was played to its end begins again.
  package mutating func pause(at time: Duration) {
    if let stall = playback.pause(at: time) { stalls.append(stall) }
    let isAtEnd =
      playback.tracks.allSatisfy(\.isComplete) && position >= loadedEnd - BufferedPlayback.instant
    playback.position = isAtEnd ? 0 : min(position, loadedEnd)
    (showsFrom, playsFrom) = (nil, nil)
  }

  /// Ends the requests that have not been answered.
  package mutating func stop(_ traffic: inout LinkTraffic, at time: Duration) {
    pause(at: time)
    for number in exchanges { traffic.cancel(number, at: time) }
  }

  /// Does all that is possible at a time.
  package mutating func advance(_ traffic: inout LinkTraffic, at time: Duration) {
    playback.go(to: time)
    if openedAt == nil { open(&traffic) }
    if openedAt != nil {
      for index in tracks.indices { load(index, &traffic) }
      if mediaReadyAt == nil, hasFirstFrame { mediaReadyAt = now }
    }
    play()
    nextTime = nextWork
  }

  private var nextWork: Duration? {
    var next = playback.nextTime
    for time in [busyUntil, shownAt, playsFrom] {
      guard let time, time > now else { continue }
      next = min(next ?? time, time)
    }
    return next
  }

  /// Begins, resumes or stalls.
  private mutating func play() {
    let mayBegin = if let shownAt, let playsFrom { max(shownAt, playsFrom) <= now } else { false }
    switch playback.play(mayBegin: mayBegin) {
    case .began: playedAt = now
    case .resumed(let stall): stalls.append(stall)
    case .stalled, nil: break
    }
  }

  // MARK: Loading

  private mutating func send(
    _ request: LinkPlayback.Request, isTakenAtOnce: Bool = true, opensAhead: Bool = false,
    _ traffic: inout LinkTraffic
  ) -> Int {
    let number = traffic.send(
      request, isTakenAtOnce: isTakenAtOnce, opensAhead: opensAhead,
      knownByteCount: rules.cached[request.url] ?? 0, at: now)
    exchanges.append(number)
    return number
  }

  /// Sends the requests before any media.
  private mutating func open(_ traffic: inout LinkTraffic) {
    while busyUntil <= now {
      guard stepExchanges.allSatisfy(traffic.isComplete) else { return }
      if !isParsed {
        isParsed = true
        let isManifest = item.opening[step - 1].contains(where: \.isManifest)
        if isManifest { busyUntil = now + rules.costs.parse }
        continue
      }
      guard step < item.opening.count else { break }
      stepExchanges = []
      for request in item.opening[step] {
        stepExchanges.append(send(request, opensAhead: rules.opensConnectionsAhead, &traffic))
      }
      step += 1
      isParsed = false
    }
    guard busyUntil <= now else { return }
    openedAt = now
    guard rules.target > 0 else { return }
    for index in tracks.indices { _ = requestNext(of: index, &traffic) }
  }

  /// Requests the next segment. Returns false if there is none, or it has to wait.
  private mutating func requestNext(of index: Int, _ traffic: inout LinkTraffic) -> Bool {
    guard tracks[index].next < tracks[index].segmentCount else { return false }
    if index > 0, rules.audioFollowsVideo, !tracks[0].isComplete,
      tracks[0].loaded.count <= tracks[index].next
    {
      return false
    }
    var heads: [LinkPlayback.Request] = []
    if index == 0, let adaptation = rules.adaptation, tracks[0].next > 0, tracks[0].ahead == nil {
      let rung = adaptation.rung(of: tracks[0].rungs.map(\.bitsPerSecond), measuredRate: measuredRate)
      heads = tracks[0].change(to: rung)
    }
    tracks[index].begin(at: playback.tracks[index].end)
    playback.tracks[index].isComplete = false
    let segment = tracks[index].current
    if let initialization = segment.initialization, !heads.contains(initialization) {
      heads.append(initialization)
    }
    if heads.count <= 1, !rules.loadsInitializationFirst {
      sendHead(heads.first, of: index, &traffic)
      sendMedia(of: index, &traffic)
    } else {
      tracks[index].open?.heads = heads[...]
      sendNext(of: index, &traffic)
    }
    return true
  }

  /// Sends the next request before the media of the open segment, or that for the media.
  private mutating func sendNext(of index: Int, _ traffic: inout LinkTraffic) {
    let head = tracks[index].open?.heads.popFirst()
    if head == nil { sendMedia(of: index, &traffic) } else { sendHead(head, of: index, &traffic) }
  }

  private mutating func sendHead(
    _ head: LinkPlayback.Request?, of index: Int, _ traffic: inout LinkTraffic
  ) {
    guard let head else { return }
    let number = send(head, &traffic)
    tracks[index].open?.head = number
  }

  private mutating func sendMedia(of index: Int, _ traffic: inout LinkTraffic) {
    let number = tracks[index].ahead ?? sendMedia(tracks[index].current, &traffic)
    tracks[index].ahead = nil
    tracks[index].open?.media = number
  }

  private mutating func sendMedia(_ segment: LinkPlayback.Segment, _ traffic: inout LinkTraffic) -> Int {
    let request = LinkPlayback.Request(
      segment.url, byteCount: segment.byteCount, wait: segment.wait, purpose: .segment)
    let number = send(request, isTakenAtOnce: rules.loadsWholeSegments, &traffic)
    mediaExchanges.append(number)
    return number
  }

  /// Requests the segment after the open one, whose first bytes have arrived.
  private mutating func sendFollowing(of index: Int, _ traffic: inout LinkTraffic) {
    guard rules.loadsNextSegmentBeside, tracks[index].ahead == nil, let segment = tracks[index].following
    else { return }
    tracks[index].ahead = sendMedia(segment, &traffic)
  }

  /// Reads what has arrived, as far as there is room, and requests what comes next.
  private mutating func load(_ index: Int, _ traffic: inout LinkTraffic) {
    while busyUntil <= now {
      playback.updateFilling(index)
      guard playback.tracks[index].isFilling else { return }
      guard let open = tracks[index].open else {
        guard requestNext(of: index, &traffic) else { return }
        continue
      }
      if let head = open.head {
        guard traffic.isComplete(head) else { return }
        tracks[index].open?.head = nil
        continue
      }
      guard let number = open.media else {
        sendNext(of: index, &traffic)
        continue
      }
      let waiting = traffic.unreadCount(of: number)
      if waiting > 0 { sendFollowing(of: index, &traffic) }
      guard waiting > 0 else {
        guard traffic.isComplete(number) else { return }
        measure(traffic.exchanges[number])
        tracks[index].endSegment()
        playback.tracks[index].isComplete = tracks[index].isComplete
        continue
      }
      guard !rules.loadsWholeSegments || traffic.isComplete(number) else { return }
      // Bytes that are used as they come are appended beside the loading, except for the first ones.
      if !open.isAppended, rules.loadsWholeSegments || playback.tracks[index].end == 0 {
        tracks[index].open?.isAppended = true
        busyUntil = now + rules.costs.append
        continue
      }
      let count = rules.loadsWholeSegments ? waiting : min(waiting, pieceByteCount)
      traffic.read(count, of: number, at: now)
      tracks[index].read(count, to: &playback.tracks[index].end)
    }
  }

  private mutating func measure(_ exchange: LinkTraffic.Exchange) {
    guard let adaptation = rules.adaptation, let end = exchange.endedAt, end > exchange.sentAt,
      exchange.localByteCount == 0
    else { return }
    let seconds = (end - exchange.sentAt) / .seconds(1)
    measuredRate = adaptation.mean(of: measuredRate, Double(exchange.byteCount) * 8 / seconds, in: seconds)
  }

  /// True if everything has come that the first frame needs.
  private var hasFirstFrame: Bool {
    guard let needs = rules.firstFrame else { return playback.tracks.contains { $0.end > 0 } }
    guard let video = tracks.first else { return false }
    guard needs.wholeSegment ? !video.loaded.isEmpty : video.readCount >= item.firstFrameByteCount else {
      return false
    }
    for (track, level) in zip(needs.audio ? tracks[...] : tracks.prefix(1), playback.tracks) {
      guard level.end > 0, !needs.wholeSegment || !track.loaded.isEmpty else { return false }
      guard level.end >= needs.ahead || level.isComplete || !level.isFilling else { return false }
    }
    return true
  }
}

/// A track that is being loaded.
private struct LoadingTrack: Sendable {
  /// A segment that was requested, by the numbers of its requests.
  struct Open {
    /// The requests that have to be answered before that for the media is sent.
    var heads: ArraySlice<LinkPlayback.Request> = []
    /// The one that was sent and not answered.
    var head: Int?
    /// Nil until it is requested.
    var media: Int?
    var isAppended = false
    /// True once its media is read to its end.
    var isRead = false
  }

  let rungs: [SegmentPlayer.Rung]
  /// The index of the rung that segments are loaded from, and those that were loaded from before.
  private(set) var rung: Int
  private var knownRungs: Set<Int>
  /// The segment that was requested and is not read to its end.
  var open: Open?
  /// The request for the media of the segment after the open one; nil if it was not sent.
  var ahead: Int?
  /// The index of the segment that is requested next.
  private(set) var next = 0
  private(set) var readCount: Int64 = 0
  private(set) var loaded: [SegmentPlayer.Loaded] = []
  /// The piece of the open segment that is read next, and the bytes of it that were read.
  private var piece = (index: 0, readCount: Int64(0))
  private var segmentStart = 0.0
  /// The bytes that were read before the open segment.
  private var countBefore: Int64 = 0

  init(_ rungs: [SegmentPlayer.Rung], rung: Int) {
    self.rungs = rungs
    self.rung = rung
    knownRungs = [rung]
  }

  var segmentCount: Int { rungs.indices.contains(rung) ? rungs[rung].segments.count : 0 }
  var isComplete: Bool { next == segmentCount && open == nil }
  /// The open segment.
  var current: LinkPlayback.Segment { rungs[rung].segments[next - 1] }
  /// The one after it; nil after the last one.
  var following: LinkPlayback.Segment? { next < segmentCount ? rungs[rung].segments[next] : nil }

  /// Goes on with another rung, and returns the requests that it begins with.
  mutating func change(to rung: Int) -> [LinkPlayback.Request] {
    guard rung != self.rung, rungs[rung].segments.count == segmentCount else { return [] }
    self.rung = rung
    return knownRungs.insert(rung).inserted ? rungs[rung].preamble : []
  }

  /// Begins the next segment, at the end of what is loaded.
  mutating func begin(at end: Double) {
    next += 1
    open = Open()
    segmentStart = end
    countBefore = readCount
  }

  /// The segments that were loaded to their end, and what was read of the open one.
  func loadedParts(to end: Double) -> [SegmentPlayer.Loaded] {
    guard let open, !open.isRead, end > segmentStart else { return loaded }
    let part = SegmentPlayer.Loaded(
      rung: rung, start: segmentStart, end: end, byteCount: readCount - countBefore)
    return loaded + [part]
  }

  /// Adds the media of bytes of the open segment to what is loaded.
  mutating func read(_ count: Int, to end: inout Double) {
    let (sum, overflows) = readCount.addingReportingOverflow(Int64(count))
    readCount = overflows ? .max : sum
    var left = Int64(count)
    let pieces = current.pieces
    while piece.index < pieces.count {
      let this = pieces[piece.index]
      let part = min(left, max(this.byteCount, 0) - piece.readCount)
      end += this.byteCount > 0 ? this.duration * Double(part) / Double(this.byteCount) : this.duration
      piece.readCount += part
      left -= part
      guard piece.readCount >= this.byteCount else { return }
      piece = (piece.index + 1, 0)
    }
    open?.isRead = true
    loaded.append(
      SegmentPlayer.Loaded(rung: rung, start: segmentStart, end: end, byteCount: current.byteCount))
  }

  /// Goes on to the next segment.
  mutating func endSegment() {
    open = nil
    piece = (0, 0)
  }
}
