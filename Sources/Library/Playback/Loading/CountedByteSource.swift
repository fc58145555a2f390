internal import ReelCore
internal import ReelFFmpeg

/// Reports how many bytes are read from another source, and adds those of a local file to a start-up report.
///
/// Confined like its base.
final class CountedByteSource: ByteSource {
  private let base: any ByteSource
  private let recorder: StartupRecorder
  private let record: (Int) -> Void
  private var position: Int64 = 0
  /// Bytes before this position were already counted when the source's format was detected.
  private let countedEnd = Int64(SourceSniffer.byteCount)

  /// - Parameter record: Called with the number of bytes of each read, including bytes that are read again.
  init(_ base: any ByteSource, recorder: StartupRecorder, record: @escaping (Int) -> Void = { _ in }) {
    self.base = base
    self.recorder = recorder
    self.record = record
  }

  var byteCount: Int64? { base.byteCount }
  var isSeekable: Bool { base.isSeekable }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = try base.read(into: buffer)
    guard count > 0 else { return count }
    position += Int64(count)
    recorder.add(.segment, bytes: max(0, position - max(countedEnd, position - Int64(count))))
    record(count)
    return count
  }

  func seek(to offset: Int64) throws {
    try base.seek(to: offset)
    position = offset
  }
}
