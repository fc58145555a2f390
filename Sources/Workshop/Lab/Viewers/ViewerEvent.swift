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
    /// The viewer begins to load a source.
    case began
    /// A transfer has succeeded, failed or been cancelled. Its bytes count from here.
    case request(RequestMetrics)
    /// The first frame was on show, `after` the beginning of the look: the wait that `reel play` calls its start.
    case started(after: Duration)
    /// Playback begins, or goes on after a stall or a jump: enough is loaded.
    case playing
    /// The loaded media has run out.
    case stalled
    /// Playback of a live source that was too far behind jumps towards the live edge, and waits for media there.
    case jumped
    /// The next segments of video belong to this rung; of a viewer that decodes, the next frames.
    case rung(ItemRung)
    /// How far playback of a live source is behind the live edge.
    case latency(Duration)
    /// Something could not be loaded.
    case failure(ReelError, Consequence)
    /// The look is over.
    case left(ViewerSums)
  }

  /// What follows a failure.
  package enum Consequence: Sendable, Hashable {
    /// The transfer sends its request again. `status` is that of the answer; nil without one.
    case repeated(status: Int?)
    /// The viewer goes on as a player does.
    case handled(ErrorLogEntry.Outcome)
    /// The look ends once what is loaded has been shown.
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

  /// The index of the source in the plan.
  package let source: Int
  package var ending = Ending.left
  /// The wait from the beginning of the look until the first frame was on show; nil if none was.
  package var start: Duration?
  package var stallCount = 0
  /// The use of the time, up to the end of the look. A frame that stays on show over missing media counts as played.
  package var times: PlaybackTimes
  /// The requests that were sent, with redirects and those that were repeated, and the bytes of their answers.
  package var requestCount = 0
  package var byteCount: Int64 = 0
  /// The failures, whatever followed them.
  package var failureCount = 0
  /// The last latency of a live source; nil for others.
  package var latency: Duration?
  /// True if the viewer decoded what it watched.
  package let decodes: Bool

  /// - Parameter began: The time at which the look begins.
  init(source: Int, decodes: Bool, began: Duration) {
    (self.source, self.decodes) = (source, decodes)
    times = PlaybackTimes(start: began)
    times.record(.status(.waitingToPlayAtSpecifiedRate(.evaluatingBufferingRate)), at: began)
  }

  /// Adds an event, which `reel play` would count in the same way.
  mutating func add(_ event: ViewerEvent.Kind, at time: Duration) {
    switch event {
    case .began, .rung, .left: break
    case .request(let metrics):
      requestCount += metrics.requestCount
      byteCount += metrics.byteCount
    case .started(let after):
      start = after
      times.record(.firstFrame, at: time)
    case .playing: times.record(.status(.playing), at: time)
    case .stalled:
      stallCount += 1
      times.record(.status(.waitingToPlayAtSpecifiedRate(.toMinimizeStalls)), at: time)
    case .jumped:
      times.record(.status(.waitingToPlayAtSpecifiedRate(.evaluatingBufferingRate)), at: time)
    case .latency(let latency): self.latency = latency
    case .failure: failureCount += 1
    }
  }
}
