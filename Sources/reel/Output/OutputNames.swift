import Foundation
import ReelPlayback

/// Names for the files of several sources: each source's own, made different where two are the same.
enum OutputNames {
  /// One stem for each source, in order.
  static func stems(of sources: [MediaSource]) -> [String] {
    var used: Set<String> = []
    return sources.map { source in
      let stem = sanitized(source.stem)
      var candidate = stem
      var number = 2
      while !used.insert(candidate).inserted {
        candidate = "\(stem)_\(number)"
        number += 1
      }
      return candidate
    }
  }

  /// A name that no file system minds.
  private static func sanitized(_ name: String) -> String {
    let kept = name.map { $0 == "/" || $0 == "\0" || $0.isNewline ? "_" : $0 }
    let text = String(kept.prefix(150))
    return text.isEmpty || text == "." || text == ".." ? "source" : text
  }
}
