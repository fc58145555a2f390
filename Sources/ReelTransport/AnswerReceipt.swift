import Synchronization
internal import ReelCore

/// What a connection has noted of one answer: handed from the connection to the transfer by a header field
/// that holds its number.
final class AnswerReceipt: Sendable {
  /// The header field, put over one that a server sends.
  static let field = "reel-receipt"

  /// When the connection was opened; nil where that is not known.
  let connectionOpenedAt: ContinuousClock.Instant?
  private let bytes = Atomic<Int>(0)

  private static let book = Locked<(next: UInt64, open: [UInt64: AnswerReceipt])>((0, [:]))
  /// A receipt is claimed as soon as the event loop of its transfer comes to it. One that is older than so
  /// many others belongs to a transfer that was cancelled.
  private static let bookLength: UInt64 = 4_096

  init(connectionOpenedAt: ContinuousClock.Instant?) {
    self.connectionOpenedAt = connectionOpenedAt
  }

  /// Body bytes before decompression, so far.
  var byteCount: Int { bytes.load(ordering: .relaxed) }

  func add(_ count: Int) {
    bytes.wrappingAdd(count, ordering: .relaxed)
  }

  /// Enters the receipt in the book, under the number that is returned, until it is claimed.
  func register() -> String {
    Self.book.withLock { book in
      book.next += 1
      if book.next % 1_024 == 0 {
        let oldest = book.next.subtractingReportingOverflow(Self.bookLength)
        if !oldest.overflow { book.open = book.open.filter { $0.key > oldest.partialValue } }
      }
      book.open[book.next] = self
      return String(book.next)
    }
  }

  /// Takes the receipt with this number out of the book.
  static func claim(_ number: String?) -> AnswerReceipt? {
    guard let number = number.flatMap({ UInt64($0) }) else { return nil }
    return book.withLock { $0.open.removeValue(forKey: number) }
  }
}
