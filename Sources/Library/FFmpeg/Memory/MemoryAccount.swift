internal import CFFmpegShims
internal import CMemory
public import ReelCore

/// What one player holds of memory.
///
/// The frames of decoders that are opened inside of `perform` are mappings of their own, which are counted one by one. The
/// bytes of packets that are boxed inside (`SharedPacket`) lie one behind the other in mappings of the account, as an
/// allocator would round each of them up.
///
/// In a program with `ReelArenas`, all else that is allocated inside of `perform` belongs to the account too until it is
/// freed, wherever that is: demuxers, codec contexts, Swift's objects. Each account then has an arena of its own, and what is
/// allocated is read from the allocator's own figures. An arena is not destroyed with its account, as something may live in
/// it still. A later account takes the free arena that has the least left in it.
///
/// Why arenas: a counting malloc over glibc's would need a header before each block and would replace malloc in every
/// program that uses the library, and it would only count. glibc's heap mixes the players' blocks, so one small block
/// of the second player keeps the pages that the first has freed (36.9 MB resident for 0.66 MB in use). An arena gives
/// back the memory that its player frees, whatever other players hold.
///
/// A frame of 720 × 1280 takes 1,478,656 bytes. Decoders without `AV_CODEC_CAP_DR1` (dav1d), palettes and hardware
/// formats have libavcodec's own frames, which count as heap. A frame thread of FFmpeg joins the account when it
/// first asks for a frame.
///
/// Ownership: holds one reference to the C account; each mapping that is counted on it holds another.
public final class MemoryAccount: @unchecked Sendable {
  // Sendable: the C account is never replaced, and its functions may be called on any thread.
  let account: OpaquePointer

  /// Throws `ReelError.internalFault` where there is no memory.
  public init() throws(ReelError) {
    guard let account = reel_account_create() else { throw ReelError(.internalFault, "out of memory") }
    self.account = account
  }

  deinit { reel_account_release(account) }

  /// The bytes of the account's allocations, as rounded up by the allocator; nil without an arena.
  package var heapByteCount: Int? {
    reel_account_refresh()
    return heap?.used
  }

  /// Bytes of the frames that decoders of the account have made and that are alive, in a decoder, in a ring or
  /// anywhere else; those included that a decoder keeps for its next ones. Whole pages.
  package var frameByteCount: Int { reel_account_mapped(account) }

  /// Bytes that the packets of the account take from the system: whole pages, with what lies between those that are
  /// alive.
  package var packetByteCount: Int { reel_account_stored(account) }

  /// All figures at one time.
  public var figures: Figures {
    reel_account_refresh()
    return latestFigures
  }

  /// All figures but the allocator's, which take long to determine for many accounts.
  package var mappedFigures: Figures {
    Figures(heap: nil, frameByteCount: frameByteCount, packetByteCount: packetByteCount)
  }

  /// The figures of several accounts, which costs less than to ask each.
  public static func figures(of accounts: [MemoryAccount]) -> [Figures] {
    reel_account_refresh()
    return accounts.map(\.latestFigures)
  }

  /// Runs `body`, and counts the allocations of this thread meanwhile on the account. Calls may be nested, also
  /// for different accounts. Only allocations of this thread count, and only until `body` returns.
  ///
  /// Turns of task loops run in it, tasks do not: when the last thread leaves an arena, jemalloc returns all of
  /// its free pages, which costs too much for work as short as a task's.
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

  /// Gives back to the system what is free of the whole process's malloc: of all accounts, and of what belongs to none.
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
  /// What an account holds at one time, in bytes.
  public struct Figures: Sendable, Hashable {
    /// Of allocations.
    public struct Heap: Sendable, Hashable {
      /// In use, as the allocator rounds allocations up.
      public var used: Int
      /// What they take from the system: the gaps between them, what is kept for later allocations, and the
      /// allocator's own tables included.
      public var resident: Int
    }

    /// Nil without `ReelArenas`.
    public var heap: Heap?
    /// Of frames that are alive.
    public var frameByteCount: Int
    /// Of packets' bytes.
    public var packetByteCount: Int

    package init(heap: Heap?, frameByteCount: Int, packetByteCount: Int) {
      self.heap = heap
      self.frameByteCount = frameByteCount
      self.packetByteCount = packetByteCount
    }

    /// What the account takes from the system; nil without `ReelArenas`.
    public var residentByteCount: Int? { heap.map { $0.resident + frameByteCount + packetByteCount } }
  }
}

/// The allocator that FFmpeg's memory comes from.
package enum Allocator {
  /// Bounds the number of arenas that glibc keeps for threads; does nothing on other systems. By default each of many
  /// threads gets one, which keeps what it once held. To be called before there are many threads.
  package static func limitArenas(to count: Int) {
    reel_limit_allocator_arenas(Int32(clamping: max(1, count)))
  }

  /// Returns to the system the memory that is kept for the frames of extractions. To be called once nothing is extracted
  /// any more.
  package static func trimFrames() { reel_frame_memory_trim() }

  /// Gives the calling thread a cache of free memory, as `cachingForThread`, for as long as it runs. Only for processes
  /// without accounts, whose memory the cache would keep.
  package static func cacheOnThread() { _ = reel_thread_cache(true) }

  /// Runs `body` with a cache of free memory for this thread, which otherwise takes each piece from an arena. Not inside of
  /// an account's `perform`.
  package static func cachingForThread<Result>(_ body: () throws -> Result) rethrows -> Result {
    let hadCache = reel_thread_cache(true)
    defer { if !hadCache { _ = reel_thread_cache(false) } }
    return try body()
  }
}
