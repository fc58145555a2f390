import Dispatch
import ReelCore

/// Reads a list on a thread of its own, because reading may block.
final class ListFeeder: Sendable {
  private let queue = DispatchQueue(label: "reel.list")
  /// Used on the queue only.
  private let reader: Locked<SourceListReader>

  init(_ reader: sending SourceListReader) { self.reader = Locked(reader, rank: .transfer) }

  /// Reads the next entries, and sends them as an event.
  func read(_ events: AsyncStream<Batch.Event>.Continuation) {
    queue.async { [self] in
      let result: Result<[SourceListParser.Entry]?, ReelError> = reader.withLock { reader in
        do throws(ReelError) { return .success(try reader.next()) } catch { return .failure(error) }
      }
      switch result {
      case .success(let entries?): events.yield(.entries(entries))
      case .success(nil): events.yield(.listEnded(nil))
      case .failure(let error): events.yield(.listEnded(error))
      }
    }
  }
}
