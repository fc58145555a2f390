import Foundation
import ReelCore
import ReelFiles
import ReelSources

/// The names of the files of one source.
struct FrameNames: Sendable {
  /// The name of the first file; nil if it is known only with the frame.
  let first: String?
  /// Whether names are made from times.
  let usesTime: Bool
  /// Returns a name for the number of the frame, counted from 1, and its time in seconds. `isTaken` is true
  /// if an earlier frame has the name without a number.
  let name: @Sendable (_ number: Int, _ time: Double, _ isTaken: Bool) -> String
  /// The names so far, if they are made from times.
  private(set) var taken: Set<String> = []

  /// Returns the name of the next frame's file.
  mutating func next(number: Int, time: MediaTime) -> String {
    let plain = name(number, time.seconds, false)
    guard usesTime else { return plain }
    return taken.insert(plain).inserted ? plain : name(number, time.seconds, true)
  }
}

extension FrameNames {
  /// `STEM-000001.png`, or `STEM.y4m`.
  init(stem: String, format: StillFileFormat) {
    let name: @Sendable (Int) -> String = { number in
      format.still?.fileName(stem: stem, number: number) ?? "\(stem).\(format.fileExtension)"
    }
    self.init(first: name(1), usesTime: false) { number, _, _ in name(number) }
  }

  /// One file with this name.
  init(_ name: String) { self.init(first: name, usesTime: false) { _, _, _ in name } }
}

/// Names for the files of several sources, made distinct if two are equal.
enum OutputNames {
  /// Returns one stem for each source, in order. Stems differ by more than letter case or Unicode
  /// normalization, because some file systems treat such names as the same.
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

  /// The maximum length of a stem in bytes. With a number, an extension and the parts of a temporary name, it
  /// stays within the 255 bytes that file systems allow.
  private static let longestStem = 200

  /// Replaces characters that some file systems reject.
  private static func sanitized(_ name: String) -> String {
    var text = ""
    for character in name.prefix(150) {
      let kept = character == "/" || character.unicodeScalars.contains(where: \.isControl) ? "_" : character
      guard text.utf8.count + kept.utf8.count <= longestStem else { break }
      text.append(kept)
    }
    return text.isEmpty || text == "." || text == ".." ? "source" : text
  }
}
