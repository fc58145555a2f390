import ArgumentParser
import Foundation

/// The combined meaning of `-o` and `--format`: the place and the format of frames.
struct StillOutput {
  /// The folder, or `-` for standard output.
  let directory: String
  /// The name of the only file; nil if files are named after their sources.
  let fileName: String?
  let format: StillFileFormat

  /// - Parameter output: A name with the extension of an image is that of a file, unless there is such a
  ///   folder.
  ///
  /// Throws `ValidationError` if `format` is not the one of that ending, and for the name of a file in a format that
  /// can't be written.
  init(_ output: String, format: StillFileFormat?, default: StillFileFormat) throws {
    let name = output.hasSuffix("/") ? "" : (output as NSString).lastPathComponent
    var isFolder: ObjCBool = false
    guard let ending = StillFileFormat(fileName: name),
      !FileManager.default.fileExists(atPath: output, isDirectory: &isFolder) || !isFolder.boolValue
    else {
      guard !OutputFolder.isNamedLikeFile(output) else {
        let endings = StillFileFormat.allCases.map { ".\($0.fileExtension)" }
        throw ValidationError(
          "-o \(output): the name of a file ends in \(endings.joined(separator: ", ")); for a folder, write \(output)/"
        )
      }
      (directory, fileName, self.format) = (output, nil, format ?? `default`)
      return
    }
    if let format, format != ending {
      throw ValidationError("\(name) would be a file of format \(ending.rawValue), not \(format.rawValue)")
    }
    let folder = (output as NSString).deletingLastPathComponent
    (directory, fileName, self.format) = (folder.isEmpty ? "." : folder, name, ending)
  }

  /// Throws `ValidationError` if a single file is named for more than one source, or for more frames than it
  /// can contain.
  func validate(isList: Bool, sourceCount: Int, hasSeveralFrames: Bool) throws {
    guard let fileName else { return }
    if isList || sourceCount > 1 {
      throw ValidationError("\(fileName) is one file: name a folder for several sources")
    }
    if hasSeveralFrames, format != .y4m {
      throw ValidationError("\(fileName) holds one frame: name a folder for several")
    }
  }
}
