internal import ReelFFmpeg

/// The bytes of a stream for a demuxer that takes it up in the middle: a header, zeros in place of what was demuxed
/// before, what the demuxer before it had read and not used, then the stream itself.
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

  /// What of the unread bytes was not read yet; nil before all that stands before them was read.
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
    // What was given is not kept for what is left.
    if bytes.isEmpty { bytes = [] }
    return taken.count
  }
}
