package import Foundation
internal import ReelCore
package import ReelPlayback

/// A player of segments on a link, by arithmetic: when playback begins, and where and how long it stalls.
///
/// One loop over the deliveries of a `LinkModel` and the clock of playback. It moves no bytes, and has no demuxer and no
/// decoder: media is loaded once its bytes have arrived, in proportion within a `Piece`. A pure value, so the same
/// input gives the same result on any machine.
///
/// Not modelled: media that can't be fetched or decoded, changes of rung, and the limit of the buffer in bytes.
package struct LinkPlayback: Sendable {
  /// A request, and the size of its answer.
  package struct Request: Sendable, Hashable {
    package var url: URL
    package var byteCount: Int64
    /// The server's wait before the first byte of the answer.
    package var wait: Duration

    package init(_ url: URL, byteCount: Int64, wait: Duration = .zero) {
      self.url = url
      self.byteCount = byteCount
      self.wait = wait
    }
  }

  /// Bytes that follow each other, and the media that they hold, in seconds.
  package struct Piece: Sendable, Hashable {
    package var byteCount: Int64
    package var duration: Double

    package init(byteCount: Int64, duration: Double) {
      self.byteCount = byteCount
      self.duration = duration
    }
  }

  /// What one request for media brings.
  package struct Segment: Sendable, Hashable {
    package var url: URL
    /// The server's wait before the first byte of the answer.
    package var wait = Duration.zero
    /// The initialization that has to come before it; nil if it is there.
    package var initialization: Request?
    /// The media, in the order of its bytes.
    package var pieces: [Piece]

    package init(_ url: URL, _ pieces: [Piece]) {
      self.url = url
      self.pieces = pieces
    }
  }

  /// When a player loads, starts and resumes.
  package struct Rules: Sendable, Hashable {
    /// The media that is loaded ahead before playback begins, and before it resumes after a stall, in seconds.
    package var start: Double
    package var resume: Double
    /// The media ahead at which loading pauses, and the share of it below which loading continues.
    package var target: Double
    package var refillShare: Double
    /// True if a segment can be played only once all of it has arrived.
    package var loadsWholeSegments = false

    /// Reel's player: it uses bytes as they come, and requests a segment when the one before has been read.
    package init(_ thresholds: BufferingThresholds = BufferingThresholds(), target: Duration = .seconds(3)) {
      start = thresholds.start / .seconds(1)
      resume = thresholds.resume / .seconds(1)
      self.target = target / .seconds(1)
      refillShare = thresholds.refillShare
    }

    /// A player that loads whole segments, one after the other, as hls.js, Shaka and dash.js do.
    package static var wholeSegments: Rules {
      // hls.js: maxBufferLength.
      var rules = Rules(target: .seconds(30))
      (rules.start, rules.resume, rules.refillShare) = (0, 0, 1)
      rules.loadsWholeSegments = true
      return rules
    }
  }

  /// Playback that waits for media.
  package struct Stall: Sendable, Hashable {
    /// The seconds of media that were played before it.
    package var position: Double
    package var duration: Duration
  }

  package struct Course: Sendable, Hashable {
    /// The time at which the answers before any media have arrived.
    package var opened = Duration.zero
    /// The time from the first request to the beginning of playback; nil if there is no media.
    package var start: Duration?
    package var stalls: [Stall] = []
    /// True if the loop ended before the media did, because it takes too many steps: there may be more stalls.
    package var isCut = false

    package var stalled: Duration { stalls.reduce(.zero) { $0 + $1.duration } }
  }

  /// The requests before any media: those of a step are sent together, and a step begins when the one before has arrived.
  package var opening: [[Request]]
  /// The segments of each track: of the video, and of audio that has segments of its own.
  package var tracks: [[Segment]]
  package var link: LinkSpec
  package var rules: Rules

  package init(opening: [[Request]], tracks: [[Segment]], link: LinkSpec, rules: Rules = Rules()) {
    self.opening = opening
    self.tracks = tracks
    self.link = link
    self.rules = rules
  }

  /// Plays to the end.
  package func course() -> Course {
    var player = SegmentPlayer(self)
    return player.course()
  }

  /// The bytes of all answers.
  package var byteCount: Int64 {
    let media = tracks.joined().map { segment in
      (segment.initialization?.byteCount ?? 0) &+ segment.byteCount
    }
    return (opening.joined().map(\.byteCount) + media).reduce(0) { sum, count in
      let (next, overflows) = sum.addingReportingOverflow(max(count, 0))
      return overflows ? .max : next
    }
  }
}

