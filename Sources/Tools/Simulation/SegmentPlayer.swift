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
  package var rules: LinkPlayback.Rules
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
  /// The time since which playback waits for media; nil if it does not.
  package private(set) var stalledSince: Duration?
  /// The seconds of media that were played, at the time of the last call.
  package private(set) var position = 0.0
  /// The time at which the player does something although nothing arrives; nil for none. Valid after `advance`.
  package private(set) var nextTime: Duration?
  /// The numbers of all its requests, and of those for media.
  package private(set) var exchanges: [Int] = []
  package private(set) var mediaExchanges: [Int] = []

  /// The end of what was played, in seconds.
  private var playedEnd = 0.0

  private enum State {
    /// Playback has not begun, or is paused.
    case paused
    case playing(from: Double, since: Duration)
    case stalled
  }

  private var tracks: [LoadingTrack]
  private var state = State.paused
  private var now: Duration
  /// The time until which the player works on what has arrived.
  private var busyUntil: Duration
  /// The index of the next step, and the requests of the one before that have not arrived.
  private var step = 0
  private var stepExchanges: [Int] = []
  private var isParsed = true

  /// Separate audio may be late by this much before playback stalls, in seconds.
  private static let audioTolerance = 0.1
  /// The least bytes that are read at a time.
  private let pieceByteCount: Int
  private static let instant = 1e-6

  /// A player that begins to load at `now`.
  ///
  /// - Parameter pieceByteCount: The bytes that are read at a time.
  package init(
    _ item: Item, rules: LinkPlayback.Rules, pieceByteCount: Int = 8 << 10, at now: Duration = .zero
  ) {
    self.item = item
    self.rules = rules
    self.pieceByteCount = pieceByteCount
    self.now = now
    busyUntil = now + rules.costs.create
    tracks = item.tracks.enumerated().map { index, rungs in
      LoadingTrack(rungs, rung: index == 0 ? item.firstRung : 0)
    }
  }

  // MARK: Facts

  /// True if all media is loaded, and it plays or has played.
  package var isPlayingToEnd: Bool {
    if case .playing = state { tracks.allSatisfy(\.isComplete) } else { false }
  }

  /// True if it has loaded what it should.
  package var isFull: Bool {
    openedAt != nil && (rules.target <= 0 || tracks.allSatisfy { $0.isComplete || !$0.isFilling })
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
  package var loadedEnd: Double { tracks.map(\.end).min() ?? 0 }

  /// The segments of video that were loaded, in order, the last one perhaps in part.
  package var loadedSegments: [Loaded] { tracks.first?.loadedParts ?? [] }

  /// The bytes of media that were loaded and not played.
  package func unplayedByteCount(_ traffic: LinkTraffic) -> Int64 {
    let arrived = traffic.arrivedCount(of: mediaExchanges)
    let played = tracks.reduce(0.0) { sum, track in
      sum
        + track.loadedParts.reduce(0.0) { sum, segment in
          let length = segment.end - segment.start
          let share = length > 0 ? min(max((playedEnd - segment.start) / length, 0), 1) : 1
          return sum + Double(segment.byteCount) * share
        }
    }
    return max(0, arrived - Int64(played.rounded()))
  }

  // MARK: Actions

  /// Stops playing and keeps what is loaded. An item that was played to its end begins again.
  package mutating func pause(at time: Duration) {
    go(to: time)
    endStall()
    state = .paused
    let isAtEnd = tracks.allSatisfy(\.isComplete) && position >= loadedEnd - Self.instant
    position = isAtEnd ? 0 : min(position, loadedEnd)
    (showsFrom, playsFrom) = (nil, nil)
  }

  /// Ends the requests that have not been answered.
  package mutating func stop(_ traffic: inout LinkTraffic, at time: Duration) {
    pause(at: time)
    for number in exchanges { traffic.cancel(number, at: time) }
  }

  /// Does all that is possible at a time.
  package mutating func advance(_ traffic: inout LinkTraffic, at time: Duration) {
    go(to: time)
    if openedAt == nil { open(&traffic) }
    if openedAt != nil {
      for index in tracks.indices { load(index, &traffic) }
      if mediaReadyAt == nil, hasFirstFrame { mediaReadyAt = now }
    }
    play()
    nextTime = nextWork
  }

  private var nextWork: Duration? {
    var next = nextOfPlayback
    for time in [busyUntil, shownAt, playsFrom] {
      guard let time, time > now else { continue }
      next = min(next ?? time, time)
    }
    return next
  }

  private mutating func go(to time: Duration) {
    now = max(now, time)
    guard case .playing(let start, let since) = state else { return }
    position = start + max(0, (now - since) / .seconds(1))
    playedEnd = max(playedEnd, position)
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
      let rung = adaptation.rung(of: tracks[0].rungs, measuredRate: measuredRate)
      heads = tracks[0].change(to: rung)
    }
    tracks[index].begin()
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
      updateFilling(index)
      guard tracks[index].isFilling else { return }
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
        continue
      }
      guard !rules.loadsWholeSegments || traffic.isComplete(number) else { return }
      // Bytes that are used as they come are appended beside the loading, except for the first ones.
      if !open.isAppended, rules.loadsWholeSegments || tracks[index].end == 0 {
        tracks[index].open?.isAppended = true
        busyUntil = now + rules.costs.append
        continue
      }
      let count = rules.loadsWholeSegments ? waiting : min(waiting, pieceByteCount)
      traffic.read(count, of: number, at: now)
      tracks[index].read(count)
    }
  }

  private mutating func measure(_ exchange: LinkTraffic.Exchange) {
    guard let adaptation = rules.adaptation, let end = exchange.endedAt, end > exchange.sentAt,
      exchange.localByteCount == 0
    else { return }
    let seconds = (end - exchange.sentAt) / .seconds(1)
    measuredRate = adaptation.mean(of: measuredRate, Double(exchange.byteCount) * 8 / seconds, in: seconds)
  }

  private mutating func updateFilling(_ index: Int) {
    let ahead = tracks[index].end - position
    if tracks[index].isFilling {
      if ahead >= rules.target { tracks[index].isFilling = false }
    } else if ahead < rules.target * rules.refillShare || ahead <= Self.instant && rules.target > 0 {
      tracks[index].isFilling = true
    }
  }

  /// True if everything has come that the first frame needs.
  private var hasFirstFrame: Bool {
    guard let needs = rules.firstFrame else { return tracks.contains { $0.end > 0 } }
    guard let video = tracks.first else { return false }
    guard needs.wholeSegment ? !video.loaded.isEmpty : video.readCount >= item.firstFrameByteCount else {
      return false
    }
    for track in needs.audio ? tracks[...] : tracks.prefix(1) {
      guard track.end > 0, !needs.wholeSegment || !track.loaded.isEmpty else { return false }
      guard track.end >= needs.ahead || track.isComplete || !track.isFilling else { return false }
    }
    return true
  }

  // MARK: Playback

  /// Begins, resumes or stalls.
  private mutating func play() {
    func keepsUp(_ needed: Double) -> Bool {
      var (ahead, isFilling) = (Double.infinity, false)
      for track in tracks where !track.isComplete {
        ahead = min(ahead, track.end - position)
        isFilling = isFilling || track.isFilling
      }
      // The position at a stall is late by an instant.
      return !isFilling || ahead > Self.instant && ahead >= min(needed, rules.target) - 10 * Self.instant
    }
    switch state {
    case .paused:
      guard let shownAt, let playsFrom, max(shownAt, playsFrom) <= now, keepsUp(rules.start) else { return }
      playedAt = now
      state = .playing(from: position, since: now + rules.costs.play)
    case .stalled:
      guard keepsUp(rules.resume) else { return }
      endStall()
      state = .playing(from: position, since: now)
    case .playing:
      let runsOut = tracks.indices.contains { index in
        !tracks[index].isComplete && tracks[index].end + tolerance(of: index) <= position + Self.instant
      }
      guard runsOut else { return }
      state = .stalled
      stalledSince = now
    }
  }

  /// Records the stall that ends now, if there is one.
  private mutating func endStall() {
    guard let since = stalledSince else { return }
    stalls.append(LinkPlayback.Stall(position: position, duration: now - since, time: since))
    stalledSince = nil
  }

  private func tolerance(of track: Int) -> Double { track == 0 ? 0 : Self.audioTolerance }

  /// The time at which playback runs out of media, or a track has room again; nil if it does not play.
  private var nextOfPlayback: Duration? {
    guard case .playing = state else { return nil }
    var seconds = Double.infinity
    for (index, track) in tracks.enumerated() where !track.isComplete {
      let ahead = track.end - position
      seconds = min(seconds, ahead + tolerance(of: index))
      if !track.isFilling { seconds = min(seconds, ahead - rules.target * rules.refillShare) }
    }
    return seconds.isFinite ? now + .seconds(max(seconds, 0) + Self.instant) : nil
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
  /// The end of what is loaded, in seconds.
  private(set) var end = 0.0
  private(set) var readCount: Int64 = 0
  private(set) var loaded: [SegmentPlayer.Loaded] = []
  var isFilling = true
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

  /// Begins the next segment.
  mutating func begin() {
    next += 1
    open = Open()
    segmentStart = end
    countBefore = readCount
  }

  /// The segments that were loaded to their end, and what was read of the open one.
  var loadedParts: [SegmentPlayer.Loaded] {
    guard let open, !open.isRead, end > segmentStart else { return loaded }
    let part = SegmentPlayer.Loaded(
      rung: rung, start: segmentStart, end: end, byteCount: readCount - countBefore)
    return loaded + [part]
  }

  /// Adds the media of bytes of the open segment.
  mutating func read(_ count: Int) {
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
