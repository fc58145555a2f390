internal import ReelFFmpeg

/// The bytes for a demuxer that continues in the middle of a stream: a header, zeros in place of the media
/// that was demuxed before, the bytes that the previous demuxer had read but not used, then the rest of the
/// stream.
final class ResumedSource: ByteSource {
  let byteCount: Int64? = nil
  let isSeekable = false

  private let base: any ByteSource
  private var head: ArraySlice<UInt8>
  private var zeroCount: Int64
  private var unread: ArraySlice<UInt8>

  init(head: [UInt8], zeroCount: Int64, unread: [UInt8], base: any ByteSource) {
    self.head = head[...]
    self.zeroCount = zeroCount
    self.unread = unread[...]
    self.base = base
  }

  /// The unread part of the previous demuxer's bytes; nil until everything before them was read.
  var unreadTail: [UInt8]? { head.isEmpty && zeroCount == 0 ? Array(unread) : nil }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    if !head.isEmpty { return Self.take(&head, into: buffer) }
    if zeroCount > 0 {
      let count = Int(min(zeroCount, Int64(buffer.count)))
      UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count)).initializeMemory(
        as: UInt8.self, repeating: 0)
      zeroCount -= Int64(count)
      return count
    }
    if !unread.isEmpty { return Self.take(&unread, into: buffer) }
    return try base.read(into: buffer)
  }

  func seek(to offset: Int64) throws { try base.seek(to: offset) }

  // MARK: - Private

  private static func take(_ bytes: inout ArraySlice<UInt8>, into buffer: UnsafeMutableRawBufferPointer)
    -> Int
  {
    let taken = bytes.prefix(buffer.count)
    buffer.copyBytes(from: taken)
    bytes = bytes.dropFirst(taken.count)
    // Once all of them are used, free the array.
    if bytes.isEmpty { bytes = [] }
    return taken.count
  }
}
