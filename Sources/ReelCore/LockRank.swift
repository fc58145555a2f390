#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The place of a lock in the one order in which locks are taken: who holds a lock takes only locks of a higher rank. So
/// no two threads can wait for each other.
///
/// Checked in debug builds, and in others where the environment has `REEL_CHECK_LOCKS`: a lock that is taken out of order
/// ends the process, with what it was taken under.
package struct LockRank: Sendable {
  fileprivate let place: UInt8
  fileprivate let name: StaticString

  private init(_ place: UInt8, _ name: StaticString) {
    self.place = place
    self.name = name
  }

  /// Held while outputs are called, which may use the player, the pool and the service.
  package static let outputs = LockRank(2, "outputs")
  /// Several feeds under one pool.
  package static let service = LockRank(4, "service")
  package static let pool = LockRank(8, "pool")
  /// One item's load in a slot of a pool.
  package static let load = LockRank(12, "load")
  /// Held while it is told what state a player is in.
  package static let telling = LockRank(16, "telling")
  package static let player = LockRank(24, "player")
  package static let session = LockRank(28, "session")
  /// What a session keeps media in: the forward buffer, the frame ring, the queue of sound.
  package static let media = LockRank(32, "media")
  /// Who writes a file with another's help.
  package static let recorder = LockRank(36, "recorder")
  /// Who writes a file.
  package static let writer = LockRank(40, "writer")
  /// The body of an answer, over the transfers that bring it.
  package static let body = LockRank(42, "body")
  /// One transfer, over what it shares with others; and what else calls what it was given.
  package static let transfer = LockRank(44, "transfer")
  /// A property or a channel of events, over those who observe it.
  package static let observation = LockRank(48, "observation")
  /// No lock is taken under it, but that a clock is read.
  package static let leaf = LockRank(56, "leaf")
  package static let clock = LockRank(60, "clock")
}

/// The ranks of the locks that this thread holds.
package enum LockOrder {
  package static let isChecked: Bool = {
    #if DEBUG
      true
    #else
      getenv("REEL_CHECK_LOCKS") != nil
    #endif
  }()

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key, nil)
    return key
  }()

  /// To be called before the lock is waited for.
  static func take(_ rank: LockRank) {
    let held = held
    guard held >> UInt(rank.place) == 0 else {
      // A mistake in the program, told in every configuration.
      fatalError("the lock \(rank.name) (\(rank.place)) is taken under locks of the ranks \(held.places)")
    }
    set(held | 1 << UInt(rank.place))
  }

  /// As `take`, for a lock that its holder can take again. True where it is to be given back with `give`.
  package static func takeAgain(_ rank: LockRank) -> Bool {
    guard held >> UInt(rank.place) & 1 == 0 else { return false }
    take(rank)
    return true
  }

  package static func give(_ rank: LockRank) { set(held & ~(1 << UInt(rank.place))) }

  // MARK: - Private

  /// A bit for each rank.
  private static var held: UInt { UInt(bitPattern: pthread_getspecific(key)) }

  private static func set(_ held: UInt) { pthread_setspecific(key, UnsafeRawPointer(bitPattern: held)) }
}

extension UInt {
  /// The places of its bits.
  fileprivate var places: String {
    (0..<UInt(UInt.bitWidth)).filter { self >> $0 & 1 == 1 }.map(String.init).joined(separator: ", ")
  }
}
