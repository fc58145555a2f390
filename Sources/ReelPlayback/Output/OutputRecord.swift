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

/// Records which source wrote each file in an output folder, so that only the same source may replace it.
///
/// An extended attribute of the file holds a hash of its source and the file's size. It is set before the file gets
/// its final name, so a killed process leaves no named file without it. If the file's size differs, something else
/// has written to the file since. On a file system without extended attributes, a hidden file in the folder takes
/// their place, with one line per output. The folder is locked while a file gets its name, so several processes can
/// write to it.
package final class OutputRecord: Sendable {
  /// The name of the hidden file in a folder whose file system has no extended attributes.
  package static let fileName = ".reel-outputs"
  /// The name of the extended attribute.
  package static let attribute = "user.reel.source"

  /// A source, identified in the same way in every run.
  package struct Source: Sendable, Hashable {
    fileprivate let text: String
    fileprivate let file: String?

    /// Stores an FNV-1a hash of the identity, because URLs may contain secrets that must not get into files.
    ///
    /// - Parameter file: The path of a local source, which no output may replace.
    package init(_ identity: String, file: String? = nil) {
      var hash = FNV1a()
      hash.combine(identity.utf8)
      text = String(hash.value, radix: 16)
      self.file = file
    }
  }

  private let directory: String
  private let overwrites: Bool
  /// Whether the file system supports extended attributes; nil before that was tried.
  private let hasAttributes: Locked<Bool?>

  /// - Parameters:
  ///   - overwrites: True if any file may be replaced.
  ///   - usesAttributes: False to use only the hidden file.
  package init(directory: String, overwrites: Bool, usesAttributes: Bool = true) {
    self.directory = directory
    self.overwrites = overwrites
    hasAttributes = Locked(usesAttributes ? nil : false)
  }

  /// Throws `ReelError.cannotCreateOutput` if a file of that name exists that `source` may not replace, or is the source.
  package func check(_ name: String, of source: Source) throws(ReelError) {
    if let file = source.file, Self.areSame(path(name), file) {
      throw ReelError(
        .cannotCreateOutput, "the output would replace its own source", at: path(name),
        advice: "-o names another folder")
    }
    guard !overwrites, isWritten(name, by: source) == false else { return }
    throw ReelError(
      .cannotCreateOutput, "the file exists and was not written from this source", at: path(name),
      advice: "use --overwrite to replace it, or -o to name another folder")
  }

  /// Removes a file if `source` has written it.
  package func remove(_ name: String, of source: Source) {
    let folder = locked()
    defer { try? folder?.close() }
    if isWritten(name, by: source) == true { unlink(path(name)) }
  }

  /// Gives the complete file at `partialPath` its name by calling `rename`, if that is allowed.
  ///
  /// Throws `ReelError.cannotCreateOutput` like `check(_:of:)`, and whatever `rename` throws.
  func place(
    _ name: String, of source: Source, at partialPath: String, byteCount: Int64,
    _ rename: () throws(ReelError) -> Void
  ) throws(ReelError) {
    let folder = locked()
    defer { try? folder?.close() }
    try check(name, of: source)
    mark(partialPath, name: name, Self.text(source, byteCount), of: source)
    try rename()
  }

  // MARK: - Private

  /// The folder, which closing unlocks. File systems without locks are used without one.
  private func locked() -> FileDescriptor? {
    let folder = try? FileDescriptor.open(directory, .readOnly, options: .closeOnExec)
    if let folder { while flock(folder.rawValue, LOCK_EX) != 0, errno == EINTR {} }
    return folder
  }

  /// Nil if nothing has that name.
  private func isWritten(_ name: String, by source: Source) -> Bool? {
    guard let size = Self.size(of: path(name)) else { return nil }
    let text = Self.text(source, size)
    return attribute(of: path(name)) == text || lines(of: name, source).contains(text)
  }

  private func path(_ name: String) -> String { (directory as NSString).appendingPathComponent(name) }

  private static func text(_ source: Source, _ size: Int64) -> String { "\(source.text) \(size)" }

  /// True if both paths, after links, lead to one file.
  private static func areSame(_ path: String, _ other: String) -> Bool {
    var (status, otherStatus) = (stat(), stat())
    return stat(path, &status) == 0 && stat(other, &otherStatus) == 0 && status.st_dev == otherStatus.st_dev
      && status.st_ino == otherStatus.st_ino
  }

  /// Nil if nothing has that name.
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

  /// Records the source of a file. If that fails, a later run will refuse to replace the file.
  private func mark(_ partialPath: String, name: String, _ text: String, of source: Source) {
    let known = hasAttributes.withLock { $0 }
    if known != false {
      let value = [Self.attribute: Data(text.utf8)]
      try? FileManager.default.setAttributes([Self.attributes: value], ofItemAtPath: partialPath)
      // Not every file system reports that it has no attributes.
      if known == true || attribute(of: partialPath) == text {
        hasAttributes.withLock { $0 = true }
        return
      }
      hasAttributes.withLock { $0 = false }
    }
    append(name, text, of: source)
  }

  // MARK: The hidden file

  /// The entries of `source` for a file, if it wrote the file last; otherwise empty. Older lines of the same source
  /// count as well, because a process may have been killed after writing a line and before renaming its file.
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
    let record = try? FileDescriptor.open(
      path(Self.fileName), .writeOnly, options: [.create, .append, .closeOnExec],
      permissions: [.ownerReadWrite, .groupRead, .otherRead])
    // A process that was killed while writing may have left a line without its newline.
    _ = try? record?.closeAfter { try record?.writeAll("\n\(text) \(name)\n".utf8) }
  }
}
