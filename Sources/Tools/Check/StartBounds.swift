internal import Foundation
internal import ReelCore
internal import ReelManifest
internal import ReelSimulation

/// The least time that a start can take, by arithmetic over the requests of a replayed start.
struct StartBounds {
  let facts: StreamFacts
  let link: LinkSpec
  let device: ReelSimulation.DeviceModel

  struct Floor {
    var milliseconds: Double
    var requestCount: Int
    var byteCount: Int64
  }

  /// The floor: the source, then the playlists, then initialization and segment together, each with only the bytes up
  /// to the end of the first frame, without waits and redirects; then opening the decoder and decoding one frame.
  func floor(of course: StartResult.Course) -> Floor {
    var steps: [[LinkPlayback.Request]] = []
    if facts.presentation != nil {
      steps = [FetchPurpose.source, .manifest].map { course.requests(for: $0) }
      if let url = facts.start?.mediaURL ?? facts.url {
        let segment = LinkPlayback.Request(url, byteCount: facts.start?.firstFrameEnd ?? 0)
        steps.append(course.requests(for: .initialization) + [segment])
      }
    } else if let file = facts.file, !file.isFragmented, let index = file.index?.length,
      let first = file.firstSample, let url = facts.url
    {
      // The header, the index and the first frame, one after the other.
      let surplus = file.surplus.reduce(0) { sum, surplus in
        sum
          + surplus.ranges.reduce(0) { sum, range in
            let isCounted = surplus.kind == .moov || range.offset >= first.offset
            return sum + (isCounted ? range.length ?? 0 : 0)
          }
      }
      let count = Self.headByteCount + index + (first.length ?? 0) - surplus
      steps = [[LinkPlayback.Request(url, byteCount: max(1, count))]]
    } else if let url = facts.url {
      let end = facts.start?.firstFrameEnd ?? course.requests.reduce(0) { $0 + $1.byteCount }
      steps = [[LinkPlayback.Request(url, byteCount: max(1, end))]]
    }
    let opening = LinkPlayback(opening: steps.filter { !$0.isEmpty }, tracks: [], link: link)
    return Floor(
      milliseconds: (opening.course().opened + frameTime).milliseconds,
      requestCount: steps.joined().count, byteCount: opening.byteCount)
  }

  /// Opening the decoder of the device, and decoding one frame.
  var frameTime: Duration {
    device.decodeCost.opening
      + device.decodeCost.duration(of: facts.start?.codec, pixelCount: facts.start?.pixelCount ?? 0)
  }

  // MARK: - Private

  /// The size of the boxes before the index and the media, `ftyp` and the header of `mdat`.
  private static let headByteCount: Int64 = 40
}

extension StartResult.Course {
  /// The requests for a purpose, with the bytes that a start reads of their answers.
  func requests(for purpose: FetchPurpose) -> [LinkPlayback.Request] {
    requests.filter { $0.purpose == purpose }.compactMap { request in
      request.location.map { LinkPlayback.Request($0, byteCount: request.byteCount) }
    }
  }
}

extension StartResult.Request {
  /// The URL.
  var location: URL? { url.contains("://") ? URL(string: url) : URL(fileURLWithPath: url) }
}

/// The variants of a multivariant playlist by which a player may begin.
struct RungOrder {
  /// The index of the rung that is listed first, and of the one that should be: the middle one by bit rate.
  let first: Int
  let best: Int

  /// The start with the first variant counts as late if it takes at least this many times as long.
  static let leastRatio = 1.5

  /// Nil unless there are several rungs, and the first is heavier than the middle one.
  init?(_ facts: StreamFacts) {
    let videos = facts.rungs.indices.filter { index in
      let rung = facts.rungs[index]
      return rung.kind == .video && rung.place.period == 0 && rung.declared?.bitsPerSecond != nil
        && !rung.isUnlisted
    }
    guard videos.count > 1, let first = videos.first else { return nil }
    let ordered = videos.sorted {
      (facts.rungs[$0].declared?.bitsPerSecond ?? 0, $0) < (facts.rungs[$1].declared?.bitsPerSecond ?? 0, $1)
    }
    let best = ordered[(ordered.count - 1) / 2]
    guard let rate = facts.rungs[first].declared?.bitsPerSecond,
      rate > facts.rungs[best].declared?.bitsPerSecond ?? .max
    else { return nil }
    self.first = first
    self.best = best
  }
}
