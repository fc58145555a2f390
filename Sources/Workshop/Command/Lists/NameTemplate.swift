import Foundation
import ReelCore
import ReelLab

/// A template for the names of a source's files, such as `{host}/{stem}-{hash}`.
///
/// `/` separates folders. `{{` and `}}` stand for braces. The format is added as an extension unless the template ends
/// with `{format}`.
struct NameTemplate: Sendable, Equatable {
  enum Field: String, CaseIterable, Sendable {
    /// The position of the source in its list, counted from 1, with at least six digits.
    case index
    /// The last component of the URL's path without its extension.
    case stem
    /// The first 16 digits of the source's hash.
    case hash
    /// The host of the URL; `local` for a file.
    case host
    /// The time of the frame in seconds, with three decimals.
    case time
    /// The format of the files: their extension.
    case format
  }

  /// The values of the fields for one source.
  struct Values: Sendable {
    var index: Int
    var stem: String
    var hash: String
    var host: String
    var format: String
  }

  /// The maximum length of a component of a path in bytes, without number and extension. With those and the
  /// parts of a temporary name, it stays within the 255 bytes that file systems allow.
  static let componentLimit = 200

  private enum Part: Sendable, Equatable {
    case text(String)
    case field(Field)
  }

  /// The parts without a final `{format}`.
  private var parts: [Part]
  /// The text before the extension.
  private let extensionMark: String

  /// True if no two sources of a list can have the same name, regardless of their URLs.
  var isUnique: Bool { parts.contains(.field(.hash)) || parts.contains(.field(.index)) }
  /// True if each frame has a name of its own.
  var hasTime: Bool { parts.contains(.field(.time)) }

  /// Throws `ReelError.usage`.
  init(parsing text: String) throws(ReelError) {
    var parts = try Self.parts(text)
    if parts.last == .field(.format) {
      parts.removeLast()
      if case .text(let mark)? = parts.last, mark.hasSuffix(".") {
        parts[parts.count - 1] = .text(String(mark.dropLast()))
        extensionMark = "."
      } else {
        extensionMark = ""
      }
    } else {
      extensionMark = "."
    }
    self.parts = parts.filter { $0 != .text("") }
    try check()
  }

  /// Returns the path of a file, relative to the output folder.
  ///
  /// - Parameters:
  ///   - time: The time of the frame, for `{time}`.
  ///   - isMarked: True to add the hash, because another source has the same name without it.
  ///   - number: The number of the frame among those of the source, or nil for a name without a number.
  func path(_ values: Values, time: Double, isMarked: Bool, number: Int?) -> String {
    var name = stem(values, time: time, isMarked: isMarked)
    if let number { name += "-" + String(format: "%06d", number) }
    return name + extensionMark + values.format
  }

  /// Returns the path without number and extension.
  func stem(_ values: Values, time: Double, isMarked: Bool) -> String {
    var text = ""
    for part in parts {
      switch part {
      case .text(let literal): text += literal
      case .field(.index): text += String(format: "%06d", values.index)
      case .field(.stem): text += Self.cleaned(values.stem)
      case .field(.hash): text += values.hash
      case .field(.host): text += Self.cleaned(values.host)
      case .field(.time): text += String(format: "%.3f", time)
      case .field(.format): text += values.format
      }
    }
    if isMarked { text += "-" + values.hash }
    return text.split(separator: "/", omittingEmptySubsequences: false)
      .map { Self.component(String($0), hash: values.hash) }.joined(separator: "/")
  }

  // MARK: - Private

  private static func parts(_ text: String) throws(ReelError) -> [Part] {
    var parts: [Part] = []
    var (literal, rest) = ("", text[...])
    while let character = rest.popFirst() {
      if character == "{" || character == "}", rest.first == character {
        literal.append(character)
        rest.removeFirst()
      } else if character == "}" {
        throw failure("a } without its {; write }} for a brace")
      } else if character == "{" {
        guard let end = rest.firstIndex(of: "}") else {
          throw failure("a { without its }; write {{ for a brace")
        }
        parts.append(.text(literal))
        literal = ""
        parts.append(.field(try field(String(rest[..<end]))))
        rest = rest[rest.index(after: end)...]
      } else {
        literal.append(character)
      }
    }
    parts.append(.text(literal))
    return parts.filter { $0 != .text("") }
  }

  private static func field(_ name: String) throws(ReelError) -> Field {
    if let field = Field(rawValue: name) { return field }
    let fields = Field.allCases.map { "{\($0.rawValue)}" }.joined(separator: " ")
    if let near = Similarity.suggestion(for: name, among: Field.allCases.map(\.rawValue)) {
      throw failure("there is no field {\(name)}; did you mean {\(near)}? The fields are \(fields)")
    }
    throw failure("there is no field {\(name)}; the fields are \(fields)")
  }

  private func check() throws(ReelError) {
    var components: [[Part]] = [[]]
    for part in parts {
      guard case .text(let literal) = part else {
        components[components.count - 1].append(part)
        continue
      }
      guard !literal.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7f }) else {
        throw Self.failure("a control character can't be in a name")
      }
      for (place, piece) in literal.split(separator: "/", omittingEmptySubsequences: false).enumerated() {
        if place > 0 { components.append([]) }
        if !piece.isEmpty { components[components.count - 1].append(.text(String(piece))) }
      }
    }
    if components.first?.isEmpty == true, components.count > 1 {
      throw Self.failure("the name has to be relative to the output folder")
    }
    for component in components {
      if component.isEmpty { throw Self.failure("a component of the name is empty") }
      if component == [.text("..")] || component == [.text(".")] {
        throw Self.failure("the name would leave the output folder: . and .. can't be components")
      }
    }
    if components.dropLast().contains(where: { $0.contains(.field(.time)) }) {
      throw Self.failure("{time} can't be in the name of a folder")
    }
  }

  private static func failure(_ reason: String) -> ReelError { ReelError(.usage, reason) }

  /// Returns the value of a field without characters that some file system rejects or that separate folders.
  private static func cleaned(_ value: String) -> String {
    var text = ""
    for scalar in value.unicodeScalars {
      text.unicodeScalars.append(
        scalar.isControl || "/\\:*?\"<>|".unicodeScalars.contains(scalar) ? "_" : scalar)
    }
    return text
  }

  /// Returns a name that every file system accepts: not hidden or reserved, and not too long.
  private static func component(_ text: String, hash: String) -> String {
    var name = text
    while let last = name.last, last == "." || last == " " { name.removeLast() }
    if name.hasPrefix(".") { name = "_" + name.dropFirst() }
    if name.isEmpty { name = "_" }
    // Reserved device names of Windows, with any extension.
    let base = name.prefix { $0 != "." }.uppercased()
    let isNumbered = base.count == 4 && (base.hasPrefix("COM") || base.hasPrefix("LPT"))
    if ["CON", "PRN", "AUX", "NUL"].contains(base) || isNumbered && base.last?.isNumber == true {
      name = "_" + name
    }
    guard name.utf8.count > componentLimit else { return name }
    var short = ""
    for character in name {
      guard short.utf8.count + character.utf8.count + hash.utf8.count + 1 <= componentLimit else { break }
      short.append(character)
    }
    return "\(short)-\(hash)"
  }
}

/// The names of the files of one source in a list.
struct BatchNames: Sendable {
  let template: NameTemplate
  let values: NameTemplate.Values
  /// Whether the hash is added because another source has the same name without it.
  let isMarked: Bool
  /// The output folder.
  let output: String
  /// True to prefix the name with two folders from the first four digits of the hash.
  let fansOut: Bool

  /// True if the time makes each frame's name unique.
  var hasTime: Bool { template.hasTime }

  /// The folder of the source's files.
  var folder: String {
    let path = relative(template.stem(values, time: 0, isMarked: isMarked))
    guard let slash = path.lastIndex(of: "/") else { return output }
    return OutputFolder.path(String(path[..<slash]), in: output)
  }

  /// The name of the source's files in `folder`, without number and extension.
  var stem: String { (template.stem(values, time: 0, isMarked: isMarked) as NSString).lastPathComponent }

  /// The name of a file in `folder`.
  ///
  /// - Parameters:
  ///   - time: The time of the frame in seconds.
  ///   - number: The number of the frame, if the source may have several; nil for no number.
  func fileName(time: Double, number: Int?) -> String {
    let path = template.path(values, time: time, isMarked: isMarked, number: number)
    return path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }

  // MARK: - Private

  private func relative(_ path: String) -> String {
    fansOut ? "\(values.hash.prefix(2))/\(values.hash.dropFirst(2).prefix(2))/\(path)" : path
  }
}

/// Removes incomplete files of a killed run.
///
/// Only those of a source that is processed again are removed, because other processes may be writing others.
final class LeftoverFiles: Sendable {
  /// The temporary files of each folder that has been read.
  private let folders = Locked<[String: [String]]>([:])

  func remove(_ names: BatchNames) {
    guard !names.hasTime else { return }
    let folder = names.folder
    let known = folders.withLock { $0[folder] }
    let files = known ?? Self.temporaryFiles(in: folder)
    if known == nil { folders.withLock { $0[folder] = files } }
    guard !files.isEmpty else { return }
    let name = names.fileName(time: 0, number: nil)
    // With a number, the extension is the same: `NAME-000001.png`.
    let numbered = names.fileName(time: 0, number: 0)
    let ending = numbered.range(of: "-000000", options: .backwards).map { numbered[$0.upperBound...] } ?? ""
    let stem = name.dropLast(ending.count)
    for file in files {
      guard let mark = file.range(of: ".part-", options: .backwards) else { continue }
      let target = file[file.index(after: file.startIndex)..<mark.lowerBound]
      guard target.hasPrefix(stem), target.hasSuffix(ending), target.count >= stem.count + ending.count else {
        continue
      }
      let number = target.dropFirst(stem.count).dropLast(ending.count)
      let isNumber = number.count >= 7 && number.first == "-" && number.dropFirst().allSatisfy(\.isNumber)
      guard number.isEmpty || isNumber else { continue }
      unlink((folder as NSString).appendingPathComponent(file))
    }
  }

  // MARK: - Private

  private static func temporaryFiles(in folder: String) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.filter { $0.hasPrefix(".") && $0.contains(".part-") }
  }
}

extension FrameNames {
  /// Creates names from those of a list.
  ///
  /// - Parameter hasSeveral: True if the source may have several files: they are numbered, unless their times
  ///   are in their names.
  init(_ names: BatchNames, hasSeveral: Bool) {
    let isNumbered = hasSeveral && !names.hasTime
    let first = names.hasTime ? nil : names.fileName(time: 0, number: isNumbered ? 1 : nil)
    self.init(first: first, usesTime: names.hasTime) { number, time, isTaken in
      names.fileName(time: time, number: isNumbered || isTaken ? number : nil)
    }
  }
}
