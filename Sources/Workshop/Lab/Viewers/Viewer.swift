package import Logging
internal import ReelCore
internal import ReelReading

/// One look of a viewer that counts what it loads, without demuxing or decoding, and plays it by arithmetic.
package struct Viewer: Sendable {
  /// - Parameters:
  ///   - end: The time of the clock at which the look ends; nil at the end of the source.
  package init(
    _ look: ViewerPlan.Look, number: Int, of session: ViewerPlan.Session, access: ViewerAccess,
    settings: ViewerSettings, until end: Duration?, logger: Logger,
    report: @escaping @Sendable (ViewerEvent.Kind) -> Void
  ) {
  }

  /// Watches until the end. Cancelling the task ends all transfers.
  package func run() async -> ViewerSums.Ending { .left }
}
