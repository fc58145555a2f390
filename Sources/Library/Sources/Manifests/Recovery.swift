package import ReelCore

/// The next step after media, or something that it needs, could not be loaded or read.
package enum Recovery: Sendable {
  /// The error is thrown. The item is then retried or fails (`ItemRetryPolicy`).
  case fail
  /// The same segment is requested again, after half its duration.
  case again
  /// The same position is read from another rung. The one that failed is left alone for a while (`Penalties`).
  case otherRung
  /// The same position is read from another location, where all rungs are tried again.
  case otherLocation
  /// The segment is skipped.
  case leaveOut

  /// The facts that decide.
  package struct Situation: Sendable {
    /// True for a segment of a live track that its server refused or did not answer for.
    package var isLive = false
    /// True if this segment was refused before.
    package var wasRefused = false
    /// True if the server has not answered for longer than the stall limit.
    package var hasStalled = false
    /// True if another rung has not failed recently.
    package var hasOtherRung = false
    /// True if another location has not been tried.
    package var hasOtherLocation = false
    /// The number of segments before this one that were skipped, in a row.
    package var leftOutInARow = 0

    package init(
      isLive: Bool = false, wasRefused: Bool = false, hasStalled: Bool = false,
      hasOtherRung: Bool = false, hasOtherLocation: Bool = false, leftOutInARow: Int = 0
    ) {
      self.isLive = isLive
      self.wasRefused = wasRefused
      self.hasStalled = hasStalled
      self.hasOtherRung = hasOtherRung
      self.hasOtherLocation = hasOtherLocation
      self.leftOutInARow = leftOutInARow
    }
  }

  /// The number of segments in a row that are skipped. One more is an error.
  package static let leaveOutLimit = 2

  /// Returns the first step of the list that applies.
  package static func after(_ error: ReelError, in situation: Situation) -> Recovery {
    let mayLeaveOut = situation.leftOutInARow < leaveOutLimit
    switch error.kind {
    case .internalFault, .usage: return .fail
    // A live segment may have been announced too early, and its server may come back.
    case .server where situation.isLive && !situation.wasRefused: return .again
    case .server where situation.isLive && mayLeaveOut: return .leaveOut
    case .network where situation.isLive && !situation.hasStalled: return .again
    case .timedOut where situation.isLive && !situation.hasStalled: return .again
    // Without an answer, another rung would not help.
    case .network: return situation.hasOtherLocation ? .otherLocation : .fail
    case _ where situation.hasOtherRung: return .otherRung
    case _ where situation.hasOtherLocation: return .otherLocation
    case .unsupported: return .fail
    case _ where error.isTemporary: return .fail
    case _: return mayLeaveOut ? .leaveOut : .fail
    }
  }
}
