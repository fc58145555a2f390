import Foundation
import ReelCore

/// The names of the files of one source in a list.
struct BatchNames: Sendable {
  let template: NameTemplate
  let values: NameTemplate.Values
  /// Whether the hash is added because another source has the same name without it.
  let isMarked: Bool
  /// The output folder.
  let output: String
  /// Whether two folders, from the first four digits of the hash, are put in front of the name.
  let fansOut: Bool

  /// Whether each frame has a name by its time.
  var hasTime: Bool { template.hasTime }

  /// The folder of the source's files.
  var folder: String {
    let path = relative(template.stem(values, time: 0, isMarked: isMarked))
    guard let slash = path.lastIndex(of: "/") else { return output }
    return output == "."
      ? String(path[..<slash]) : (output as NSString).appendingPathComponent(String(path[..<slash]))
  }

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

/// Removes the incomplete files that a killed run has left.
///
/// Only those of a source that is worked on again are removed, because other processes may be writing others.
final class LeftoverFiles: Sendable {
  /// The temporary files of each folder that has been looked at.
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
