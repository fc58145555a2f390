/// Bytes for a `Demuxer`, read by blocking calls on the demuxer's own thread.
///
/// Ownership: the demuxer keeps the source for as long as it lives, and calls it from one thread at a time.
package protocol ByteSource: AnyObject {
  /// The size of the source; nil if unknown.
  var byteCount: Int64? { get }

  /// True if `seek` works. A source that only streams says false, and the demuxer then reads forward only.
  var isSeekable: Bool { get }

  /// Waits for at least one byte, and fills `buffer` as far as bytes are available. Returns 0 only at the end.
  /// A source whose transfer was cut off throws, so that it is never taken for the end.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int

  /// Moves to the byte at `offset`, counted from the first byte of the source.
  func seek(to offset: Int64) throws
}
