import Foundation
package import Logging
package import NIOCore
import ReelCore
import ReelManifest

/// The playlists that a gateway serves, and the media that they name.
///
/// A live presentation is read again when a client asks for a playlist and that is due: once for all clients, and never
/// while nobody asks. If it can't be read, the last playlists stand, and the next request tries again.
package actor GatewayPlaylists {
  private var hls: VirtualHLS
  /// The playlists before these, for clients that still request segments that are no longer listed.
  private var earlier: [(hls: VirtualHLS, at: WallTime)] = []
  private let clock: any WallClock
  private let logger: Logger
  /// True if playlists name the origin of media that clients can reach.
  private let isDirect: Bool
  /// The media playlists of `hls`, by the name of the track.
  private var playlists: [String: Task<Playlist, Never>] = [:]
  private var byteCount = 0
  /// The resources that playlists name by their URLs, by the name of the track.
  private var named: [String: [String: VirtualHLS.Resource]] = [:]
  /// The state of reading, by the name of the track or, if one manifest lists all of them, empty.
  private var readings: [String: Reading] = [:]

  /// A long playlist takes a second or two, which should not be spent for each client. At most so many bytes are kept; the
  /// rest is generated again.
  private static let byteLimit = 64 << 20
  /// How long earlier playlists, and the names in them, are known (RFC 8216 §6.2.2).
  private static let memory = MediaTime(value: 60, timescale: 1)
  /// The shortest time between earlier playlists that are kept.
  private static let memoryInterval = MediaTime(value: 10, timescale: 1)
  private static let nameLimit = 4096
  /// How long a client waits for a reading before it gets the last playlist.
  private static let patience = Duration.seconds(3)
  /// The same if the last playlist is older than `memory`.
  private static let stalePatience = Duration.seconds(10)

  private struct Playlist: Sendable {
    var text: ByteBuffer
    /// The resources that it names by their URLs.
    var resources: [String: VirtualHLS.Resource]
  }

  /// Where new segments may be found.
  private enum Look {
    case inManifest
    /// In the manifest that is known: the clock makes segments available.
    case byClock
  }

  private struct Reading {
    /// The time at which the manifest was last requested, and the clock was last looked at.
    var readAt: WallTime
    var lookedAt: WallTime
    var hasChanged = true
    var isFailing = false
    var task: Task<Void, Never>?
  }

  package init(_ hls: VirtualHLS, isDirect: Bool = false, logger: Logger) {
    self.hls = hls
    self.isDirect = isDirect
    self.logger = logger
    clock = hls.source?.clock ?? SystemWallClock()
  }

  /// False for a live presentation of which no segment is available yet.
  package var hasBegun: Bool {
    get async {
      if hls.tracks.isEmpty { await update(nil) }
      return !hls.tracks.isEmpty
    }
  }

  func multivariantPlaylist(reference: @escaping @Sendable (VirtualHLS.Track) -> String) -> String {
    hls.multivariantPlaylist(reference: reference)
  }

  /// Returns the media playlist of a track, with the names of its resources as URIs; nil if there is no such track.
  package func mediaPlaylist(ofTrackNamed name: String) async -> ByteBuffer? {
    guard let track = hls.track(named: name) else { return nil }
    await update(track)
    return await playlist(of: track).text
  }

  /// Returns a resource that a media playlist names; nil if none does, or none has for a minute.
  func resource(named name: String, ofTrackNamed trackName: String) async -> VirtualHLS.Resource? {
    guard let track = hls.track(named: trackName) else { return nil }
    if let segment = track.segment(named: name) { return segment }
    for old in earlier.reversed() {
      if let segment = old.hls.track(named: trackName)?.segment(named: name) { return segment }
    }
    if let known = named[trackName]?[name] { return known }
    // A client may come back with names of an earlier process.
    _ = await playlist(of: track)
    return named[trackName]?[name]
  }

  /// Ends all readings.
  func stop() {
    for reading in readings.values { reading.task?.cancel() }
  }

  // MARK: - Private

  private func playlist(of track: VirtualHLS.Track) async -> Playlist {
    let name = track.name
    if let known = playlists[name] { return await known.value }
    let (hls, isDirect) = (hls, isDirect)
    let task = Task {
      var resources: [String: VirtualHLS.Resource] = [:]
      let text = hls.mediaPlaylist(of: hls.track(named: name) ?? track) { resource in
        if isDirect, resource.isReachable { return resource.url.absoluteString.withoutUserInformation }
        if resource.kind != .segment { resources[resource.name] = resource }
        return resource.name
      }
      return Playlist(text: ByteBuffer(string: text), resources: resources)
    }
    playlists[name] = task
    let playlist = await task.value
    if hls.live != nil, named[name]?.count ?? 0 > Self.nameLimit { named[name] = nil }
    named[name, default: [:]].merge(playlist.resources) { $1 }
    byteCount += playlist.text.readableBytes
    if byteCount > Self.byteLimit {
      byteCount -= playlist.text.readableBytes
      playlists[name] = nil
    }
    return playlist
  }

  /// Reads a live presentation again if that is due, or waits for the client that does.
  ///
  /// - Parameter track: The track that a client asks for; nil for a presentation that has not begun.
  private func update(_ track: VirtualHLS.Track?) async {
    guard let source = hls.source, hls.live != nil else { return }
    let key = source.isByTrack ? track?.name ?? "" : ""
    let now = clock.now
    var reading = readings[key] ?? Reading(readAt: now, lookedAt: now)
    let age = now - reading.readAt
    if reading.task == nil, let look = dueLook(of: track, reading, at: now) {
      reading.task = Task { await read(track, key, look) }
    }
    readings[key] = reading
    guard let task = reading.task else { return }
    let limit = age > Self.memory ? Self.stalePatience : Self.patience
    let timer = SystemMonotonicClock()
    _ = try? await TimeLimit.run(until: timer.now + limit, on: timer) { await task.value }
  }

  /// Returns where to look for new segments now; nil if none are expected.
  private func dueLook(of track: VirtualHLS.Track?, _ reading: Reading, at now: WallTime) -> Look? {
    guard let timing = hls.live?.timing, track?.hasEnded != true else {
      // Players do not ask for a playlist that has ended, unless it is one that an origin has resumed.
      return reading.readAt + Self.memory <= now ? .inManifest : nil
    }
    let duration = Self.segmentDuration(of: track)
    if let delay = timing.reloadDelay(hasChanged: reading.hasChanged, segmentDuration: duration),
      reading.readAt + delay <= now
    {
      return .inManifest
    }
    guard let expected = hls.nextSegmentTime, expected <= now, reading.lookedAt + duration.half.half <= now
    else { return nil }
    return .byClock
  }

  /// The duration of the newest segment, or a common one before there are any.
  private static func segmentDuration(of track: VirtualHLS.Track?) -> MediaTime {
    track?.parts.last?.list.last?.duration ?? MediaTime(value: 2, timescale: 1)
  }

  private func read(_ track: VirtualHLS.Track?, _ key: String, _ look: Look) async {
    let began = clock.now
    let known = hls.tracks.map(\.endIndex)
    var reading = readings[key] ?? Reading(readAt: began, lookedAt: began)
    reading.lookedAt = began
    var reads = look == .inManifest
    do {
      var next = try await hls.next(for: track, reads: reads)
      if !reads, next.tracks.map(\.endIndex) == known, case .after? = hls.live?.timing?.reload,
        reading.readAt + Self.segmentDuration(of: track).half <= began
      {
        // A manifest that lists its segments is read when the next one should be there.
        reads = true
        next = try await hls.next(for: track, reads: true)
      }
      reading.hasChanged = next.tracks.map(\.endIndex) != known
      if reading.isFailing { logger.notice("the live manifest can be read again") }
      reading.isFailing = false
      take(next, of: track, at: began)
    } catch {
      reads = true
      reading.hasChanged = false
      if !reading.isFailing, !(error is CancellationError) {
        logger.warning(
          "the live manifest can't be read: the playlists stand", metadata: ["reason": "\(error)"])
      }
      reading.isFailing = true
    }
    if reads { reading.readAt = began }
    reading.task = nil
    readings[key] = reading
  }

  private func take(_ next: VirtualHLS, of track: VirtualHLS.Track?, at time: WallTime) {
    if earlier.last.map({ time - $0.at > Self.memoryInterval }) ?? true {
      earlier.append((hls, time))
      earlier.removeAll { time - $0.at > Self.memory }
    }
    if let track, hls.source?.isByTrack == true {
      // The playlists of others may have been read meanwhile.
      hls.tracks[track.index] = next.tracks[track.index]
      playlists[track.name] = nil
    } else {
      hls = next
      playlists = [:]
    }
    byteCount = 0
  }
}

extension VirtualHLS {
  /// When the next segment of a live presentation is expected; nil if its segments are not tied to the clock.
  fileprivate var nextSegmentTime: WallTime? {
    guard let start = live?.start, !tracks.isEmpty else { return live?.start }
    let times = tracks.lazy.filter { $0.kind != .text }.compactMap { track -> MediaTime? in
      guard let list = track.parts.last?.list, let last = list.last else { return nil }
      return list.end + last.duration - (track.anchor.rung.availabilityTimeOffset ?? .zero)
    }
    return times.min().map { start + $0 }
  }
}
