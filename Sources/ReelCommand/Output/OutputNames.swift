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

extension OutputFile.Owner {
  /// A source that can't be opened writes nothing, so its identity does not matter.
  init(record: OutputRecord, of source: Result<MediaSource, ReelError>) {
    self.init(record: record, source: OutputRecord.Source(of: (try? source.get()) ?? .standardInput))
  }
}

extension OutputRecord.Source {
  /// A file is identified by its real path, without symbolic links, and a URL by everything but its fragment.
  /// Standard input is always the same source.
  init(of source: MediaSource) {
    switch source {
    case .url(let url) where url.isFileURL:
      let path = url.resolvingSymlinksInPath().path
      self.init("file " + path, file: path)
    case .url(let url):
      var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
      parts?.fragment = nil
      self.init(parts?.string ?? url.absoluteString)
    case .standardInput: self.init("-")
    }
  }
}
