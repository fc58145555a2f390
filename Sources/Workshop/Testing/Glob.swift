/// Patterns with `*` for any characters, including slashes, and `?` for one.
enum Glob {
  /// Takes time at most proportional to the product of the lengths.
  static func matches(_ pattern: some StringProtocol, _ text: some StringProtocol) -> Bool {
    let pattern = Array(pattern)
    let text = Array(text)
    var (p, t) = (0, 0)
    /// The position of the last star, and how much of the text it has matched so far.
    var retry: (p: Int, t: Int)?
    while t < text.count {
      if p < pattern.count, pattern[p] == "*" {
        retry = (p, t)
        p += 1
      } else if p < pattern.count, pattern[p] == "?" || pattern[p] == text[t] {
        p += 1
        t += 1
      } else if let last = retry {
        retry = (last.p, last.t + 1)
        p = last.p + 1
        t = last.t + 1
      } else {
        return false
      }
    }
    return pattern[p...].allSatisfy { $0 == "*" }
  }
}
