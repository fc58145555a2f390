internal import Foundation
package import ReelCore

/// A link as a user names it: `10Mbit/50ms`, a profile, a file with a recording, or a folder of such files; options may
/// follow, as in `recordings/train,scale=4,tcp`.
///
/// What is a link or a profile is one; `./lte` names a file. A folder stands for all its files, also those in folders
/// within, sorted by path. Left out are hidden files, and those that tell about recordings: names that begin with `README`,
/// `LICENSE`, `COPYING` or `NOTICE`, and names that end with `.md`. A file name may contain commas.
package struct LinkArgument: Sendable, Hashable {
  /// One of the links that an argument stands for.
  package struct Link: Sendable, Hashable {
    /// A short name for tables: the text, the name of the file, or its path within the folder.
    package let name: String
    /// The argument that gives this link alone.
    package let text: String
    package var spec: LinkSpec
  }

  /// The most recordings of a folder.
  package static let fileLimit = 10_000

  private enum Base: Sendable, Hashable {
    case link(LinkSpec)
    case file
    case folder
  }

  /// The argument.
  package let text: String
  private let base: Base
  private let path: String
  private let options: LinkOptions
  /// The options as they are written, with their comma; empty for none.
  package let suffix: String

  /// Parses an argument. Looks whether there is a file, but reads none.
  ///
  /// - Parameter resolve: Makes the path of a file that the argument names, for instance one relative to another folder.
  /// - Throws: `ReelError` of kind `usage` if it is neither a link nor a file or folder, or an option is wrong.
  package init(
    parsing text: String, resolve: (String) -> String = { $0 }
  ) throws(ReelError) {
    self.text = text
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    var failure: ReelError?
    for count in 1...max(parts.count, 1) {
      let head = parts.prefix(count).joined(separator: ",")
      let base: Base
      do throws(ReelError) {
        base = try Self.base(head, path: resolve(head))
      } catch {
        failure = failure ?? error
        continue
      }
      self.base = base
      if case .link = base { path = head } else { path = resolve(head) }
      options = try LinkOptions(parsing: Array(parts.dropFirst(count)))
      suffix = String(text.dropFirst(head.count))
      if case .link(let spec) = base { _ = try options.applied(to: spec) }
      return
    }
    throw failure ?? ReelError(.usage, "\"\(text)\" is not a link")
  }

  /// True for a link that no file describes.
  package var isConstant: Bool {
    if case .link = base { return true }
    return false
  }

  /// True for a folder, which may stand for several links.
  package var isFolder: Bool { base == .folder }

  /// True if the start is drawn from the seed.
  package var drawsStart: Bool { options.drawsStart }

  /// Reads the recordings.
  ///
  /// - Parameter seed: What starts and jitter are drawn from. A recording gets the same start in a folder and alone.
  /// - Returns: The links in order; more than one only for a folder.
  /// - Throws: `ReelError` of kind `noSuchFile` or `badManifest`, with file and line; also for a folder without recordings.
  package func links(seed: UInt64) throws(ReelError) -> [Link] {
    try links().map { link in
      var link = link
      link.spec = link.spec.seeded(with: seed)
      return link
    }
  }

  /// Reads the recordings, and draws nothing: `LinkSpec.seeded(with:)` does.
  ///
  /// - Throws: As `links(seed:)`.
  package func links() throws(ReelError) -> [Link] {
    switch base {
    case .link(let spec):
      return [Link(name: path, text: text, spec: try options.applied(to: spec))]
    case .file:
      let name = URL(fileURLWithPath: path).lastPathComponent
      return [Link(name: name, text: path + suffix, spec: try read(path))]
    case .folder:
      let folder = path.hasSuffix("/") ? path : path + "/"
      var links: [Link] = []
      for name in try Self.files(in: folder) {
        links.append(Link(name: name, text: folder + name + suffix, spec: try read(folder + name)))
      }
      return links
    }
  }

  // MARK: - Private

  private static func base(_ text: String, path: String) throws(ReelError) -> Base {
    do throws(ReelError) {
      return .link(try LinkSpec(parsingWithoutOptions: text))
    } catch {
      var isDirectory: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
        // What begins with a digit was meant as a rate.
        guard let first = text.first, !first.isNumber else { throw error }
        let names = LinkSpec.profiles.map(\.name).joined(separator: ", ")
        throw ReelError(
          .usage, "\"\(text)\" is not a link, and there is no such file",
          advice:
            "write 10Mbit/50ms (rate/round-trip time), \(names), or the path of a recording or of a folder of "
            + "recordings")
      }
      return isDirectory.boolValue ? .folder : .file
    }
  }

  private func read(_ path: String) throws(ReelError) -> LinkSpec {
    let recording = try LinkRecording(path: path)
    do throws(ReelError) {
      return try options.applied(to: LinkSpec(recording))
    } catch {
      throw error.located(at: path)
    }
  }

  /// The paths of the recordings within a folder, sorted by their bytes.
  private static func files(in folder: String) throws(ReelError) -> [String] {
    guard let all = FileManager.default.enumerator(atPath: folder) else {
      throw ReelError(.noSuchFile, "the folder can't be read", at: folder)
    }
    var names: [String] = []
    while let name = all.nextObject() as? String {
      let last = name.split(separator: "/").last.map(String.init) ?? name
      if last.hasPrefix(".") {
        all.skipDescendants()
        continue
      }
      var isDirectory: ObjCBool = false
      guard FileManager.default.fileExists(atPath: folder + name, isDirectory: &isDirectory),
        !isDirectory.boolValue, !isDescription(last)
      else { continue }
      names.append(name)
      guard names.count <= fileLimit else {
        throw ReelError(.usage, "the folder has more than the limit of \(fileLimit) recordings", at: folder)
      }
    }
    guard !names.isEmpty else { throw ReelError(.noSuchFile, "the folder has no recordings", at: folder) }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  private static func isDescription(_ name: String) -> Bool {
    let name = name.uppercased()
    return name.hasSuffix(".MD")
      || ["README", "LICENSE", "COPYING", "NOTICE"].contains { name.hasPrefix($0) }
  }
}

extension LinkSpec {
  /// The link with its start drawn, if that is wanted, and its jitter drawn from `seed`.
  package func seeded(with seed: UInt64) -> LinkSpec {
    var link = self
    link.seed = seed
    guard let recording, drawsStart else { return link }
    var random = SplitMix64(seed: seed ^ recording.fingerprint)
    let microseconds = UInt64(clamping: recording.period.wholeMicroseconds)
    link.start = .microseconds(Int64(random.next().multipliedFullWidth(by: microseconds).high))
    link.drawsStart = false
    return link
  }
}
