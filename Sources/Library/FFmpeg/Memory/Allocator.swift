internal import CFFmpegShims
internal import CMemory

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
