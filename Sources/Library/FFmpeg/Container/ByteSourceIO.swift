internal import CFFmpeg
internal import CFFmpegShims
internal import ReelCore

/// A `ByteSource` as an `AVIOContext`.
///
/// Ownership: it owns the context and the context's buffer. FFmpeg may have replaced the first buffer: the
/// one in the context is freed. An error that the source throws in a callback is stored here, and the caller
/// of the FFmpeg function rethrows it with `rethrow()`.
final class ByteSourceIO {
  let context: UnsafeMutablePointer<AVIOContext>
  private(set) var error: (any Error)?
  private(set) var readDuration: Duration = .zero
  private let source: any ByteSource
  private let box: CallbackBox
  private let isSeekable: Bool
  private let clock: any MonotonicClock
  /// The last bytes of a source that can't seek: demuxers sometimes go back a few bytes, and each read
  /// empties AVIO's own buffer.
  private var history: [UInt8] = []
  /// The reader's distance from the end of `history`, and the position of that end in the source.
  private var rewound = 0
  private var sourceOffset: Int64 = 0

  /// The number of bytes to request at a time. Reads of a whole sample bypass this buffer.
  private static let bufferSize = 8 * 1024
  /// Together with the array's header, an allocation size that allocators do not round up.
  private static let historySize = 32 * 1024 - 32

  /// - Parameters:
  ///  - isSeekable: False to hide that a source can seek.
  ///  - position: The position of the source's first byte, for a source that can't seek.
  ///  - clock: Measures the time of reads.
  init(
    source: any ByteSource, isSeekable: Bool, position: Int64 = 0, clock: any MonotonicClock
  ) throws(ReelError) {
    self.source = source
    sourceOffset = position
    self.clock = clock
    self.isSeekable = isSeekable && source.isSeekable
    box = CallbackBox()
    guard let buffer = av_malloc(Self.bufferSize) else { throw ReelError(.internalFault, "out of memory") }
    let context = avio_alloc_context(
      buffer.assumingMemoryBound(to: UInt8.self), Int32(Self.bufferSize), 0,
      Unmanaged.passUnretained(box).toOpaque(),
      { opaque, buffer, size in
        CallbackBox.io(opaque)?.read(into: buffer, size: size) ?? reel_averror_io()
      },
      nil,
      { opaque, offset, whence in CallbackBox.io(opaque)?.seek(to: offset, whence: whence) ?? -1 }
    )
    guard let context else {
      av_free(buffer)
      throw ReelError(.internalFault, "out of memory")
    }
    self.context = context
    context.pointee.pos = position
    context.pointee.seekable = self.isSeekable ? AVIO_SEEKABLE_NORMAL : 0
    box.owner = self
  }

  deinit {
    av_freep(&context.pointee.buffer)
    var context: UnsafeMutablePointer<AVIOContext>? = context
    avio_context_free(&context)
  }

  /// Throws the error that the source threw in a callback, if any.
  func rethrow() throws {
    if let error { throw error }
  }

  /// The size of the source; nil if unknown.
  var byteCount: Int64? { source.byteCount }

  /// The bytes that were read ahead of the demuxer; nil if some of them will be read again.
  var unread: [UInt8]? {
    guard rewound == 0, error == nil, let next = context.pointee.buf_ptr, let end = context.pointee.buf_end
    else { return nil }
    return Array(UnsafeRawBufferPointer(start: next, count: end - next))
  }

  /// Restores a buffer of the usual size in place of the larger one with which FFmpeg went back after
  /// examining the beginning (ffio_ensure_seekback). FFmpeg does so itself only if a read happens to end at
  /// the buffer's end.
  func shrinkBuffer() {
    guard context.pointee.buffer_size > 2 * Self.bufferSize, let old = context.pointee.buffer,
      let next = context.pointee.buf_ptr, let end = context.pointee.buf_end, end - next <= Self.bufferSize,
      let made = av_malloc(Self.bufferSize)
    else { return }
    let buffer = made.assumingMemoryBound(to: UInt8.self)
    buffer.update(from: next, count: end - next)
    context.pointee.buffer = buffer
    context.pointee.buffer_size = Int32(Self.bufferSize)
    context.pointee.buf_ptr = buffer
    context.pointee.buf_end = buffer + (end - next)
    context.pointee.buf_ptr_max = buffer
    av_free(old)
  }

  /// Clears an error that the source did not cause.
  func forgetError() { error = nil }

  // MARK: - Private

  /// The object passed to FFmpeg's callbacks, with a weak reference back.
  private final class CallbackBox {
    weak var owner: ByteSourceIO?

    static func io(_ opaque: UnsafeMutableRawPointer?) -> ByteSourceIO? {
      opaque.map { Unmanaged<CallbackBox>.fromOpaque($0).takeUnretainedValue() }?.owner
    }
  }

  private func read(into buffer: UnsafeMutablePointer<UInt8>?, size: Int32) -> Int32 {
    guard error == nil, let buffer, size > 0 else { return error == nil ? 0 : reel_averror_exit() }
    let start = clock.now
    defer { readDuration += clock.now - start }
    let target = UnsafeMutableRawBufferPointer(start: buffer, count: Int(size))
    if rewound > 0 {
      let bytes = history.suffix(rewound).prefix(target.count)
      target.copyBytes(from: bytes)
      rewound -= bytes.count
      return Int32(bytes.count)
    }
    do {
      let count = try source.read(into: target)
      if !isSeekable { remember(target.prefix(count)) }
      return count == 0 ? reel_averror_eof() : Int32(count)
    } catch {
      self.error = error
      return reel_averror_exit()
    }
  }

  private func remember(_ bytes: Slice<UnsafeMutableRawBufferPointer>) {
    sourceOffset += Int64(bytes.count)
    let news = bytes.suffix(Self.historySize)
    if history.isEmpty { history.reserveCapacity(Self.historySize) }
    history.removeFirst(max(0, history.count + news.count - Self.historySize))
    history.append(contentsOf: news)
  }

  private func seek(to offset: Int64, whence: Int32) -> Int64 {
    if whence & AVSEEK_SIZE != 0 { return source.byteCount ?? -1 }
    guard error == nil, whence & 0xffff == 0 else { return -1 }
    guard isSeekable else {
      let distance = sourceOffset - offset
      guard distance >= 0, distance <= Int64(history.count) else { return -1 }
      rewound = Int(distance)
      return offset
    }
    do {
      try source.seek(to: offset)
      return offset
    } catch {
      self.error = error
      return Int64(reel_averror_exit())
    }
  }
}

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

/// A source that is read forward.
extension ByteSource {
  package var isSeekable: Bool { false }
  package func seek(to offset: Int64) throws {
    throw ReelError(.internalFault, "a source that is read forward can't seek")
  }
}

/// Bytes in memory, read forward.
package final class MemoryByteSource: ByteSource {
  private let bytes: [UInt8]
  private var offset = 0

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  package var byteCount: Int64? { Int64(bytes.count) }

  package func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(buffer.count, bytes.count - offset)
    guard count > 0 else { return 0 }
    buffer.copyBytes(from: bytes[offset..<(offset + count)])
    offset += count
    return count
  }
}
