public import Foundation
public import ReelCore

/// Folders, without opening a cache: for tools and settings.
extension MediaCache {
  /// Returns what is in the folder of a cache. Other processes may have it open.
  ///
  /// - Throws: `ReelError` of kind `noSuchFile`, or `usage` if the folder isn't a cache.
  public static func contents(of folder: URL) throws(ReelError) -> CacheContents {
    try CacheFolder.contents(of: folder)
  }

  /// Removes everything from the folder of a cache. Processes that have it open go on with an empty one.
  ///
  /// - Throws: The same errors as ``contents(of:)``.
  public static func removeAll(in folder: URL) throws(ReelError) { try CacheFolder.removeAll(in: folder) }

  /// Removes the resources that no process has used for a time.
  ///
  /// - Returns: How many, and the bytes that they took on disk.
  /// - Throws: The same errors as ``contents(of:)``.
  @discardableResult
  public static func remove(
    in folder: URL, unusedFor age: Duration
  ) throws(ReelError) -> (entryCount: Int, byteCount: Int64) {
    try CacheFolder.remove(in: folder, unusedFor: age)
  }
}
