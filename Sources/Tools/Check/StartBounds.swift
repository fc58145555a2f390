internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelPlayback
internal import ReelSimulation

/// The least time that a start can take, and the time that a player takes that loads whole segments.
///
/// Both are arithmetic over the requests of a replayed start. The requests of a step are sent together on the
/// connections that are open, and a step begins when the one before has arrived.
struct StartBounds {
  let recording: StartRecording
  let facts: StreamFacts
  let link: LinkSpec
  let device: ReelSimulation.DeviceModel

  /// Requests that are sent together.
  private struct Step {
    var url: URL
    var byteCounts: [Int64]
    var wait = Duration.zero
  }

  struct Floor {
    var milliseconds: Double
    var requestCount: Int
    var byteCount: Int64
  }

  /// The floor: the source, then the playlists, then initialization and segment together, each with only the bytes up
  /// to the end of the first frame, without waits and redirects; then opening the decoder and decoding one frame.
  func floor(of course: StartResult.Course) -> Floor {
    var steps: [Step] = []
    if facts.presentation != nil {
      steps = manifestSteps(course, isWhole: false)
      var media: [Int64] = []
      for request in course.requests where request.purpose == .initialization {
        media.append(request.byteCount)
      }
      media.append(facts.start?.firstFrameEnd ?? 0)
      if let url = facts.start?.mediaURL ?? facts.url { steps.append(Step(url: url, byteCounts: media)) }
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
      steps = [
        Step(url: url, byteCounts: [max(1, Self.headByteCount + index + (first.length ?? 0) - surplus)])
      ]
    } else if let url = facts.url {
      let end = facts.start?.firstFrameEnd ?? course.requests.reduce(0) { $0 + $1.byteCount }
      steps = [Step(url: url, byteCounts: [max(1, end)])]
    }
    let time = time(of: steps) + frameTime
    return Floor(
      milliseconds: time.milliseconds, requestCount: steps.reduce(0) { $0 + $1.byteCounts.count },
      byteCount: steps.reduce(0) { $0 + $1.byteCounts.reduce(0, +) })
  }

  /// The start of a player that loads whole segments one after the other, as hls.js, Shaka and dash.js do: the manifest,
  /// the playlist of a rung and that of its audio, the initialization, and then the whole first segment of video and
  /// audio, before it decodes the first frame. Servers wait as they were recorded. Nil for a media file, and if the size
  /// of the segment is not known.
  ///
  /// - Parameter rung: The index of the rung to start with; nil for that of the recorded start.
  func whole(of course: StartResult.Course, startingWith rung: Int? = nil) -> Double? {
    guard facts.presentation != nil,
      let index = rung
        ?? facts.rungs.firstIndex(where: {
          $0.kind == .video && ($0.declared?.id == facts.start?.rung || $0.name == facts.start?.rung)
        }),
      facts.rungs.indices.contains(index), let segment = facts.rungs[index].segments.first,
      let size = Self.firstSize(of: facts.rungs[index])
    else { return nil }
    var steps = manifestSteps(course, isWhole: true)
    let group = facts.rungs[index].declared.flatMap { _ in
      facts.rungs.first { $0.kind == .audio && $0.place.period == facts.rungs[index].place.period }
    }
    var media = [size]
    if let group, let audio = Self.firstSize(of: group) { media.append(audio) }
    let initializations = course.requests.filter { $0.purpose == .initialization }.map(\.byteCount)
    if !initializations.isEmpty { steps.append(Step(url: segment.url, byteCounts: initializations)) }
    steps.append(
      Step(url: segment.url, byteCounts: media, wait: recording.behaviour(of: segment.url, request: 0).wait))
    return (time(of: steps) + frameTime).milliseconds
  }

  // MARK: - Private

  /// The size of the boxes before the index and the media, `ftyp` and the header of `mdat`.
  private static let headByteCount: Int64 = 40

  private static func firstSize(of rung: RungFacts) -> Int64? {
    if let size = rung.sizes.first ?? nil { return size }
    if let range = rung.segments.first?.byteRange { return range.length }
    return rung.samples[0]?.promisedByteCount
  }

  /// The manifest, then the playlists or indexes of the rungs that are started with.
  private func manifestSteps(_ course: StartResult.Course, isWhole: Bool) -> [Step] {
    var steps: [Step] = []
    for purpose in [FetchPurpose.source, .manifest] {
      let requests = course.requests.filter { $0.purpose == purpose }
      guard let first = requests.first, let url = Self.url(first.url) else { continue }
      var step = Step(url: url, byteCounts: requests.map(\.byteCount))
      if isWhole { step.wait = recording.behaviour(of: url, request: 0).wait }
      steps.append(step)
    }
    return steps
  }

  private static func url(_ name: String) -> URL? {
    name.contains("://") ? URL(string: name) : URL(fileURLWithPath: name)
  }

  /// Opening the decoder of the device, and decoding one frame.
  private var frameTime: Duration {
    device.decodeCost.opening
      + device.decodeCost.duration(of: facts.start?.codec, pixelCount: facts.start?.pixelCount ?? 0)
  }

  /// The time at which the last step has arrived, on an otherwise idle link.
  private func time(of steps: [Step]) -> Duration {
    var model = LinkModel(link)
    var now = Duration.zero
    for step in steps {
      let isSecure = step.url.scheme?.lowercased() == "https"
      let host = "\(step.url.scheme ?? "")://\(step.url.host() ?? ""):\(step.url.port ?? 0)"
      var open: [(transfer: Int, connection: Int)] = []
      for count in step.byteCounts {
        var departure = model.depart(
          to: host, handshakes: isSecure ? 2 : 1, name: step.url.host(), at: now)
        while departure.isPending {
          guard let next = model.nextTime else { break }
          while model.nextDelivery(by: next) != nil {}
          if let settled = model.settled(departure) { departure = settled }
        }
        let transfer = model.begin(
          readyAt: departure.time + departure.roundTrip + step.wait, on: departure.connection)
        model.put(Int(clamping: max(count, 1)), of: transfer, at: now)
        _ = model.complete(transfer)
        open.append((transfer, departure.connection))
      }
      var arrival = now
      while !open.isEmpty, let next = model.nextTime {
        while let delivery = model.nextDelivery(by: next) {
          model.read(delivery.byteCount, of: delivery.transfer, at: delivery.time)
          guard delivery.isLast, let place = open.firstIndex(where: { $0.transfer == delivery.transfer })
          else { continue }
          arrival = max(arrival, delivery.time)
          model.remove(delivery.transfer)
          model.free(open[place].connection, at: delivery.time)
          open.remove(at: place)
        }
      }
      now = arrival
    }
    return now
  }
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
