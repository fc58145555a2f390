package import ReelCore

package struct CheckResult: Sendable {
  /// The source as the user named it.
  package var source: String
  package var facts = StreamFacts()
  /// The findings: errors first, then those that cost most.
  package var findings: [Finding] = []
  /// The start on each link, in the order of the links; empty if there was no first frame.
  package var starts: [StartResult] = []
  /// Why the player of a model has no starts, as a clause; nil if it has.
  package var startRefusal: String?
  package var notChecked: [NotChecked] = []
  package var coverage = Coverage()
  /// The thresholds that are not the usual ones, by name.
  package var thresholds = Thresholds()
  /// Whether any media was judged.
  package var judgement = Judgement.judged
  /// True if the check was cancelled. The result then has the findings so far.
  package var isInterrupted = false

  /// The error if no media arrived in time, so that nothing is known of the stream, and a later check may know more.
  package var silence: ReelError? { judgement.silence }

  /// The findings for what had to be judged and was not: rungs, and parts of the manifest.
  package var omissions: [Finding] {
    notChecked.compactMap { item in
      item.unjudged.flatMap { $0.isOmission ? $0.finding(rung: item.rung) : nil }
    }
  }
}

/// How much of a source was read.
package struct Coverage: Sendable, Hashable {
  /// The number of rungs that were opened, and of all.
  package var rungCount = 0
  package var allRungCount = 0
  /// The number of segments that were read, and of all that are listed.
  package var segmentCount = 0
  package var allSegmentCount = 0
  /// The bytes of media that were read.
  package var byteCount: Int64 = 0
  /// The decoded frames, and those that are damaged.
  package var frameCount = 0
  package var damagedFrameCount = 0
  /// The decoded audio in seconds.
  package var audioDuration = 0.0

  package init() {}
}

/// A start on one link, in simulated time, and what follows it.
package struct StartResult: Sendable {
  /// A request of the start, for a waterfall: times in milliseconds since the start.
  package struct Request: Sendable, Hashable {
    package var url: String
    package var purpose: FetchPurpose
    package var began: Double
    package var firstByte: Double
    package var end: Double
    package var byteCount: Int64
  }

  package struct Course: Sendable {
    /// From the request to the first frame.
    package var milliseconds: Double
    /// How much of that passed with connecting, waiting for answers, receiving and decoding.
    package var connecting = 0.0
    package var answering = 0.0
    package var receiving = 0.0
    package var decoding = 0.0
    /// The time that the player of a model takes for itself.
    package var working = 0.0
    package var requests: [Request] = []
  }

  /// What is known of playing on after the start.
  package enum Playback: Sendable {
    /// By Reel's player, which stays with the rung, or that of a model; and the milliseconds that a player stalls that
    /// loads whole segments, nil for a media file and beside a model.
    case played(PlayedRung, wholeMilliseconds: Double?)
    /// The reason, as a clause without a full stop.
    case unknown(String)
  }

  /// A step of mending, after those before it.
  package struct Step: Sendable {
    /// The name of the finding that is mended: `moov-last`.
    package var finding: String
    /// The start afterwards.
    package var milliseconds: Double
  }

  package var link: String
  package var now: Course
  /// The title of the modelled player, and the name of the rung that it begins with; nil for Reel's own.
  package var player: String?
  package var rung: String?
  /// From the request to the second frame of a modelled player, in milliseconds.
  package var secondFrameMilliseconds: Double?
  /// The start of a player that loads whole segments, in milliseconds; nil for a media file, and beside a model.
  package var wholeMilliseconds: Double?
  /// How much of the start servers take to answer, as it was measured, in milliseconds. It varies from run to run; all
  /// else is computed.
  package var waitMilliseconds = 0.0
  /// How the rung that was started with plays on.
  package var playback = Playback.unknown("it was not played")
  /// The least that is possible for this source on this link: the requests that can't be avoided, the bytes up to the
  /// end of the first frame, and its decoding.
  package var floorMilliseconds: Double
  /// The number and the bytes of those requests.
  package var floorRequestCount = 0
  package var floorByteCount: Int64 = 0
  /// The findings that slow the start down, mended in turn, the largest saving first.
  package var steps: [Step] = []
  /// The start with all of them mended; nil if there is none.
  package var mended: Course?

  /// What is possible without changing the stream further: the start once all findings are mended.
  package var possibleMilliseconds: Double { steps.last?.milliseconds ?? now.milliseconds }
}
