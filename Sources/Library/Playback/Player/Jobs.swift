internal import ReelCore
internal import Synchronization

/// The work of a decoder from one position on. It ends with a seek, with muting, or with the session.
///
/// What a decoder brings counts only while its job is the current one. So nothing that was begun before a seek
/// has an effect after it.
final class DecodingJob: Sendable {
  /// The first frame to show is the one on show at this time; nil for the very first.
  let target: MediaTime?
  /// The time by which the first frame may be earlier.
  let tolerance: MediaTime
  private let over = Atomic(false)

  init(target: MediaTime? = nil, tolerance: MediaTime = .zero) {
    self.target = target
    self.tolerance = tolerance
  }

  /// Asked between packets, without a lock.
  var isOver: Bool { over.load(ordering: .relaxed) }

  func end() { over.store(true, ordering: .relaxed) }
}

/// The work of a reader from one position on. What it reads counts only while its job is the current one.
final class ReadingJob: Sendable {
  /// Where it begins, on the player's timeline; nil for the beginning of the item.
  let start: MediaTime?
  /// The iteration to begin in.
  let loop: LoopIteration
  /// True if the iteration has been read already: only the next one can follow.
  let beginsAtEnd: Bool
  /// Cancelling it interrupts the reader.
  let scope: LoadScope

  init(
    start: MediaTime? = nil, loop: LoopIteration = LoopIteration(), beginsAtEnd: Bool = false,
    scope: LoadScope
  ) {
    self.start = start
    self.loop = loop
    self.beginsAtEnd = beginsAtEnd
    self.scope = scope
  }
}

/// The task loops of a player and its item.
struct Workers: OptionSet, Sendable {
  let rawValue: UInt8

  static let reader = Workers(rawValue: 1)
  static let audioReader = Workers(rawValue: 2)
  static let video = Workers(rawValue: 4)
  static let audio = Workers(rawValue: 8)
  static let presenter = Workers(rawValue: 16)
  /// All of an item.
  static let loading: Workers = [.reader, .audioReader, .video, .audio]
}
