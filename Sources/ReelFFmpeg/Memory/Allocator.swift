internal import CFFmpegShims

/// The allocator that FFmpeg's memory comes from.
package enum Allocator {
  /// Bounds the number of arenas that glibc keeps for threads; does nothing on other systems. By default each of many
  /// threads gets one, which keeps what it once held. To be called before there are many threads.
  package static func limitArenas(to count: Int) {
    reel_limit_allocator_arenas(Int32(clamping: max(1, count)))
  }
}
