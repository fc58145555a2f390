internal import ReelFFmpeg

/// Tells how many bytes are read of another source.
///
/// Confined as that is.
final class CountedByteSource: ByteSource {
  private let base: any ByteSource
  private let note: (Int) -> Void

  /// - Parameter note: gets the bytes of each read.
  init(_ base: any ByteSource, note: @escaping (Int) -> Void) {
    self.base = base
    self.note = note
  }

  var byteCount: Int64? { base.byteCount }
  var isSeekable: Bool { base.isSeekable }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = try base.read(into: buffer)
    if count > 0 { note(count) }
    return count
  }

  func seek(to offset: Int64) throws { try base.seek(to: offset) }
}
