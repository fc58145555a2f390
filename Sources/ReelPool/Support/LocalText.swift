internal import Foundation
internal import ReelCore

/// Small files of this machine that are read as a whole.
enum LocalText {
  /// All bytes of a file.
  ///
  /// Throws `ReelError.noSuchFile` where it can't be read, and `badManifest` where it has more bytes than `limit`.
  static func bytes(path: String, limit: Int) throws(ReelError) -> [UInt8] {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
      throw ReelError(.noSuchFile, "no such file", at: path)
    }
    guard !isDirectory.boolValue else { throw ReelError(.noSuchFile, "it is a folder", at: path) }
    guard let file = FileHandle(forReadingAtPath: path) else {
      throw ReelError(.noSuchFile, "the file can't be opened", at: path)
    }
    defer { try? file.close() }
    do {
      var bytes: [UInt8] = []
      while bytes.count <= limit, let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty {
        bytes.append(contentsOf: piece)
      }
      if bytes.count <= limit { return bytes }
    } catch {
      throw ReelError(.noSuchFile, "the file can't be read", at: path)
    }
    throw ReelError(.badManifest, "larger than the limit of \(limit) bytes", at: path)
  }
}
