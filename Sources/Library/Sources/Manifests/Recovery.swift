package import ReelCore

/// The next step after media, or something that it needs, could not be loaded or read.
package enum Recovery: Sendable {
  /// The error is thrown. The item is then retried or fails (`ItemRetryPolicy`).
  case fail
  /// The same position is read from another rung. The one that failed is left alone for a while (`Penalties`).
  case otherRung
  /// The same position is read from another location, where all rungs are tried again.
  case otherLocation
  /// The segment is skipped.
  case leaveOut

  /// The facts that decide.
  package struct Situation: Sendable {
    /// True if another rung has not failed recently.
    package var hasOtherRung = false
    /// True if another location has not been tried.
    package var hasOtherLocation = false
    /// The number of segments before this one that were skipped, in a row.
    package var leftOutInARow = 0

    package init(hasOtherRung: Bool = false, hasOtherLocation: Bool = false, leftOutInARow: Int = 0) {
      self.hasOtherRung = hasOtherRung
      self.hasOtherLocation = hasOtherLocation
      self.leftOutInARow = leftOutInARow
    }
  }

  /// The number of segments in a row that are skipped. One more is an error.
  package static let leaveOutLimit = 2

  /// Returns the first step of the list that applies.
  package static func after(_ error: ReelError, in situation: Situation) -> Recovery {
    switch error.kind {
    case .internalFault, .usage: return .fail
    // The source is opened again.
    case _ where error.found == .otherVersion: return .fail
    // Without an answer, another rung would not help.
    case .network: return situation.hasOtherLocation ? .otherLocation : .fail
    case _ where situation.hasOtherRung: return .otherRung
    case _ where situation.hasOtherLocation: return .otherLocation
    case .unsupported: return .fail
    case _ where error.isTemporary: return .fail
    case _: return situation.leftOutInARow < leaveOutLimit ? .leaveOut : .fail
    }
  }
}

/// The next step of a reader by itself after a segment of a live track could not be loaded.
package enum LiveRecovery: Sendable {
  /// Another rung or location may have the segment (`Recovery`).
  case fail
  /// The same segment is requested again, after half its duration: it may have been announced too early, and its server
  /// may come back.
  case again
  /// The segment is skipped.
  case leaveOut

  /// Returns the first step of the list that applies.
  ///
  /// - Parameters:
  ///   - wasRefused: True if this segment was refused before.
  ///   - hasStalled: True if the server has not answered for longer than the stall limit.
  ///   - leftOutInARow: The number of segments before this one that were skipped, in a row.
  static func after(
    _ error: ReelError, wasRefused: Bool, hasStalled: Bool, leftOutInARow: Int
  ) -> LiveRecovery {
    switch error.kind {
    case .server where !wasRefused: .again
    case .server where leftOutInARow < Recovery.leaveOutLimit: .leaveOut
    case .network where !hasStalled: .again
    case .timedOut where !hasStalled: .again
    default: .fail
    }
  }
}
