internal import Foundation
package import ReelCore
internal import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Which source wrote each file of an output folder, so that a file is replaced only by the source that wrote it.
///
/// A file carries a hash of its source and its size in bytes as an extended attribute, set before it gets its name: a
/// process that is killed leaves no file without one. Another size says that something else has written the file since.
/// Where a file system has no such attributes, the folder has a hidden file in their place, with a line for each output.
/// The folder is locked while a file gets its name, so that several processes may write to it.
package final class OutputRecord: Sendable {
  /// What stands in a folder whose file system has no extended attributes.
  package static let fileName = ".reel-outputs"
  /// The attribute.
  package static let attribute = "user.reel.source"

  /// A source, by whatever names it from run to run.
  package struct Source: Sendable, Hashable {
    fileprivate let text: String

    /// FNV-1a of the identity: URLs may carry secrets, which files do not.
    package init(_ identity: String) {
      let hash: UInt64 = identity.utf8.reduce(0xcbf2_9ce4_8422_2325) {
        ($0 ^ UInt64($1)) &* 0x100_0000_01b3
      }
      text = String(hash, radix: 16)
    }
  }

  private let directory: String
  private let overwrites: Bool
  /// False where files carry no attributes; nil before that was tried.
  private let hasAttributes: Locked<Bool?>

  /// - Parameters:
  ///   - overwrites: any file may be replaced.
  ///   - usesAttributes: false keeps to the hidden file.
  package init(directory: String, overwrites: Bool, usesAttributes: Bool = true) {
    self.directory = directory
    self.overwrites = overwrites
    hasAttributes = Locked(usesAttributes ? nil : false)
  }

  /// Throws `ReelError.cannotCreateOutput` where a file of that name is there that `source` may not replace.
  package func check(_ name: String, of source: Source) throws(ReelError) {
    guard !overwrites, let size = Self.size(of: path(name)) else { return }
    if attribute(of: path(name)) == Self.text(source, size) { return }
    if lines(of: name, source).contains(Self.text(source, size)) { return }
    throw ReelError(
      .cannotCreateOutput, "the file exists, and was not written from this source", at: path(name),
      advice: "--overwrite replaces it; -o names another folder")
  }

  /// Gives a whole file, which stands at `partialPath`, its name: `rename` is called where that may be.
  ///
  /// Throws `ReelError.cannotCreateOutput` as `check(_:of:)` does, and what `rename` throws.
  func place(
    _ name: String, of source: Source, at partialPath: String, byteCount: Int64,
    _ rename: () throws(ReelError) -> Void
  ) throws(ReelError) {
    let folder = systemOpen(directory, O_RDONLY | O_CLOEXEC, 0)
    // Closing it gives the lock back; a file system without locks does without.
    defer { if folder >= 0 { close(folder) } }
    if folder >= 0 { while flock(folder, LOCK_EX) != 0, errno == EINTR {} }
    try check(name, of: source)
    mark(partialPath, name: name, Self.text(source, byteCount), of: source)
    try rename()
  }

  // MARK: - Private

  private func path(_ name: String) -> String { (directory as NSString).appendingPathComponent(name) }

  private static func text(_ source: Source, _ size: Int64) -> String { "\(source.text) \(size)" }

  /// Nil where there is nothing of that name.
  private static func size(of path: String) -> Int64? {
    var status = stat()
    return lstat(path, &status) == 0 ? Int64(status.st_size) : nil
  }

  // MARK: Attributes

  private static let attributes = FileAttributeKey(rawValue: "NSFileExtendedAttributes")

  private func attribute(of path: String) -> String? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)[Self.attributes]
    return (attributes as? [String: Data])?[Self.attribute].map { String(decoding: $0, as: UTF8.self) }
  }

  /// What can't be noted is not known to the next run, which then refuses.
  private func mark(_ partialPath: String, name: String, _ text: String, of source: Source) {
    let known = hasAttributes.withLock { $0 }
    if known != false {
      let value = [Self.attribute: Data(text.utf8)]
      try? FileManager.default.setAttributes([Self.attributes: value], ofItemAtPath: partialPath)
      // Not every system tells that it has none.
      if known == true || attribute(of: partialPath) == text {
        hasAttributes.withLock { $0 = true }
        return
      }
      hasAttributes.withLock { $0 = false }
    }
    append(name, text, of: source)
  }

  // MARK: The hidden file

  /// What the source that wrote the file last has noted of it; empty where that is not `source`. Older lines count too: a
  /// process may have been killed between its line and the file.
  private func lines(of name: String, _ source: Source) -> [String] {
    guard let bytes = FileManager.default.contents(atPath: path(Self.fileName)) else { return [] }
    var found: [String] = []
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      let parts = line.split(separator: " ", maxSplits: 2)
      guard parts.count == 3, parts[2] == name else { continue }
      if parts[0] == source.text { found.append("\(parts[0]) \(parts[1])") } else { found = [] }
    }
    return found
  }

  private func append(_ name: String, _ text: String, of source: Source) {
    guard !lines(of: name, source).contains(text) else { return }
    let descriptor = systemOpen(path(Self.fileName), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    // Whoever was killed within a line has left it without its end.
    _ = try? FileDescriptor(rawValue: descriptor).writeAll("\n\(text) \(name)\n".utf8)
  }
}

/// `open(2)`, under a name that members do not hide.
private func systemOpen(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }
