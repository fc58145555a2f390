import Foundation
import ReelSources

/// Identifies the file of a path: two paths to one file, through links of any kind, have the same identity.
///
/// Pipes and devices have none, because writing to them replaces nothing.
struct FileIdentity: Hashable {
  private let device: UInt64
  private let number: UInt64
  /// The name of a file that does not exist yet, in the folder that `device` and `number` identify; nil for
  /// an existing file.
  private let name: String?

  /// Nil if the path neither is a file nor could become one.
  init?(path: String) {
    var status = stat()
    if stat(path, &status) == 0 {
      self.init(status)
      return
    }
    // A dangling link would create the file that it names.
    var url = URL(fileURLWithPath: path)
    if let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path) {
      url = URL(fileURLWithPath: target, relativeTo: url.deletingLastPathComponent())
    }
    guard stat(url.deletingLastPathComponent().path, &status) == 0 else { return nil }
    self.init(device: UInt64(status.st_dev), number: UInt64(status.st_ino), name: url.lastPathComponent)
  }

  /// The identity of a local source; nil for any other.
  init?(_ source: MediaSource) {
    switch source {
    case .url(let url):
      guard url.isFileURL else { return nil }
      self.init(path: url.path)
    case .standardInput:
      var status = stat()
      guard fstat(STDIN_FILENO, &status) == 0 else { return nil }
      self.init(status)
    }
  }

  // MARK: - Private

  private init(device: UInt64, number: UInt64, name: String?) {
    self.device = device
    self.number = number
    self.name = name
  }

  private init?(_ status: stat) {
    guard status.st_mode & S_IFMT == S_IFREG else { return nil }
    self.init(device: UInt64(status.st_dev), number: UInt64(status.st_ino), name: nil)
  }
}