extension LinkPlayback.Segment {
  package var byteCount: Int64 {
    pieces.reduce(0) { sum, piece in
      let (next, overflows) = sum.addingReportingOverflow(max(piece.byteCount, 0))
      return overflows ? .max : next
    }
  }
}

/// An answer on its way.
private struct Arrival {
  let byteCount: Int
  let wait: Duration
  /// True if its bytes leave the link as they arrive; false if they wait until there is room for their media.
  let isTakenAtOnce: Bool
  /// The connection; its time is final once it is open.
  var departure: LinkModel.Departure?
  /// The number of the transfer; nil before it begins, and once it has arrived.
  var transfer: Int?
  var arrivedCount = 0
  var readCount = 0

  var isComplete: Bool { arrivedCount == byteCount }
}

/// A track that is being loaded.
private struct LoadingTrack {
  /// A segment that was requested, by the places of its answers in `SegmentPlayer.arrivals`.
  struct Open {
    var initialization: Int?
    /// Nil until the initialization has come, if it is waited for.
    var media: Int?
  }

  let segments: [LinkPlayback.Segment]
  /// The segment that was requested and is not read to its end.
  var open: Open?
  /// The index of the segment that is requested next.
  var next = 0
  /// The end of what is loaded, in seconds.
  var end = 0.0
  var isFilling = true
  /// The piece of the open segment that is read next, and the bytes of it that were read.
  private var piece = (index: 0, readCount: Int64(0))

  init(_ segments: [LinkPlayback.Segment]) { self.segments = segments }

  var isComplete: Bool { next == segments.count && open == nil }
  /// The open segment.
  var current: LinkPlayback.Segment { segments[next - 1] }

  /// Adds the media of bytes of the open segment.
  mutating func read(_ count: Int) {
    var left = Int64(count)
    while piece.index < current.pieces.count {
      let this = current.pieces[piece.index]
      let part = min(left, max(this.byteCount, 0) - piece.readCount)
      end += this.byteCount > 0 ? this.duration * Double(part) / Double(this.byteCount) : this.duration
      piece.readCount += part
      left -= part
      guard piece.readCount >= this.byteCount else { return }
      piece = (piece.index + 1, 0)
    }
  }

  /// Goes on to the next segment.
  mutating func endSegment() {
    open = nil
    piece = (0, 0)
  }
}

/// The loop of `LinkPlayback`.
private struct SegmentPlayer {
  private enum State {
    /// Playback has not begun.
    case opening
    case playing(from: Double, since: Duration)
    case stalled(at: Double, since: Duration)
  }

  private let opening: [[LinkPlayback.Request]]
  private let rules: LinkPlayback.Rules
  private var model: LinkModel
  private let pieceByteCount: Int
  private var now = Duration.zero
  private var arrivals: [Arrival] = []
  /// The places of answers that have not arrived.
  private var pending: [Int] = []
  private var tracks: [LoadingTrack]
  private var state = State.opening
  private var result = LinkPlayback.Course()

  /// Separate audio may be late by this much before playback stalls, in seconds.
  private static let audioTolerance = 0.1
  /// The bytes that are read at a time, if all bytes are not too many for that.
  private static let pieceByteCount = 8 << 10
  /// The number of parcels that all bytes are divided into, if they are more.
  private static let parcelCount: Int64 = 30_000
  private static let stepLimit = 1_000_000
  private static let instant = 1e-6

