/// Bytes for a `Demuxer`, read by blocking calls on the demuxer's own thread.
///
/// Ownership: the demuxer keeps the source for as long as it lives, and calls it from one thread at a time.
package protocol ByteSource: AnyObject {
  /// The size of all bytes, where it is known.
  var byteCount: Int64? { get }

  /// True where `seek` works. A source that only streams says false, and the demuxer then reads forward only.
  var isSeekable: Bool { get }

  /// Waits until there is at least one byte, and fills as much of `buffer` as is there. Gives 0 at the end and only
  /// there: a source whose transfer was cut throws, so that a cut is never taken for an end.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int

  /// Moves to the byte at `offset`, counted from the first byte of the source.
  func seek(to offset: Int64) throws
}
