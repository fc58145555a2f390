/// What one reading of a source has from a store in front of the network. All requests of the reading share it.
package final class StoreUse: Sendable {
  private struct State {
    var usesStore = false
    var memory: (any Sendable)?
  }

  /// True to take everything from the servers, because what is stored does not do.
  package let isBypassed: Bool
  private let state = Locked(State())

  package init(isBypassed: Bool = false) { self.isBypassed = isBypassed }

  /// Records that something came from the store.
  package func recordUse() { state.withLock { $0.usesStore = true } }

  /// True if the source has to be read again, past the store, after an error: what is stored is of another version than what
  /// servers have, damaged, or of a resource that is gone.
  package func isMisled(by error: ReelError) -> Bool {
    guard !isBypassed, error.found != .otherVersion else { return !isBypassed }
    let mayBeOld =
      switch error.kind {
      case _ where error.found == .notMedia: true
      case .badMedia, .badManifest: true
      case .server: error.status.map { (400..<500).contains($0) && $0 != 429 } ?? true
      default: false
      }
    return mayBeOld && state.withLock { $0.usesStore }
  }

  /// What the store keeps for the time of the reading.
  package func memory<Memory: Sendable>(_ make: () -> Memory) -> Memory {
    state.withLock { state in
      if let memory = state.memory as? Memory { return memory }
      let memory = make()
      state.memory = memory
      return memory
    }
  }
}
