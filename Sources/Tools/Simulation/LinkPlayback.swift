package import Foundation
package import ReelCore
package import ReelPlayback

/// A player of segments on a link, by arithmetic: when playback begins, and where and how long it stalls.
///
/// One loop over the arrivals of a `LinkTraffic` and one `SegmentPlayer`. A pure value, so the same input gives the same
/// result on any machine.
///
/// Not modelled: media that can't be fetched or decoded, changes of rung, and the limit of the buffer in bytes.
package struct LinkPlayback: Sendable {
  /// A request, and the size of its answer.
  package struct Request: Sendable, Hashable {
    package let url: URL
    package var byteCount: Int64
    /// The server's wait before the first byte of the answer.
    package var wait: Duration
    package var purpose: FetchPurpose
    /// Nil for a URL that a link does not apply to.
    let host: LinkHost?

    package init(
      _ url: URL, byteCount: Int64, wait: Duration = .zero, purpose: FetchPurpose = .resource
    ) {
      self.url = url
      self.byteCount = byteCount
      self.wait = wait
      self.purpose = purpose
      host = LinkHost(url)
    }

    var isManifest: Bool { purpose == .source || purpose == .manifest }
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
    /// True if the next segment is requested as soon as the first bytes of one have arrived.
    package var loadsNextSegmentBeside = false
    /// True if media is requested once the initialization before it has arrived; false to request both at once.
    package var loadsInitializationFirst = false
    /// True if a segment of separate audio is requested once that of the video has arrived.
    package var audioFollowsVideo = false
    /// True if each request before the media also opens a connection for the next one.
    package var opensConnectionsAhead = true
    /// What the first frame needs; nil for any media.
    package var firstFrame: FirstFrame?
    package var adaptation: Adaptation?
    package var costs = Costs()
    /// The bytes of answers that are in a cache, from the first one on.
    package var cached: [URL: Int64] = [:]

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
      rules.loadsInitializationFirst = true
      return rules
    }
  }

  /// What must have come before the first frame can be decoded.
  package struct FirstFrame: Sendable, Hashable {
    /// True for the whole first segment, false for the bytes of the frame.
    package var wholeSegment: Bool
    /// True if audio with segments of its own must have come as well.
    package var audio: Bool
    /// The media that must be loaded, in seconds.
    package var ahead: Double

    package init(wholeSegment: Bool, audio: Bool, ahead: Double) {
      (self.wholeSegment, self.audio, self.ahead) = (wholeSegment, audio, ahead)
    }
  }

  /// How the rung of a segment follows from the rate of the segments before.
  package struct Adaptation: Sendable, Hashable {
    /// The rate that is expected at first, in bits per second.
    package var initialEstimate: Double
    /// The share of the estimate that a rung may use.
    package var share: Double
    /// The seconds of loading after which an older estimate counts half.
    package var halfLife: Double

    package init(initialEstimate: Double, share: Double, halfLife: Double) {
      (self.initialEstimate, self.share, self.halfLife) = (initialEstimate, share, halfLife)
    }

    /// The index of the highest rung within the share of the measured rate, or else of the lowest.
    ///
    /// - Parameter rates: Those of the rungs, in bits per second.
    package func rung(of rates: [Double], measuredRate: Double?) -> Int {
      let estimate = measuredRate ?? initialEstimate
      let ordered = rates.indices.sorted { (rates[$0], $0) < (rates[$1], $1) }
      return ordered.last { rates[$0] <= estimate * share } ?? ordered.first ?? 0
    }

    /// Returns the measured rate after a transfer, from that before it.
    package func mean(of last: Double?, _ rate: Double, in seconds: Double) -> Double {
      guard let last else { return rate }
      // Only operations that give the same result on each machine.
      let weight = halfLife > 0 ? halfLife / (halfLife + seconds) : 0
      return last * weight + rate * (1 - weight)
    }
  }

  /// The time that a player takes for itself.
  package struct Costs: Sendable, Hashable {
    /// Before the first request.
    package var create = Duration.zero
    /// After each step of manifests.
    package var parse = Duration.zero
    /// From the arrival of a segment until its media can be decoded. If bytes are used as they come, of the first only.
    package var append = Duration.zero
    package var openDecoder = Duration.zero
    /// Decoding the first frame.
    package var decode = Duration.zero
    /// From the decoded first frame until it is on show.
    package var present = Duration.zero
    /// From the first frame on show until media time advances.
    package var play = Duration.zero

    package init() {}
  }

  /// Playback that waits for media.
  package struct Stall: Sendable, Hashable {
    /// The seconds of media that were played before it.
    package var position: Double
    package var duration: Duration
    /// The time at which it begins.
    package var time = Duration.zero
  }

  package struct Course: Sendable, Hashable {
    /// The time at which the answers before any media have arrived.
    package var opened = Duration.zero
    /// The time from the first request to the beginning of playback; nil if there is no media.
    package var start: Duration?
    package var stalls: [Stall] = []
    /// True if the loop ended before the media did, because it takes too many steps: there may be more stalls.
    package var isCut = false

    package init(opened: Duration = .zero, isCut: Bool = false) {
      (self.opened, self.isCut) = (opened, isCut)
    }

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
    let parcel = Int(clamping: byteCount / Self.parcelCount)
    var traffic = LinkTraffic(LinkModel(link, parcelByteCount: parcel))
    var player = SegmentPlayer(
      SegmentPlayer.Item(opening: opening, tracks: tracks.map { [SegmentPlayer.Rung(segments: $0)] }),
      rules: rules, pieceByteCount: max(parcel, Self.pieceByteCount))
    (player.decodesFrom, player.showsFrom, player.playsFrom) = (.zero, .zero, .zero)
    var now = Duration.zero
    var result = Course(isCut: true)
    for _ in 0..<Self.stepLimit {
      player.advance(&traffic, at: now)
      // The time of the next arrival is known once those until now were taken.
      traffic.take(by: now)
      let next = player.isPlayingToEnd ? nil : [traffic.nextTime, player.nextTime].compactMap(\.self).min()
      guard let next else {
        result.isCut = false
        break
      }
      now = max(now, next)
      traffic.take(by: now)
    }
    result.opened = player.openedAt ?? now
    (result.start, result.stalls) = (player.playedAt, player.stalls)
    return result
  }

  /// The bytes that are read at a time, if all bytes are not too many for that.
  private static let pieceByteCount = 8 << 10
  /// The number of parcels that all bytes are divided into, if they are more.
  private static let parcelCount: Int64 = 30_000
  private static let stepLimit = 1_000_000

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
