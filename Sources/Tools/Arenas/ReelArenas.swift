internal import CArenas

/// Arenas of jemalloc for the memory accounts of players: with them a `MemoryLedger` knows all that is allocated for a
/// player, and not only its packets, frames and bytes in flight.
///
/// A program that links this module has jemalloc as its malloc, without caches for threads, so that memory that is freed
/// leaves its account at once. That costs time, so only programs that measure memory link it; `reel` does.
public enum ReelArenas {
  /// Gives each account that is created from now on an arena. To be called before the first player is made.
  ///
  /// - Returns: False if the process's malloc is not jemalloc, such as one that is preloaded. Nothing changes then.
  @discardableResult
  public static func register() -> Bool { reel_jemalloc_register() }

  /// The number of arenas made since the process began: as many as there were accounts at one time.
  package static var count: Int { Int(reel_jemalloc_arena_count()) }
}
