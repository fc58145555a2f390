import ReelCore

/// One of several parts of a list. Which part a source belongs to depends only on its URL, or on its host.
struct Shard: Sendable, Equatable {
  enum Key: String, Sendable, CaseIterable {
    /// Each URL is assigned by itself.
    case url
    /// All sources of a host belong to the same shard.
    case host
  }

  /// From 0 to `count` - 1.
  let index: Int
  let count: Int
  let key: Key

  /// The variables that `auto` reads: of Kubernetes Indexed Jobs, Slurm job arrays and AWS Batch array jobs.
  static let variables = ["JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "AWS_BATCH_JOB_ARRAY_INDEX"]

  /// Parses `I/N` or `auto/N`. Throws `ReelError.usage`.
  init(parsing text: String, key: Key, environment: [String: String]) throws(ReelError) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let count = Self.number(parts[1]), count >= 1 else {
      throw ReelError(.usage, "'\(text)' is not a shard: write I/N with I from 0 to N - 1, or auto/N")
    }
    let index: Int
    var origin = ""
    if parts[0] == "auto" {
      (index, origin) = try Self.environmentIndex(environment)
    } else if let number = Self.number(parts[0]) {
      index = number
    } else {
      throw ReelError(.usage, "'\(text)' is not a shard: write I/N with I from 0 to N - 1, or auto/N")
    }
    guard index < count else {
      throw ReelError(
        .usage, "the shard \(index)\(origin) is out of range: of \(count) shards, the last is \(count - 1)")
    }
    self.index = index
    self.count = count
    self.key = key
  }

  /// Whether a source belongs to this shard: the first 8 bytes of the hash, big-endian, modulo `count`.
  ///
  /// - Parameter host: Of the URL, in lower case; empty for a file, which is always assigned by its URL.
  func contains(_ hash: SourceHash, host: String) -> Bool {
    let value = key == .host && !host.isEmpty ? SourceHash(host).high : hash.high
    return value % UInt64(count) == UInt64(index)
  }

  // MARK: - Private

  private static func environmentIndex(
    _ environment: [String: String]
  ) throws(ReelError) -> (index: Int, origin: String) {
    let found = variables.compactMap { name in environment[name].map { (name, $0) } }.filter { !$0.1.isEmpty }
    guard let (name, value) = found.first else {
      throw ReelError(.usage, "auto needs one of the variables \(variables.joined(separator: ", "))")
    }
    if let other = found.first(where: { $0.1 != value }) {
      throw ReelError(.usage, "\(name) is \(value) and \(other.0) is \(other.1): write I/N instead of auto/N")
    }
    guard let index = number(value[...]) else {
      throw ReelError(.usage, "\(name) is '\(value)', not a number of 0 or more")
    }
    return (index, " (\(name))")
  }

  /// A number that is written with digits alone.
  private static func number(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text),
      number <= 1_000_000_000
    else { return nil }
    return number
  }
}
