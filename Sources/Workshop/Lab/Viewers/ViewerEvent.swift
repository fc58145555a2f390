package import ReelCore
package import ReelPlayback
package import ReelSources

/// Something that happened to a viewer.
///
/// A viewer reports each look at a source from `began` to `left`, and the looks of a session one after the other.
package struct ViewerEvent: Sendable {
  /// The number of the viewer, that of its session, and that of the look in the session, all from 0.
  package let viewer: Int
  package let session: Int
  package let look: Int
  /// The time since the start of the run.
  package let time: Duration
  package let kind: Kind

  package enum Kind: Sendable {
    /// The viewer begins to load a source, which is known by its index in the plan. `id` is that of the session.
    case began(source: Int, id: String)
    /// A transfer has succeeded, failed or been cancelled. Its bytes count from here.
    case request(RequestMetrics)
    /// The first frame was on show, `after` the beginning of the look: the wait that `reel play` calls its start.
    case started(after: Duration)
    /// Enough was loaded to play, `after` the beginning of the look.
    case playing(after: Duration)
    /// The loaded media has run out.
    case stalled
    /// A stall has ended. It lasted for `after`.
    case resumed(after: Duration)
    /// The next segments of video belong to this rung.
    case rung(ItemRung)
    /// How far playback of a live source is behind the live edge.
    case latency(Duration)
    /// Playback of a live source that was too far behind jumped towards the live edge.
    case jumped
    /// Something could not be loaded. `host` is that of the request; nil for a local file, or if no request failed.
    case failure(ReelError, host: String?, Consequence)
    /// The look is over.
    case left(ViewerSums)
  }

  /// What follows a failure.
  package enum Consequence: Sendable, Hashable {
    /// The transfer sends its request again.
    case repeated
    /// The viewer goes on as a player does.
    case handled(ErrorLogEntry.Outcome)
    /// The look ends.
    case final
  }

  package init(viewer: Int, session: Int, look: Int, time: Duration, _ kind: Kind) {
    (self.viewer, self.session, self.look) = (viewer, session, look)
    (self.time, self.kind) = (time, kind)
  }
}

/// What a look at a source comes to.
package struct ViewerSums: Sendable, Hashable {
  package enum Ending: Sendable, Hashable {
    /// The source was played to its end.
    case played
    /// The viewer swiped on, its stay was over, or the run was.
    case left
    case failed(ReelError)
  }

  /// A rung, and how much of it was loaded.
  package struct LoadedRung: Sendable, Hashable {
    package let rung: ItemRung
    package var media: Duration
  }

  /// The index of the source in the plan.
  package let source: Int
  /// The name of the source as this viewer requested it.
  package let name: String
  package var ending = Ending.left
  /// The waits from the beginning of the look until the first frame was on show, and until playback began; nil if that
  /// did not happen.
  package var start: Duration?
  package var playing: Duration?
  package var stallCount = 0
  /// The use of the time, up to the end of the look: `times.rebufferingRatio` is its rebuffering share.
  package var times: PlaybackTimes
  /// The requests that were sent, with redirects and those that were repeated, and the bytes of their answers.
  package var requestCount = 0
  package var byteCount: Int64 = 0
  /// The failures, whatever followed them.
  package var failureCount = 0
  /// The video that was loaded of each rung, in the order in which the rungs were first loaded.
  package var rungs: [LoadedRung] = []
  /// The last latency of a live source; nil for others.
  package var latency: Duration?
  /// True if the viewer decoded what it watched.
  package var decodes = false

  /// - Parameter began: The time at which the look begins.
  init(source: Int, name: String, began: Duration) {
    (self.source, self.name) = (source, name)
    times = PlaybackTimes(start: began)
  }
}
