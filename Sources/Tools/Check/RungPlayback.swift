internal import Foundation
internal import ReelCore
internal import ReelManifest
package import ReelSimulation
internal import ReelSources

/// A rung with its audio, played over a link.
package struct PlayedRung: Sendable {
  /// The name of the rung.
  package var rung: String
  /// The beginning and the stalls of Reel's player.
  package var course: LinkPlayback.Course
  /// The media that was played, in seconds.
  package var duration: Double
  /// The average rate of the rung with its audio.
  package var bitsPerSecond: Double
  /// The number of segments whose size is not known; it was estimated by the highest rate that is stated or measured.
  package var estimatedCount: Int

  package var stalledMilliseconds: Double { course.stalled.milliseconds }
}

/// Plays the rungs of a checked source over a link, from the sizes and durations of their segments.
struct RungPlayback {
  let facts: StreamFacts
  let recording: StartRecording
  let configuration: LoadingConfiguration
  let link: LinkSpec
  /// The start on the link.
  let start: StartResult.Course

  /// What is played of a rung.
  struct Material {
    var opening: [[LinkPlayback.Request]]
    /// Video, then audio with segments of its own.
    var tracks: [[LinkPlayback.Segment]] = []
    var duration = 0.0
    var estimatedCount = 0
  }

  /// The most media that is played, in seconds.
  static let longestDuration = 600.0
  /// The media of a piece, in seconds.
  private static let pieceDuration = 0.5

  /// Plays a rung as Reel's player does that stays with it. Throws the reason, a clause, if too little is known.
  func played(_ rung: Int) throws(Unknown) -> PlayedRung {
    let material = try material(of: rung)
    let playback = LinkPlayback(
      opening: material.opening, tracks: material.tracks, link: link)
    let bits = Double(material.tracks.joined().reduce(0) { $0 + $1.byteCount }) * 8
    return PlayedRung(
      rung: facts.rungs[rung].name, course: playback.course(), duration: material.duration,
      bitsPerSecond: bits / max(material.duration, 0.001), estimatedCount: material.estimatedCount)
  }

  /// Plays a rung as players do that load whole segments, one after the other. Nil if too little is known, and for a media
  /// file.
  func playedWhole(_ rung: Int, segmentCount: Int = .max) -> LinkPlayback.Course? {
    guard facts.presentation != nil, let material = try? material(of: rung, segmentCount: segmentCount),
      material.estimatedCount == 0
    else { return nil }
    return LinkPlayback(
      opening: material.opening, tracks: material.tracks, link: link, rules: .wholeSegments
    ).course()
  }

  /// The start of such a player: until the first segment of each track has arrived.
  func wholeStart(_ rung: Int) -> Duration? { playedWhole(rung, segmentCount: 1)?.start }

  /// Why a rung can't be played: a clause without a full stop.
  struct Unknown: Error {
    var reason: String
  }

  /// What is played of a rung. Throws the reason, a clause, if too little is known.
  func material(of rung: Int, segmentCount: Int = .max) throws(Unknown) -> Material {
    guard facts.presentation != nil else { return try fileMaterial(of: rung) }
    var material = Material(opening: manifestRequests)
    var video: [LinkPlayback.Segment] = []
    var audio: [LinkPlayback.Segment] = []
    for index in sequence(from: rung) {
      try add(facts.rungs[index], to: &video, &material, segmentCount)
      if let other = audioIndex(beside: index) {
        try add(facts.rungs[other], to: &audio, &material, segmentCount)
      }
    }
    guard !video.isEmpty else { throw Unknown(reason: "\(facts.rungs[rung].name) has no segments") }
    material.tracks = audio.isEmpty ? [video] : [video, audio]
    material.duration = video.reduce(0) { $0 + $1.duration }
    return material
  }

  // MARK: - Private

  /// The manifest, then the playlists or indexes that a start requests.
  private var manifestRequests: [[LinkPlayback.Request]] {
    [FetchPurpose.source, .manifest].map { purpose in
      start.requests(for: purpose).map { request in
        var request = request
        request.wait = wait(at: request.url)
        return request
      }
    }
  }

