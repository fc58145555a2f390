import Foundation
import ReelCore
import ReelFiles
import ReelPlayback

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension ExistingFiles {
  /// - Parameter source: A local file, which is never replaced by output made from it.
  init(areReplaced: Bool, of source: MediaSource) {
    var path: String?
    if case .url(let url) = source, url.isFileURL { path = url.path }
    self.init(areReplaced: areReplaced, source: path)
  }
}

/// Where the files of one source go.
struct OutputPlace: Sendable {
  /// The folder, or `-` for standard output.
  let directory: String
  let existing: ExistingFiles

  /// Returns the path of a file with this name; `-` for standard output.
  func path(_ name: String) -> String {
    directory == "-" ? "-" : OutputFolder.path(name, in: directory)
  }

  /// Throws `ReelError.cannotCreateOutput` if a file may not be written. Nil for a name that is not known yet.
  func check(_ name: String?) throws(ReelError) {
    if let name, directory != "-" { try existing.check(path(name)) }
  }

  /// Opens a file. Lists have folders of their own: one is created with its first file.
  func open(_ name: String) throws(ReelError) -> OutputFile {
    if directory == "-" { return .standardOutput() }
    try OutputFolder.make(directory)
    return try OutputFile(path: path(name), existing: existing)
  }

  /// Writes a whole file.
  func write(_ parts: [[UInt8]], to name: String) throws(ReelError) {
    let file = try open(name)
    for part in parts { try file.write(part) }
    try file.commit()
  }
}

/// Folders for output files.
enum OutputFolder {
  /// Returns the path of a file. That of one in the current folder is its name.
  static func path(_ name: String, in folder: String) -> String {
    folder == "." ? name : (folder as NSString).appendingPathComponent(name)
  }

  /// Creates a folder and those above it, unless it exists.
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
