internal import CArenas

/// Arenas of jemalloc for the memory accounts of players. With them, a `MemoryLedger` includes all
/// allocations of a player, and not only its packets, frames and bytes in flight.
///
/// A program that links this module has jemalloc as its malloc, without caches for threads, so that freed
/// memory leaves its account at once. That costs time, so only programs that measure memory link it; `reel`
/// does.
public enum ReelArenas {
  /// Gives each account that is created from now on an arena. Call it before the first player is created.
  ///
  /// - Returns: False if the process's malloc is not jemalloc, such as one that is preloaded. Nothing changes then.
  @discardableResult
  public static func register() -> Bool { reel_jemalloc_register() }

  /// The number of arenas created since the process began: the maximum number of concurrent accounts.
  package static var count: Int { Int(reel_jemalloc_arena_count()) }
}