  private func wait(at url: URL) -> Duration { recording.behaviour(of: url).wait }

  // MARK: Segments

  /// The rung, then that of each later period with the same id, or else the nearest bit rate.
  private func sequence(from rung: Int) -> [Int] {
    let first = facts.rungs[rung]
    let periods = Set(facts.rungs.map(\.place.period)).filter { $0 > first.place.period }.sorted()
    return [rung]
      + periods.compactMap { period in
        let others = facts.rungs.indices.filter {
          facts.rungs[$0].place.period == period && facts.rungs[$0].kind == first.kind
            && facts.rungs[$0].isToBeRead
        }
        let rate = first.declared?.bitsPerSecond ?? 0
        return others.first { facts.rungs[$0].declared?.id == first.declared?.id }
          ?? others.min {
            abs((facts.rungs[$0].declared?.bitsPerSecond ?? 0) - rate)
              < abs((facts.rungs[$1].declared?.bitsPerSecond ?? 0) - rate)
          }
      }
  }

  /// The audio that is played beside a rung of video, if it has segments of its own.
  func audioIndex(beside rung: Int) -> Int? {
    let video = facts.rungs[rung]
    guard video.kind == .video, let periods = facts.presentation?.periods,
      periods.indices.contains(video.place.period),
      let audio = periods[video.place.period].audioRung(beside: video.declared, configuration)
    else { return nil }
    return facts.rungs.firstIndex { rung in
      let place = rung.place
      let group = periods[video.place.period].trackGroups
      let isOfGroup = video.declared?.audioGroup.map { $0 == group[place.group].id } ?? true
      return rung.kind == .audio && place.period == video.place.period && rung.declared?.id == audio.id
        && isOfGroup && rung.isToBeRead
    }
  }

  /// Adds the segments of a rung: those that a player reaches within the time that is played, without gaps and what is
  /// missing.
  private func add(
    _ rung: RungFacts, to segments: inout [LinkPlayback.Segment], _ material: inout Material, _ limit: Int
  ) throws(Unknown) {
    var initialization: InitializationReference?
    var played = segments.reduce(0) { $0 + $1.duration }
    let beginning = facts.startSegment?.start.seconds ?? -.infinity
    for (index, segment) in rung.segments.enumerated()
    where segment.start.seconds + segment.duration.seconds > beginning + 0.001 {
      guard played < Self.longestDuration, segments.count < limit else { return }
      guard !segment.isGap, rung.samples[index]?.failure == nil else { continue }
      let size: Int64
      if let known = rung.sizes[index] {
        size = known
      } else if let estimate = estimate(of: segment, in: rung) {
        size = estimate
        material.estimatedCount += 1
      } else {
        throw Unknown(
          reason: "the size of segment \(index + 1) of \(rung.name) is not known, and no bit rate is stated")
      }
      var next = LinkPlayback.Segment(
        segment.url, Self.pieces(of: rung.samples[index], size, segment.duration.seconds))
      if segment.initialization != initialization, let reference = segment.initialization {
        next.initialization = LinkPlayback.Request(
          reference.url, byteCount: byteCount(of: reference), wait: wait(at: reference.url))
      }
      initialization = segment.initialization
      next.wait = wait(at: segment.url)
      segments.append(next)
      played += segment.duration.seconds
    }
  }

  private func byteCount(of initialization: InitializationReference) -> Int64 {
    if let length = initialization.byteRange?.length { return length }
    let answer = facts.requests.first { $0.url == initialization.url && $0.isComplete }
    return answer?.statedByteCount ?? answer?.metrics.map { Int64($0.byteCount) } ?? 1000
  }

  /// The bytes of a segment by the stated rate or that of the largest one that is known, whichever is higher; nil without
  /// either.
  private func estimate(of segment: SegmentReference, in rung: RungFacts) -> Int64? {
    var rate = Double(rung.declared?.bitsPerSecond ?? 0) / 8
    for (other, size) in zip(rung.segments, rung.sizes) where other.duration.seconds > 0 {
      if let size { rate = max(rate, Double(size) / other.duration.seconds) }
    }
    return rate > 0 ? Int64((rate * segment.duration.seconds).rounded(.up)) : nil
  }

