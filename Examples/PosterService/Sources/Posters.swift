import Foundation
import Logging
import Reel
import Synchronization

/// Makes posters, with limits for what strangers may ask for.
final class Posters: Sendable {
  /// A request may take this long.
  static let timeLimit = Duration.seconds(15)
  /// The longer side of an image.
  static let sideLimit = 640
  /// Posters that are made at once; further requests are refused.
  static let concurrencyLimit = 4

  private let transport = TransportFetcher()
  private let running = Mutex(0)

  /// Returns a frame as PNG.
  ///
  /// - Parameters:
  ///   - text: The URL of a media file, an HLS playlist or an MPD.
  ///   - seconds: The time of the frame.
  /// - Throws: `ReelError`.
  func image(of text: String, at seconds: Double) async throws -> [UInt8] {
    guard text.utf8.count <= 2048, let url = URL(string: text) else {
      throw ReelError(.usage, "url is not a URL of at most 2048 bytes")
    }
    try LimitedFetcher.check(url)
    guard seconds >= 0, seconds < 1e6 else { throw ReelError(.usage, "at takes seconds, as 2.5") }
    let isFree = running.withLock { count in
      guard count < Self.concurrencyLimit else { return false }
      count += 1
      return true
    }
    guard isFree else { throw ReelError(.cancelled, "busy: try again later") }
    defer { running.withLock { $0 -= 1 } }

    // Reads the cheapest rung that is large enough.
    let extractor = FrameExtractor(fetcher: LimitedFetcher(transport), logger: Logger(label: "posters"))
    let side = Self.sideLimit
    return try await withLimit {
      let image = try await extractor.image(
        at: .seconds(seconds), of: url, maximumSize: PixelSize(width: side, height: side))
      return Array(try image.png())
    }
  }

  // MARK: - Private

  /// Cancels `body` when the time is up.
  private func withLimit(_ body: @escaping @Sendable () async throws -> [UInt8]) async throws -> [UInt8] {
    try await withThrowingTaskGroup(of: [UInt8].self) { group in
      group.addTask { try await body() }
      group.addTask {
        try await Task.sleep(for: Self.timeLimit)
        throw ReelError(.timedOut, "no frame within \(Self.timeLimit)")
      }
      defer { group.cancelAll() }
      guard let image = try await group.next() else { throw CancellationError() }
      return image
    }
  }
}
