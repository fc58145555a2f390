internal import CMemory

/// The memory that one player holds.
///
/// Each frame of a decoder that is opened inside `perform` is a mapping of its own, and is counted
/// individually. The bytes of packets that a `ContainerReader` returns inside it lie one after the other in
/// mappings of the account, because an allocator would round each of them up.
///
/// In a program with `ReelArenas`, everything else that is allocated inside `perform` also belongs to the
/// account until it is freed, wherever that happens: demuxers, codec contexts, Swift's objects. Each account
/// then has an arena of its own, and the figures of allocations are the allocator's own. An arena is not
/// destroyed with its account, because something may still live in it. A later account takes the free arena
/// with the least memory in use.
///
/// Why arenas: a counting malloc over glibc's would need a header before each block and would replace malloc in every
/// program that uses the library, and it would only count. glibc's heap mixes the players' blocks, so one small block
/// of the second player keeps the pages that the first has freed (36.9 MB resident for 0.66 MB in use). An arena gives
/// back the memory that its player frees, regardless of other players.
///
/// A frame of 720 × 1280 takes 1,478,656 bytes. Decoders without `AV_CODEC_CAP_DR1` (dav1d), palettes and
/// hardware formats use libavcodec's own frames, which count as heap. A frame thread of FFmpeg joins the
/// account when it first requests a frame.
///
/// Ownership: holds one reference to the C account; each mapping of the account holds another.
package final class MemoryAccount: @unchecked Sendable {
  // Sendable: the C account is never replaced, and its functions may be called on any thread.
  package let account: OpaquePointer

  /// Throws `ReelError.internalFault` if memory runs out.
  package init() throws(ReelError) {
    guard let account = reel_account_create() else { throw ReelError(.internalFault, "out of memory") }
    self.account = account
  }

  deinit { reel_account_release(account) }

  /// The bytes of the account's allocations, as rounded up by the allocator; nil without an arena.
  package var heapByteCount: Int? {
    reel_account_refresh()
    return heap?.used
  }

  /// The bytes, in whole pages, of the live frames that decoders of the account have created, wherever they
  /// are held, including those that a decoder keeps for its next frames.
  package var frameByteCount: Int { reel_account_mapped(account) }

  /// The bytes that the packets of the account take from the system: whole pages, including the gaps between
  /// live packets.
  package var packetByteCount: Int { reel_account_stored(account) }

  /// All figures at the same time.
  package var figures: Figures {
    reel_account_refresh()
    return latestFigures
  }

  /// All figures except the allocator's, which take long to determine for many accounts.
  package var mappedFigures: Figures {
    Figures(heap: nil, frameByteCount: frameByteCount, packetByteCount: packetByteCount)
  }

  /// Returns the figures of several accounts, which costs less than a call for each.
  package static func figures(of accounts: [MemoryAccount]) -> [Figures] {
    reel_account_refresh()
    return accounts.map(\.latestFigures)
  }

  /// Runs `body`, and counts this thread's allocations meanwhile on the account. Calls may be nested, also
  /// for different accounts. Only allocations of this thread count, and only until `body` returns.
  ///
  /// Turns of task loops run in it, tasks do not: when the last thread leaves an arena, all of its free pages return
  /// to the system, which costs too much for work as short as a task's.
  package func perform<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let scope = reel_account_enter(account)
    defer { reel_account_leave(scope) }
    return try body()
  }

  /// Returns freed memory of the account's arena to the system. An arena returns free pages only while it is in use, so
  /// the free pages of a resting player stay until this call.
  package func purge() { reel_account_purge(account) }

  /// Returns the free memory of the whole process's malloc to the system: of all accounts, and outside them.
  package static func purgeProcess() { reel_memory_purge() }

  /// The process's allocations outside of all accounts; nil without arenas.
  package static var shared: Figures.Heap? {
    reel_account_refresh()
    var figures = reel_heap_figures()
    guard reel_shared_heap(&figures) else { return nil }
    return Figures.Heap(used: figures.live, resident: figures.resident)
  }

  // MARK: - Private

  private var latestFigures: Figures {
    var figures = mappedFigures
    figures.heap = heap
    return figures
  }

  private var heap: Figures.Heap? {
    var figures = reel_heap_figures()
    guard reel_account_heap(account, &figures) else { return nil }
    return Figures.Heap(used: figures.live, resident: figures.resident)
  }
}

extension MemoryAccount {
  /// The memory of an account at one time, in bytes.
  package struct Figures: Sendable, Hashable {
    /// The memory of allocations.
    package struct Heap: Sendable, Hashable {
      /// The bytes in use, as the allocator rounds allocations up.
      package var used: Int
      /// The bytes taken from the system, including the gaps between allocations, the memory kept for later
      /// ones, and the allocator's own tables.
      package var resident: Int
    }

    /// Nil without `ReelArenas`.
    package var heap: Heap?
    package var frameByteCount: Int
    package var packetByteCount: Int

    /// The bytes that the account takes from the system; nil without `ReelArenas`.
    package var residentByteCount: Int? { heap.map { $0.resident + frameByteCount + packetByteCount } }
  }
}

package enum Allocator {
  /// Limits the number of arenas that glibc keeps for threads; does nothing on other systems. By default each
  /// of many threads gets one, which keeps its freed memory. Call it before there are many threads.
  package static func limitArenas(to count: Int) {
    reel_limit_allocator_arenas(Int32(clamping: max(1, count)))
  }

  /// Returns to the system the memory that is kept for the frames of extractions. Call it once no extraction
  /// is running any more.
  package static func trimFrames() { reel_frame_memory_trim() }

  /// Gives the calling thread a cache of free memory, like `cachingForThread`, for as long as it runs. Only
  /// for processes without accounts, whose memory the cache would keep.
  package static func cacheOnThread() { _ = reel_thread_cache(true) }

  /// Runs `body` with a cache of free memory for this thread, which otherwise gets each allocation from an
  /// arena. Must not be called inside an account's `perform`.
  package static func cachingForThread<Result>(_ body: () throws -> Result) rethrows -> Result {
    let hadCache = reel_thread_cache(true)
    defer { if !hadCache { _ = reel_thread_cache(false) } }
    return try body()
  }
}
