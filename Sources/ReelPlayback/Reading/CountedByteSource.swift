internal import ReelCore
internal import ReelFFmpeg

/// Tells how many bytes are read of another source, and counts those of a local file towards a start-up report.
///
/// Confined as that is.
final class CountedByteSource: ByteSource {
  private let base: any ByteSource
  private let recorder: StartupRecorder
  private let note: (Int) -> Void
  private var position: Int64 = 0
  /// Bytes up to here were counted when the source's kind was told.
  private let countedEnd = Int64(SourceSniffer.byteCount)

  /// - Parameter note: gets the bytes of each read, those read again too.
  init(_ base: any ByteSource, recorder: StartupRecorder, note: @escaping (Int) -> Void = { _ in }) {
    self.base = base
    self.recorder = recorder
    self.note = note
  }

  var byteCount: Int64? { base.byteCount }
  var isSeekable: Bool { base.isSeekable }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = try base.read(into: buffer)
    guard count > 0 else { return count }
    position += Int64(count)
    recorder.add(.segment, bytes: max(0, position - max(countedEnd, position - Int64(count))))
    note(count)
    return count
  }

  func seek(to offset: Int64) throws {
    try base.seek(to: offset)
    position = offset
  }
}