  init(_ playback: LinkPlayback) {
    opening = playback.opening
    rules = playback.rules
    tracks = playback.tracks.map(LoadingTrack.init)
    let parcel = Int(clamping: playback.byteCount / Self.parcelCount)
    model = LinkModel(playback.link, parcelByteCount: parcel)
    pieceByteCount = max(parcel, Self.pieceByteCount)
  }

  mutating func course() -> LinkPlayback.Course {
    for step in opening {
      for request in step { send(request, isTakenAtOnce: true, opensAhead: true) }
      while !pending.isEmpty, advance() {}
    }
    result.opened = now
    for index in tracks.indices { requestNext(of: index) }
    for _ in 0..<Self.stepLimit {
      for index in tracks.indices { load(index) }
      play()
      if case .playing = state, tracks.allSatisfy(\.isComplete) { return result }
      guard advance() else { return result }
    }
    result.isCut = true
    return result
  }

  // MARK: The link

  /// Sends a request; returns the place of its answer.
  @discardableResult
  private mutating func send(
    _ request: LinkPlayback.Request, isTakenAtOnce: Bool, opensAhead: Bool = false
  ) -> Int {
    var arrival = Arrival(
      byteCount: Int(clamping: max(request.byteCount, 1)), wait: request.wait, isTakenAtOnce: isTakenAtOnce)
    let place = arrivals.count
    if let host = LinkHost(request.url) {
      arrival.departure = model.depart(to: host, at: now)
      if opensAhead { model.openAhead(to: host, at: now) }
      pending.append(place)
    } else {
      arrival.arrivedCount = arrival.byteCount
    }
    arrivals.append(arrival)
    beginTransfers()
    return place
  }

  /// Begins the transfers whose connections are open.
  private mutating func beginTransfers() {
    for place in pending where arrivals[place].transfer == nil {
      guard let departure = arrivals[place].departure,
        let settled = departure.isPending ? model.settled(departure) : departure
      else { continue }
      let number = model.begin(
        readyAt: settled.time + settled.roundTrip + arrivals[place].wait, on: settled.connection)
      model.put(arrivals[place].byteCount, of: number, at: now)
      _ = model.complete(number)
      arrivals[place].transfer = number
    }
  }

  /// Goes on to the next event. Returns false if nothing follows.
  private mutating func advance() -> Bool {
    // The time of the next delivery is known once those until now were taken.
    takeDeliveries()
    guard let next = [model.nextTime, nextOfPlayback].compactMap(\.self).min() else { return false }
    now = max(now, next)
    takeDeliveries()
    return true
  }

  private mutating func takeDeliveries() {
    while let delivery = model.nextDelivery(by: now) {
      guard let index = pending.firstIndex(where: { arrivals[$0].transfer == delivery.transfer }) else {
        continue
      }
      let place = pending[index]
      arrivals[place].arrivedCount += delivery.byteCount
      if arrivals[place].isTakenAtOnce {
        model.read(delivery.byteCount, of: delivery.transfer, at: delivery.time)
      }
      guard delivery.isLast else { continue }
      pending.remove(at: index)
      arrivals[place].transfer = nil
      model.remove(delivery.transfer)
      if let connection = arrivals[place].departure?.connection { model.free(connection, at: delivery.time) }
    }
    beginTransfers()
  }

  // MARK: Loading

  private mutating func requestNext(of index: Int) {
    guard tracks[index].next < tracks[index].segments.count else { return }
    let segment = tracks[index].segments[tracks[index].next]
    tracks[index].next += 1
    var open = LoadingTrack.Open()
    if let initialization = segment.initialization {
      open.initialization = send(initialization, isTakenAtOnce: true)
    }
    if !rules.loadsWholeSegments || open.initialization == nil { open.media = sendMedia(segment) }
    tracks[index].open = open
  }

