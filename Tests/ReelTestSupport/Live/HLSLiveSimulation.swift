import Foundation
import HTTPTypes
package import ReelCore
import ReelManifest
package import ReelTesting

/// An endless live HLS stream, made by playing an on-demand presentation over and over.
///
///     let clock = ManualClock(.now)
///     let live = try HLSLiveSimulation(LiveMaterial(manifest: playlist), start: clock.now) { clock.now }
///     let origin = try await Origin.start(.init(resources: [live]))
///     // Open origin.url(live.manifestPath), advance the clock, read on.
///
/// It is a resource of an `Origin` (`Origin.Configuration.resources`). The multivariant playlist is the one of the
/// material; each media playlist that it names is live under its own path. Where the loop begins again there is an
/// EXT-X-DISCONTINUITY. Nothing is kept but a count of the requests: every answer follows from the clock, so that a
/// test with a `ManualClock` sees an hour pass in a moment.
///
/// A segment that is not published yet is answered by 404, and one that has left the playlist so long ago that
/// RFC 8216 §6.2.2 lets a server delete it as well.
package final class HLSLiveSimulation: DynamicResource {
  package struct Options: Sendable {
    /// How many segments the playlist lists.
    package var windowCount: Int
    /// True for a playlist of type EVENT, from which nothing is taken away (RFC 8216 §4.3.3.5).
    package var isEvent: Bool
    /// True for an EXT-X-PROGRAM-DATE-TIME before each segment.
    package var hasProgramDateTime: Bool
    /// After so many segments of the first track the stream ends, with EXT-X-ENDLIST; nil for never.
    package var segmentCount: Int?
    package var disturbances: LiveDisturbances

    package init(
      windowCount: Int = 6, isEvent: Bool = false, hasProgramDateTime: Bool = true, segmentCount: Int? = nil,
      disturbances: LiveDisturbances = LiveDisturbances()
    ) {
      self.windowCount = max(windowCount, 1)
      self.isEvent = isEvent
      self.hasProgramDateTime = hasProgramDateTime
      self.segmentCount = segmentCount
      self.disturbances = disturbances
    }
  }

  package let material: LiveMaterial
  package let options: Options
  /// When the first segment began.
  package let start: WallTime
  /// The path of the playlist to open.
  package let manifestPath: String

  private let prefix: String
  private let now: @Sendable () -> WallTime
  /// How often each playlist was asked for.
  private let requests = Locked<[String: Int]>([:])

  /// A stream below `path` that began at `start`.
  ///
  /// Throws `unsupported` where the material is no HLS presentation.
  package init(
    _ material: LiveMaterial, path: String = "/live", start: WallTime, options: Options = Options(),
    now: @escaping @Sendable () -> WallTime = { .now }
  ) throws(ReelError) {
    guard material.format == .hls else {
      throw ReelError(.unsupported, "a live HLS stream can't be made of a DASH presentation")
    }
    self.material = material
    self.options = options
    self.start = start
    self.now = now
    prefix = path.hasSuffix("/") ? path : path + "/"
    manifestPath = prefix + (material.multivariant?.name ?? material.tracks[0].id)
  }

  package func response(at path: String) -> Origin.Response? {
    guard path.hasPrefix(prefix) else { return nil }
    let name = String(path.dropFirst(prefix.count))
    let time = now()
    let date: HTTPFields = [.date: time.httpDate]
    if let multivariant = material.multivariant, multivariant.name == name {
      return Origin.Response(multivariant.bytes, headers: date)
    }
    if let track = material.tracks.firstIndex(where: { $0.id == name }) {
      let number = requests.withLock { requests in
        requests[name, default: 0] += 1
        return requests[name, default: 0]
      }
      let age = options.disturbances.age(ofRequest: number)
      return Origin.Response(mediaPlaylist(ofTrack: track, at: time - age), headers: date)
    }
    guard let piece = piece(name, at: time), let bytes = try? piece.read() else { return nil }
    return Origin.Response(bytes, headers: date)
  }

  /// The text of a media playlist at a time. `track` counts `material.tracks`.
  package func mediaPlaylist(ofTrack track: Int, at time: WallTime) -> String {
    let window = window(ofTrack: track, after: time - start)
    let track = (number: track, value: material.tracks[track])
    let first = material.occurrence(window.segments.lowerBound, of: track.value)
    let discontinuities = discontinuitySequence(first, of: track.value)
    let beginsRun = begins(first, window.segments.lowerBound, of: track.value)
    let hasMaps = !track.value.initializations.isEmpty
    var lines = ["#EXTM3U", "#EXT-X-VERSION:\(hasMaps ? 7 : 3)", "#EXT-X-TARGETDURATION:\(targetDuration)"]
    lines.append("#EXT-X-MEDIA-SEQUENCE:\(window.segments.lowerBound)")
    // The tag of a discontinuity leaves the playlist together with the segment that it stands before, and is counted
    // from then on (RFC 8216 §6.2.2).
    lines.append("#EXT-X-DISCONTINUITY-SEQUENCE:\(beginsRun ? discontinuities - 1 : discontinuities)")
    if options.isEvent { lines.append("#EXT-X-PLAYLIST-TYPE:EVENT") }
    var map: Int?
    for index in window.segments {
      let segment = material.occurrence(index, of: track.value)
      if begins(segment, index, of: track.value) { lines.append("#EXT-X-DISCONTINUITY") }
      if let initialization = segment.segment.initialization, initialization != map {
        map = initialization
        let type = track.value.initializations[initialization].file.pathExtension
        lines.append("#EXT-X-MAP:URI=\"init-\(track.number)-\(initialization).\(type)\"")
      }
      if options.hasProgramDateTime {
        lines.append("#EXT-X-PROGRAM-DATE-TIME:\(start + segment.start)")
      }
      lines.append("#EXTINF:\(segment.segment.duration.decimal(6)),")
      lines.append("live-\(track.number)-\(index).\(segment.segment.piece.file.pathExtension)")
    }
    if window.hasEnded { lines.append("#EXT-X-ENDLIST") }
    return lines.joined(separator: "\n") + "\n"
  }

  // MARK: - Private

  /// The longest segment in whole seconds, rounded to the nearest (RFC 8216 §4.3.3.1).
  private var targetDuration: Int64 {
    let longest = material.tracks.flatMap(\.segments).map(\.duration).max() ?? .zero
    return max((longest + MediaTime(value: 1, timescale: 2)).ticks(timescale: 1), 1)
  }

  /// Which segments are listed, `elapsed` after the start.
  private func window(
    ofTrack track: Int, after elapsed: MediaTime
  ) -> (segments: Range<Int64>, hasEnded: Bool) {
    let track = material.tracks[track]
    let published = options.disturbances.published(at: elapsed)
    var (end, hasEnded) = (material.count(of: track, endingBy: published), false)
    if let count = options.segmentCount, let first = material.tracks.first {
      let last = material.occurrence(Int64(max(count, 1)) - 1, of: first)
      hasEnded = last.end <= published
      let total = material.count(of: track, beginningBefore: last.end)
      end = hasEnded ? total : min(end, total)
    }
    let begin = options.isEvent ? 0 : max(0, end - Int64(options.windowCount))
    return (begin..<end, hasEnded)
  }

  /// The discontinuity sequence number of a segment, which never changes: how many there are up to it.
  private func discontinuitySequence(
    _ segment: LiveMaterial.Occurrence, of track: LiveMaterial.Track
  ) -> Int64 {
    segment.pass * track.discontinuitiesPerPass + Int64(segment.segment.discontinuity)
  }

  /// True where a segment has an EXT-X-DISCONTINUITY before it.
  private func begins(
    _ segment: LiveMaterial.Occurrence, _ index: Int64, of track: LiveMaterial.Track
  ) -> Bool {
    guard index > 0 else { return false }
    let previous = material.occurrence(index - 1, of: track)
    return discontinuitySequence(previous, of: track) < discontinuitySequence(segment, of: track)
  }

  /// What is under `init-TRACK-PLACE.TYPE` and `live-TRACK-INDEX.TYPE` in the folder of the track's playlist.
  private func piece(_ name: String, at time: WallTime) -> LiveMaterial.Piece? {
    let folder = name.lastIndex(of: "/").map { name[...$0] } ?? ""
    let fields = name.dropFirst(folder.count).split(separator: "-", omittingEmptySubsequences: false)
    guard fields.count == 3, let track = Int(fields[1]), material.tracks.indices.contains(track),
      let index = Int64(fields[2].prefix { $0 != "." }), index >= 0
    else { return nil }
    let tracks = material.tracks[track]
    guard tracks.id.hasPrefix(folder), !tracks.id.dropFirst(folder.count).contains("/") else { return nil }
    let piece: LiveMaterial.Piece
    switch fields[0] {
    case "init" where index < tracks.initializations.count: piece = tracks.initializations[Int(index)]
    case "live" where isAvailable(index, ofTrack: track, at: time):
      piece = material.occurrence(index, of: tracks).segment.piece
    default: return nil
    }
    return name.hasSuffix(".\(piece.file.pathExtension)") ? piece : nil
  }

  private func isAvailable(_ index: Int64, ofTrack track: Int, at time: WallTime) -> Bool {
    let window = window(ofTrack: track, after: time - start).segments
    guard index < window.upperBound else { return false }
    guard index < window.lowerBound else { return true }
    // Gone after the length of the segment and of the longest playlist that listed it (RFC 8216 §6.2.2).
    let longest = MediaTime(value: targetDuration, timescale: 1) * (Int64(options.windowCount) + 1)
    return index >= self.window(ofTrack: track, after: time - longest - start).segments.lowerBound
  }
}
