import Foundation
import ReelCore
import ReelPlayback

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Makes folders for output files.
enum OutputFolder {
  /// Makes a folder and those above it, unless it exists.
  ///
  /// Throws `ReelError.cannotCreateOutput`; `cannotWriteOutput` if the disk is full.
  static func make(_ folder: String) throws(ReelError) {
    var isDirectory: ObjCBool = false
    if FileManager.default.fileExists(atPath: folder, isDirectory: &isDirectory) {
      guard isDirectory.boolValue else {
        throw ReelError(.cannotCreateOutput, "is a file, not a folder", at: folder)
      }
      return
    }
    var path = folder.hasPrefix("/") ? "/" : ""
    for part in folder.split(separator: "/") {
      path += path.isEmpty || path.hasSuffix("/") ? String(part) : "/" + part
      guard mkdir(path, 0o777) != 0, errno != EEXIST else { continue }
      throw OutputFile.creationFailure(errno, at: folder, "the folder can't be created")
    }
    guard FileManager.default.fileExists(atPath: folder, isDirectory: &isDirectory), isDirectory.boolValue
    else { throw OutputFile.creationFailure(ENOTDIR, at: folder, "the folder can't be created") }
  }
}
