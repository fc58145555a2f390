internal import ReelCore
internal import ReelManifest

/// The most recently fetched initialization segments of one item. A later span of the same rung needs its own
/// again.
final class InitializationStore: Sendable {
  private struct State {
    var entries: [(reference: InitializationReference, bytes: [UInt8])] = []
    var byteCount: Int { entries.reduce(0) { $0 + $1.bytes.count } }
  }

  private let state = Locked(State())

  /// The maximum total size. Initialization segments have one or two kilobytes.
  private static let byteLimit = 256 << 10
  private static let entryLimit = 16

  subscript(reference: InitializationReference) -> [UInt8]? {
    get { state.withLock { $0.entries.first { $0.reference == reference }?.bytes } }
    set {
      guard let newValue, newValue.count <= Self.byteLimit else { return }
      state.withLock { state in
        state.entries.removeAll { $0.reference == reference }
        state.entries.append((reference, newValue))
        while state.entries.count > Self.entryLimit || state.byteCount > Self.byteLimit {
          state.entries.removeFirst()
        }
      }
    }
  }
}
