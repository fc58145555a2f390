#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The place of a lock in the order in which locks are taken: a thread that holds a lock takes only locks of a higher
/// rank. So no two threads can wait for each other.
///
/// The order is checked in debug builds, and in other builds if the environment has `REEL_CHECK_LOCKS`: a lock that is
/// taken out of order ends the process with a message that names the ranks held.
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
  /// Held while a player publishes its status.
  package static let telling = LockRank(16, "telling")
  package static let player = LockRank(24, "player")
  package static let session = LockRank(28, "session")
  /// A session's storage of media: the forward buffer, the frame ring, the audio queue.
  package static let media = LockRank(32, "media")
  /// An output that writes through another one.
  package static let recorder = LockRank(36, "recorder")
  /// An output that writes a file.
  package static let writer = LockRank(40, "writer")
  /// The body of an answer, over the transfers that bring it.
  package static let body = LockRank(42, "body")
  /// One transfer, and other objects that call closures or values that they were given.
  package static let transfer = LockRank(44, "transfer")
  /// An observed property or a channel of events.
  package static let observation = LockRank(48, "observation")
  /// All other locks. Nothing but a clock is read under one.
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
      // A programming error, reported in every configuration.
      fatalError("the lock \(rank.name) (\(rank.place)) is taken under locks of the ranks \(held.places)")
    }
    set(held | 1 << UInt(rank.place))
  }

  /// The same for a recursive lock. Returns true if the caller has to call `give` later.
  package static func takeAgain(_ rank: LockRank) -> Bool {
    guard held >> UInt(rank.place) & 1 == 0 else { return false }
    take(rank)
    return true
  }

  /// Replaces the ranks that this thread holds, for work that goes from thread to thread; returns those of before.
  package static func exchange(_ new: Held) -> Held {
    guard isChecked else { return Held(places: 0) }
    defer { set(new.places) }
    return Held(places: held)
  }

  /// The ranks that a thread holds.
  package struct Held: Sendable {
    fileprivate let places: UInt

    package static let none = Held(places: 0)
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
