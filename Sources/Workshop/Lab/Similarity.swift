/// Compares words with those that a user may have meant.
package enum Similarity {
  /// Returns the most similar known word; nil if none is similar. At most a third of the letters may differ.
  package static func suggestion(for word: String, among known: [String]) -> String? {
    let best = known.map { (word: $0, distance: distance(word.lowercased(), $0.lowercased())) }
      .min { $0.distance < $1.distance }
    guard let best, isSimilar(word, best.word) else { return nil }
    return best.word
  }

  /// Returns true if at most a third of the letters differ.
  package static func isSimilar(_ word: String, _ other: String) -> Bool {
    distance(word.lowercased(), other.lowercased()) * 3 <= max(word.count, 3)
  }

  // MARK: - Private

  /// Returns the number of letters to insert, delete or replace, or pairs to swap (optimal string alignment).
  private static func distance(_ first: String, _ second: String) -> Int {
    let (left, right) = (Array(first), Array(second))
    var before = [Int](repeating: 0, count: right.count + 1)
    var row = Array(0...right.count)
    for i in left.indices {
      var next = [i + 1]
      for j in right.indices {
        var cost = min(row[j + 1] + 1, next[j] + 1, row[j] + (left[i] == right[j] ? 0 : 1))
        if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
          cost = min(cost, before[j - 1] + 1)
        }
        next.append(cost)
      }
      (before, row) = (row, next)
    }
    return row[right.count]
  }
}