  /// Divides a segment by the times of its samples; in proportion if they are not known.
  private static func pieces(
    of sample: SegmentFacts?, _ byteCount: Int64, _ duration: Double
  ) -> [LinkPlayback.Piece] {
    guard let sample, !sample.isPartial else {
      return [LinkPlayback.Piece(byteCount: byteCount, duration: duration)]
    }
    return pieces(samples(of: sample), byteCount, duration)
  }

  /// The samples with their times from the beginning of their track.
  private static func samples(of segment: SegmentFacts) -> [(time: Double, byteCount: Int64)] {
    [segment.video, segment.audio].compactMap(\.self).flatMap { track in
      let start = track.start ?? 0
      return track.samples.map { (time: $0.start - start, byteCount: Int64($0.byteCount)) }
    }
  }

  /// Divides bytes by the times of samples, in seconds from their beginning.
  private static func pieces(
    _ samples: [(time: Double, byteCount: Int64)], _ byteCount: Int64, _ duration: Double
  ) -> [LinkPlayback.Piece] {
    let count = max(1, Int(min((duration / pieceDuration).rounded(), 100_000)))
    let total = samples.reduce(0.0) { $0 + Double($1.byteCount) }
    guard count > 1, total > 0 else {
      return [LinkPlayback.Piece(byteCount: byteCount, duration: duration)]
    }
    var sums = [Double](repeating: 0, count: count)
    for sample in samples {
      let place = (sample.time / duration * Double(count)).rounded(.down)
      sums[Int(min(max(place, 0), Double(count - 1)))] += Double(sample.byteCount)
    }
    return sums.map { sum in
      LinkPlayback.Piece(
        byteCount: Int64((sum / total * Double(byteCount)).rounded()), duration: duration / Double(count))
    }
  }

  // MARK: Files

  /// A file is one answer. Its bytes are divided by the times of its samples, or in proportion if they are not known.
  private func fileMaterial(of rung: Int) throws(Unknown) -> Material {
    guard let url = facts.url, let size = facts.file?.byteCount ?? recording.byteCount(of: url), size > 0
    else {
      throw Unknown(reason: "the size of the file is not known")
    }
    guard let duration = facts.duration, duration > 0 else {
      throw Unknown(reason: "the duration of the file is not known")
    }
    var material = Material(opening: [])
    var samples = facts.file?.samples ?? []
    // The index comes before the media, and is no part of it.
    var head: Int64 = 0
    if let file = facts.file, let index = file.index, !samples.isEmpty {
      let length = index.length ?? 0
      if file.isIndexLast {
        material.opening = [[LinkPlayback.Request(url, byteCount: length, wait: wait(at: url))]]
      } else {
        head = index.offset + length
      }
    } else if let sample = facts.rungs[rung].samples[0], sample.readsTo(duration) {
      samples = Self.samples(of: sample)
    } else {
      material.estimatedCount = 1
    }
    let indexLength = facts.file?.isIndexLast == true ? facts.file?.index?.length ?? 0 : 0
    let media = max(size - head - indexLength, 1)
    var segment = LinkPlayback.Segment(url, Self.pieces(samples, media, duration))
    if head > 0 { segment.pieces.insert(LinkPlayback.Piece(byteCount: head, duration: 0), at: 0) }
    var played = 0.0
    segment.pieces = Array(
      segment.pieces.prefix { piece in
        defer { played += piece.duration }
        return played < Self.longestDuration
      })
    segment.wait = wait(at: url)
    material.tracks = [[segment]]
    material.duration = segment.duration
    return material
  }
}

extension LinkPlayback.Segment {
  fileprivate var duration: Double { pieces.reduce(0) { $0 + $1.duration } }
}

extension SegmentFacts {
  /// True if its samples were read up to nearly this time, in seconds.
  fileprivate func readsTo(_ duration: Double) -> Bool {
    guard let start = video?.start ?? audio?.start, let end = video?.end ?? audio?.end else { return false }
    return end - start >= duration * 0.9
  }
}
