internal import DequeModule
internal import ReelCore
internal import SystemPackage

/// A queue of bytes to be written, in memory up to a limit, and beyond it in an unnamed temporary file.
struct SpilledQueue {
  /// The number of queued bytes.
  var byteCount: Int64 { Int64(memoryByteCount) + fileEnd - fileStart }

  private let memoryLimit: Int
  private var pieces: Deque<[UInt8]> = []
  private var memoryByteCount = 0
  /// The bytes after `pieces`.
  private var file: SpoolFile?
  private var fileStart: Int64 = 0
  private var fileEnd: Int64 = 0

  /// The number of bytes read from the file at a time.
  private static let pieceByteCount = 1 << 20

  init(memoryLimit: Int) { self.memoryLimit = memoryLimit }

  /// Throws `ReelError.cannotCreateOutput` or `cannotWriteOutput` for the temporary file.
  mutating func append(_ bytes: [UInt8]) throws(ReelError) {
    if fileEnd == fileStart, memoryByteCount < memoryLimit {
      pieces.append(bytes)
      memoryByteCount += bytes.count
      return
    }
    let file: SpoolFile
    if let made = self.file { file = made } else { file = try SpoolFile() }
    self.file = file
    do {
      try file.descriptor.writeAll(toAbsoluteOffset: fileEnd, bytes)
    } catch {
      throw ReelError(.cannotWriteOutput, "the temporary file can't be written: \(error)")
    }
    fileEnd += Int64(bytes.count)
  }

  /// Removes and returns some of the next bytes; nil if there are none. Throws `ReelError.cannotWriteOutput` if the
  /// temporary file can't be read.
  mutating func takeFirst() throws(ReelError) -> [UInt8]? {
    if let piece = pieces.popFirst() {
      memoryByteCount -= piece.count
      return piece
    }
    guard let file, fileEnd > fileStart else { return nil }
    let count = Int(min(fileEnd - fileStart, Int64(Self.pieceByteCount)))
    let bytes: [UInt8]
    do {
      bytes = try [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        initialized = try file.descriptor.read(
          fromAbsoluteOffset: fileStart, into: UnsafeMutableRawBufferPointer(buffer))
      }
    } catch {
      throw ReelError(.cannotWriteOutput, "the temporary file can't be read: \(error)")
    }
    guard !bytes.isEmpty else {
      throw ReelError(.cannotWriteOutput, "the temporary file is shorter than what was written")
    }
    fileStart += Int64(bytes.count)
    if fileStart == fileEnd {
      // Later bytes start again in memory, and the disk space is freed.
      self.file = nil
      (fileStart, fileEnd) = (0, 0)
    }
    return bytes
  }
}
