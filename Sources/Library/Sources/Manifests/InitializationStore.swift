internal import ReelCore
package import ReelManifest

/// The most recently fetched initialization segments of one item, without media. A later span of the same rung needs its
/// own again.
package final class InitializationStore: Sendable {
  private struct State {
    var entries: [(reference: InitializationReference, bytes: [UInt8])] = []
    var byteCount: Int { entries.reduce(0) { $0 + $1.bytes.count } }
  }

  private let state = Locked(State())

  /// The maximum total size. Initialization segments have one or two kilobytes.
  private static let byteLimit = 256 << 10
  private static let entryLimit = 16

  package init() {}

  package subscript(reference: InitializationReference) -> [UInt8]? {
    get { state.withLock { $0.entries.first { $0.reference == reference }?.bytes } }
    set {
      guard let newValue = newValue.map(Self.withoutMedia), newValue.count <= Self.byteLimit else { return }
      state.withLock { state in
        state.entries.removeAll { $0.reference == reference }
        state.entries.append((reference, newValue))
        while state.entries.count > Self.entryLimit || state.byteCount > Self.byteLimit {
          state.entries.removeFirst()
        }
      }
    }
  }

  /// Returns an initialization of MP4 without the media after it, which some manifests include in its range: the first
  /// fragment would be read twice.
  package static func withoutMedia(_ bytes: [UInt8]) -> [UInt8] {
    let boxes = MP4Box.all(in: bytes[...])
    guard boxes.contains(where: { $0.type == "moov" }), let last = boxes.last else { return bytes }
    return Array(bytes[..<(boxes.first { $0.type == "moof" }?.start ?? last.end)])
  }
}
