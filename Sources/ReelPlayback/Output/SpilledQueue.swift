internal import DequeModule
internal import ReelCore
internal import SystemPackage

/// Bytes that wait to be written, in order: in memory up to a limit, and beyond it in a temporary file without a name.
struct SpilledQueue {
  /// Bytes that wait.
  var byteCount: Int64 { Int64(memoryByteCount) + fileEnd - fileStart }

  private let memoryLimit: Int
  private var pieces: Deque<[UInt8]> = []
  private var memoryByteCount = 0
  /// What comes behind the pieces.
  private var file: SpoolFile?
  private var fileStart: Int64 = 0
  private var fileEnd: Int64 = 0

  /// As much is read of the file at a time.
  private static let pieceByteCount = 1 << 20

  init(memoryLimit: Int) { self.memoryLimit = memoryLimit }

  /// Throws `ReelError.cannotCreateOutput` or `cannotWriteOutput` of the temporary file.
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

  /// Some of the next bytes; nil where there are none. Throws `ReelError.cannotWriteOutput` where the temporary file can't
  /// be read.
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
      // The next ones begin anew, in memory; the disk gets its room back.
      self.file = nil
      (fileStart, fileEnd) = (0, 0)
    }
    return bytes
  }
}
