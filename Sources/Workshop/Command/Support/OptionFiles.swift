import ReelCore
import ReelPool

/// The contents of files that options name. Options are read more than once, and a pipe can't be.
enum OptionFiles {
  private static let known = Locked<[String: [UInt8]]>([:])

  /// The bytes of a file. Throws as `LocalText.bytes(path:limit:)`.
  static func bytes(of path: String, limit: Int) throws(ReelError) -> [UInt8] {
    if let bytes = known.withLock({ $0[path] }) { return bytes }
    let bytes = try LocalText.bytes(path: path, limit: limit)
    known.withLock { $0[path] = bytes }
    return bytes
  }
}
