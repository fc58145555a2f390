internal import ReelFFmpeg
internal import Synchronization

/// The memory that the loading of one item holds outside of its buffers: bytes on their way, and its manifest.
package final class LoadingMemory: Sendable {
  private let account: MemoryAccount?
  private let inFlight = Atomic(0)
  private let manifest = Atomic(0)

  init(account: MemoryAccount?) { self.account = account }

  /// The number of bytes that have arrived and have not been taken by a demuxer yet.
  var inFlightByteCount: Int { inFlight.load(ordering: .relaxed) }

  /// The memory that manifests occupy; 0 if the allocator does not report it.
  var manifestByteCount: Int { manifest.load(ordering: .relaxed) }

  func addInFlight(_ byteCount: Int) { inFlight.add(byteCount, ordering: .relaxed) }

  /// Runs `body`, whose result stays in memory.
  func readingManifest<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result
  {
    guard let account else { return try body() }
    let before = account.heapByteCount
    let result = try account.perform(body)
    if let before, let after = account.heapByteCount {
      manifest.add(max(0, after - before), ordering: .relaxed)
    }
    return result
  }
}
