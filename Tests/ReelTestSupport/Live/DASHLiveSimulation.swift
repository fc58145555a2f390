import Foundation
import HTTPTypes
package import ReelCore
import ReelManifest
package import ReelTesting

/// An endless live DASH presentation, made by playing an on-demand one over and over.
///
/// It is a resource of an `Origin` (`Origin.Configuration.resources`). Every answer follows from the clock, so that a
/// test with a `ManualClock` sees an hour pass in a moment. A segment is there from its availability start time to its
/// availability end time (ISO/IEC 23009-1 §5.3.9.5.3) by the server's clock, and not a moment longer: 404 before, and
/// `Options.goneStatus` after.
///
/// When the last pass has ended the MPD becomes static, with all Periods and all segments from the first on, as where
/// a broadcast is kept on demand.
package final class DASHLiveSimulation: DynamicResource {
  package let material: LiveMaterial
  package let options: Options
  /// MPD@availabilityStartTime, on the server's clock.
  package let start: WallTime
  /// The path of the MPD.
  package let manifestPath: String
  /// The path that `ClockSource` of the kinds `httpHead` and `httpISO` name.
  package let timePath: String

  private let prefix: String
  private let now: @Sendable () -> WallTime
  /// One for each track, where segments are moved to their place on one timeline.
  private let shifters: [FragmentShifter]
  private let requestCount = Locked(0)

  /// A presentation below `path` that began at `start`.
  ///
  /// Throws `unsupported` where the material can't be presented so: it is no DASH presentation, its segments are not of
  /// equal length (`Addressing.number`) or can't be moved (`Periods.single`); and `usage` where nothing tells of
  /// new Periods or segments (`Options.minimumUpdatePeriod`).
  package init(
    _ material: LiveMaterial, path: String = "/live", start: WallTime, options: Options = Options(),
    now: @escaping @Sendable () -> WallTime = { .now }
  ) throws(ReelError) {
    guard material.format == .dash else {
      throw ReelError(.unsupported, "a live DASH presentation can't be made of an HLS presentation")
    }
    guard options.minimumUpdatePeriod != nil || (options.periods == .single && options.addressing == .number)
    else {
      throw ReelError(
        .usage, "without a minimumUpdatePeriod nothing tells of new Periods or segments",
        advice: "set it, or use one Period with segments by number")
    }
    if options.addressing == .number {
      for track in material.tracks { try Self.checkLengths(of: track, in: material, options.periods) }
    }
    var shifters: [FragmentShifter] = []
    if options.periods == .single {
      for track in material.tracks {
        shifters.append(try FragmentShifter(initialization: try track.initializations.first?.read() ?? []))
      }
    }
    self.shifters = shifters
    self.material = material
    self.options = options
    self.start = start
    self.now = now
    prefix = path.hasSuffix("/") ? path : path + "/"
    manifestPath = prefix + "manifest.mpd"
    timePath = prefix + "time"
  }

  package func response(at path: String) -> Origin.Response? {
    guard path.hasPrefix(prefix) else { return nil }
    let time = now() + options.serverClockOffset
    let date: HTTPFields = [.date: time.httpDate]
    if path == timePath {
      return Origin.Response(time.description, contentType: "text/plain; charset=utf-8", headers: date)
    }
    if path == manifestPath {
      let number = requestCount.withLock { count in
        count += 1
        return count
      }
      let age = options.disturbances.age(ofRequest: number)
      guard let text = manifest(atServerTime: time - age) else { return nil }
      return Origin.Response(text, headers: date)
    }
    return piece(path.dropFirst(prefix.count), after: time - start, headers: date)
  }

  /// The text of the MPD at a time of the server's clock; nil before its first Period is there.
  package func manifest(atServerTime time: WallTime) -> String? {
    DASHLiveManifest(simulation: self, time: time).text
  }

  // MARK: - For the manifest

  /// When the presentation ends, from its start; nil for never.
  var end: MediaTime? { options.passCount.map { material.duration * Int64(max($0, 1)) } }

  func hasEnded(after elapsed: MediaTime) -> Bool {
    end.map { options.disturbances.published(at: elapsed) >= $0 } ?? false
  }

  /// Which segments of a track are listed: those that are published and overlap the time shift buffer.
  func window(of track: LiveMaterial.Track, after elapsed: MediaTime) -> Range<Int64> {
    if let end, hasEnded(after: elapsed) { return 0..<material.count(of: track, beginningBefore: end) }
    let published = options.disturbances.published(at: elapsed) + options.availabilityTimeOffset
    var last = material.count(of: track, endingBy: published)
    if let end { last = min(last, material.count(of: track, beginningBefore: end)) }
    let first = options.timeShiftBufferDepth.map { material.count(of: track, endingBy: elapsed - $0) } ?? 0
    return min(first, last)..<last
  }

  /// What `$Time$` stands for.
  func ticks(_ segment: LiveMaterial.Occurrence, of track: LiveMaterial.Track) -> Int64 {
    let time = (track.mediaStart ?? .zero) + segment.segment.start
    let passed = options.periods == .single ? material.duration * segment.pass : .zero
    return (time + passed).ticks(timescale: track.timescale)
  }

  // MARK: - Private

  private static func checkLengths(
    of track: LiveMaterial.Track, in material: LiveMaterial, _ periods: Periods
  ) throws(ReelError) {
    let length = track.segments[0].duration
    let last = track.segments.count - 1
    let isEqual = track.segments[..<last].allSatisfy { $0.duration == length }
    let isWhole = track.segments[last].duration == length
    guard isEqual, isWhole || (periods == .onePerPass && track.segments[last].duration < length) else {
      throw ReelError(
        .unsupported, "the segments of the track '\(track.id)' are not of equal length",
        advice: "list them in a SegmentTimeline")
    }
  }

  /// What is under `TRACK-init.TYPE`, `TRACK-NUMBER.TYPE` and `TRACK-tTIME.TYPE`, in `pPASS/` where each pass is a
  /// Period.
  private func piece(
    _ name: Substring, after elapsed: MediaTime, headers: HTTPFields
  ) -> Origin.Response? {
    var (pass, name): (Int64?, Substring) = (options.periods == .single ? 0 : nil, name)
    if pass == nil, let slash = name.firstIndex(of: "/"), name.hasPrefix("p") {
      // Nobody sees a pass of 32 bits, and below that nothing overflows.
      guard let number = Int64(name[..<slash].dropFirst()), (0...Int64(Int32.max)).contains(number) else {
        return nil
      }
      (pass, name) = (number, name[name.index(after: slash)...])
    }
    let fields = name.prefix { $0 != "." }.split(separator: "-")
    guard fields.count == 2, let place = Int(fields[0]), material.tracks.indices.contains(place) else {
      return nil
    }
    let track = material.tracks[place]
    guard name.hasSuffix(".\(track.fileType)") else { return nil }
    if fields[1] == "init" {
      guard let bytes = try? track.initializations.first?.read() else { return nil }
      return Origin.Response(bytes, headers: headers)
    }
    guard let pass, let index = index(fields[1], pass: pass, of: track) else { return nil }
    let segment = material.occurrence(index, of: track)
    if let end, segment.start >= end { return nil }
    if !hasEnded(after: elapsed) {
      let available = segment.end - options.availabilityTimeOffset
      guard available <= options.disturbances.published(at: elapsed) else { return nil }
      // The end is not moved by what can be had early.
      if let depth = options.timeShiftBufferDepth,
        elapsed >= segment.end + segment.segment.duration + depth
      {
        return Origin.Response("gone\n", contentType: "text/plain", status: options.goneStatus)
      }
    }
    guard var bytes = try? segment.segment.piece.read() else { return nil }
    if options.periods == .single {
      bytes = shifters[place].shifted(bytes, by: material.duration * segment.pass)
    }
    return Origin.Response(bytes, headers: headers)
  }

  /// The place in the endless stream of the segment that a number (from 1 on) or `t` and a time name.
  private func index(_ name: Substring, pass: Int64, of track: LiveMaterial.Track) -> Int64? {
    let count = Int64(track.segments.count)
    switch options.addressing {
    case .number:
      guard let number = Int64(name), number > 0 else { return nil }
      guard options.periods == .onePerPass else { return number - 1 }
      return number > count ? nil : pass * count + number - 1
    case .timeline:
      guard name.hasPrefix("t"), let time = Int64(name.dropFirst()), time >= 0 else { return nil }
      let elapsed = MediaTime(value: time, timescale: track.timescale) - (track.mediaStart ?? .zero)
      let pass =
        options.periods == .single
        ? min(max(elapsed.quotient(by: material.duration), 0), Int64(Int32.max)) : pass
      // A time is rounded down to a tick, and may lie in the pass before.
      let candidates = pass * count...(pass + 1) * count
      return candidates.first { ticks(material.occurrence($0, of: track), of: track) == time }
    }
  }
}

extension LiveMaterial.Track {
  /// The ticks per second that a SegmentTimeline counts in.
  var timescale: Int32 { segments[0].duration.timescale }

  var fileType: String { segments[0].piece.file.pathExtension }
}
