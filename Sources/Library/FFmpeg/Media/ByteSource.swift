/// Bytes for a `Demuxer`, read by blocking calls on the demuxer's own thread.
///
/// Ownership: the demuxer keeps the source as long as it lives, and calls it from one thread at a time.
package protocol ByteSource: AnyObject {
  /// The size of the source; nil if unknown.
  var byteCount: Int64? { get }

  /// True if `seek` works. If false, the demuxer reads forward only.
  var isSeekable: Bool { get }

  /// Waits for at least one byte, and fills `buffer` with the available bytes. Returns 0 only at the end. A
  /// source whose transfer was cut off throws, so an interruption is never mistaken for the end.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int

  /// Moves to the byte at `offset`, counted from the first byte of the source.
  func seek(to offset: Int64) throws
}