  private mutating func sendMedia(_ segment: LinkPlayback.Segment) -> Int {
    let request = LinkPlayback.Request(segment.url, byteCount: segment.byteCount, wait: segment.wait)
    return send(request, isTakenAtOnce: rules.loadsWholeSegments)
  }

  /// Reads what has arrived, as far as there is room, and requests what comes next.
  private mutating func load(_ index: Int) {
    while true {
      updateFilling(index)
      guard tracks[index].isFilling else { return }
      guard let open = tracks[index].open else {
        guard tracks[index].next < tracks[index].segments.count else { return }
        requestNext(of: index)
        continue
      }
      if let place = open.initialization, !arrivals[place].isComplete { return }
      guard let place = open.media else {
        let media = sendMedia(tracks[index].current)
        tracks[index].open?.media = media
        continue
      }
      let waiting = arrivals[place].arrivedCount - arrivals[place].readCount
      guard waiting > 0 else {
        guard arrivals[place].isComplete else { return }
        tracks[index].endSegment()
        continue
      }
      guard !rules.loadsWholeSegments || arrivals[place].isComplete else { return }
      let count = rules.loadsWholeSegments ? waiting : min(waiting, pieceByteCount)
      take(count, of: place)
      tracks[index].read(count)
    }
  }

  /// Reads bytes of an answer, which makes room for more.
  private mutating func take(_ count: Int, of place: Int) {
    arrivals[place].readCount += count
    guard !arrivals[place].isTakenAtOnce, let transfer = arrivals[place].transfer else { return }
    model.read(count, of: transfer, at: now)
  }

  private mutating func updateFilling(_ index: Int) {
    let ahead = tracks[index].end - position
    if tracks[index].isFilling {
      if ahead >= rules.target { tracks[index].isFilling = false }
    } else if ahead < rules.target * rules.refillShare || ahead <= Self.instant {
      tracks[index].isFilling = true
    }
  }

  // MARK: Playback

  private var position: Double {
    switch state {
    case .opening: 0
    case .playing(let start, let since): start + (now - since) / .seconds(1)
    case .stalled(let position, _): position
    }
  }

  /// Begins, resumes or stalls.
  private mutating func play() {
    let (position, incomplete) = (self.position, tracks.indices.filter { !tracks[$0].isComplete })
    let ahead = incomplete.map { tracks[$0].end - position }.min()
    func keepsUp(_ needed: Double) -> Bool {
      guard let ahead, incomplete.contains(where: { tracks[$0].isFilling }) else { return true }
      return ahead > Self.instant && ahead >= min(needed, rules.target)
    }
    switch state {
    case .opening:
      guard tracks.contains(where: { $0.end > 0 }), keepsUp(rules.start) else { return }
      result.start = now
      state = .playing(from: position, since: now)
    case .stalled(_, let since):
      guard keepsUp(rules.resume) else { return }
      result.stalls.append(LinkPlayback.Stall(position: position, duration: now - since))
      state = .playing(from: position, since: now)
    case .playing:
      let runsOut = incomplete.contains { tracks[$0].end + tolerance(of: $0) <= position + Self.instant }
      if runsOut { state = .stalled(at: position, since: now) }
    }
  }

  private func tolerance(of track: Int) -> Double { track == 0 ? 0 : Self.audioTolerance }

  /// The time at which playback runs out of media, or a track has room again; nil if it does not play.
  private var nextOfPlayback: Duration? {
    guard case .playing = state else { return nil }
    let position = self.position
    let times = tracks.indices.filter { !tracks[$0].isComplete }.flatMap { index -> [Double] in
      let ahead = tracks[index].end - position
      let refill = tracks[index].isFilling ? [] : [ahead - rules.target * rules.refillShare]
      return [ahead + tolerance(of: index)] + refill
    }
    return times.min().map { now + .seconds(max($0, 0) + Self.instant) }
  }
}
