import Foundation
import ReelCore
import ReelPlayback

/// Names for the files of several sources, made distinct if two are equal.
enum OutputNames {
  /// One stem for each source, in order. Stems differ by more than letter case or Unicode normalization, because some
  /// file systems treat such names as the same.
  static func stems(of sources: [MediaSource]) -> [String] {
    var used: Set<String> = []
    return sources.map { source in
      let stem = sanitized(source.stem)
      var candidate = stem
      var number = 2
      while !used.insert(candidate.decomposedStringWithCanonicalMapping.lowercased()).inserted {
        candidate = "\(stem)_\(number)"
        number += 1
      }
      return candidate
    }
  }

  /// The longest stem in bytes. With a number, an extension and the parts of a temporary name, it stays within the
  /// 255 bytes that file systems allow.
  private static let longestStem = 200

  /// Replaces characters that some file systems reject.
  private static func sanitized(_ name: String) -> String {
    var text = ""
    for character in name.prefix(150) {
      let kept = character == "/" || character == "\0" || character.isNewline ? "_" : character
      guard text.utf8.count + kept.utf8.count <= longestStem else { break }
      text.append(kept)
    }
    return text.isEmpty || text == "." || text == ".." ? "source" : text
  }
}

extension ExistingFiles {
  /// - Parameter source: A local file is never replaced by what is made of it.
  init(areReplaced: Bool, of source: MediaSource) {
    var path: String?
    if case .url(let url) = source, url.isFileURL { path = url.path }
    self.init(areReplaced: areReplaced, source: path)
  }
}
