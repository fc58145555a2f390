internal import Synchronization

/// The location to try first, of several with the same media. There is one value per track.
package final class ServiceLocation: Sendable {
  /// True to try the next location at once after a failure; false to leave that decision to the caller.
  package let roams: Bool
  private let value = Atomic(0)

  package init(roams: Bool = true) { self.roams = roams }

  package var index: Int {
    get { value.load(ordering: .relaxed) }
    set { value.store(newValue, ordering: .relaxed) }
  }
}
