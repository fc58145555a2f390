import Foundation
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelSources

extension ExistingFiles {
  /// - Parameter source: A local file, which is never replaced by output made from it.
  init(areReplaced: Bool, of source: MediaSource) {
    var path: String?
    if case .url(let url) = source, url.isFileURL { path = url.path }
    self.init(areReplaced: areReplaced, source: path)
  }
}

/// The folder and names of the files of one source.
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
  func write(_ bytes: [UInt8], to name: String) throws(ReelError) {
    let file = try open(name)
    try file.write(bytes)
    try file.commit()
  }
}

enum OutputFolder {
  /// Returns the path of a file. That of one in the current folder is its name.
  static func path(_ name: String, in folder: String) -> String {
    folder == "." ? name : (folder as NSString).appendingPathComponent(name)
  }

  /// True for a name such as `x.gif`, unless there is a folder of that name. `x.gif/` is a folder.
  static func isNamedLikeFile(_ path: String) -> Bool {
    var isDirectory: ObjCBool = false
    let isFolder =
      FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory.boolValue
    return !isFolder && !path.hasSuffix("/") && StillFormat.isFileName((path as NSString).lastPathComponent)
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

/// A file that a command writes besides its results. It is opened before the work, so that errors are found early, and has
/// its name when it is complete.
final class ResultFile: Sendable {
  private struct State: ~Copyable {
    let file: OutputFile
    /// Lines that are not written yet.
    var buffer: [UInt8] = []
    /// The error of a line.
    var failure: ReelError?
  }

  private static let bufferByteCount = 64 << 10

  private let state: Locked<State>

  /// Throws `ReelError.cannotCreateOutput`.
  init(_ path: String) throws(ReelError) {
    var isDirectory: ObjCBool = false
    let isThere = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
    // Otherwise, the error would occur only at the end, when the file gets its name.
    guard !path.hasSuffix("/"), !(isThere && isDirectory.boolValue) else {
      throw ReelError(.cannotCreateOutput, "is a directory", at: path, advice: "name a file in it")
    }
    state = Locked(State(file: try OutputFile(path: path)), rank: .transfer)
  }

  /// Opens the file of an option; nil without one.
  static func open(_ path: String?) throws(ReelError) -> ResultFile? {
    guard let path else { return nil }
    return try ResultFile(path)
  }

  /// Adds a line. If it can't be written, `complete(with:)` throws the error.
  func add(_ line: String) {
    state.withLock { state in
      guard state.failure == nil else { return }
      state.buffer += Array(line.utf8)
      state.buffer.append(UInt8(ascii: "\n"))
      guard state.buffer.count >= Self.bufferByteCount else { return }
      do throws(ReelError) { try state.file.write(state.buffer) } catch { state.failure = error }
      state.buffer.removeAll(keepingCapacity: true)
    }
  }

  /// Writes the rest of the file, and gives it its name.
  func complete(with bytes: [UInt8] = []) throws(ReelError) {
    let failure = state.withLock { state -> ReelError? in
      do throws(ReelError) {
        if let failure = state.failure { throw failure }
        try state.file.write(state.buffer)
        try state.file.write(bytes)
        try state.file.commit()
      } catch { return error }
      return nil
    }
    if let failure { throw failure }
  }

  func complete(with text: String) throws(ReelError) { try complete(with: Array(text.utf8)) }
}
