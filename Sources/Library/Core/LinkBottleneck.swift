/// The bottleneck of a modelled link: parcels of one packet's size cross it one after the other, by turns between the
/// transfers that may send.
///
/// A pure value. It computes all times from the times before them, so being asked late moves nothing.
package struct LinkBottleneck: Sendable {
  /// The payload of a full TCP segment on Ethernet.
  package static let parcelByteCount = 1448

  /// When the link has carried all that was put on it.
  package private(set) var freeAt = Duration.zero

  private let bitsPerSecond: Int64
  /// Nil where the rate never changes.
  private var position: LinkRecordingPosition?
  /// The place of the transfer whose turn is next.
  private var turn = 0

  package init(bitsPerSecond: Int64) { self.bitsPerSecond = bitsPerSecond }

  /// The bottleneck of a link; a recorded one is at the link's start when the clock shows `zero`.
  package init(_ link: LinkSpec, zero: Duration = .zero) {
    bitsPerSecond = link.bitsPerSecond
    freeAt = zero
    position = link.recording.map { LinkRecordingPosition($0, start: link.start, zero: zero) }
  }

  /// How long so many bytes take on the link alone; of a recorded one, at its mean rate.
  package func duration(ofByteCount count: Int) -> Duration {
    .seconds(8 * Int64(count)) / bitsPerSecond
  }

  /// Puts a parcel on the link at `start`, or when the link is free if that is later. Returns when it is across.
  package mutating func put(_ byteCount: Int, at start: Duration) -> Duration {
    let begin = max(freeAt, start)
    freeAt =
      position?.end(ofBits: 8 * Int64(byteCount), from: begin) ?? begin + duration(ofByteCount: byteCount)
    return freeAt
  }

  /// The place of the transfer whose turn it is, of those among `count` that may send. It then waits for the others.
  package mutating func takeTurn(among count: Int, where maySend: (Int) -> Bool) -> Int? {
    for step in 0..<count {
      let index = (turn + step) % count
      guard maySend(index) else { continue }
      turn = index + 1
      return index
    }
    return nil
  }

  /// Keeps the turns when the transfer at a place is gone, and the ones behind it have moved up.
  package mutating func remove(at index: Int) {
    if index < turn { turn -= 1 }
  }
}
