internal import Foundation
internal import ReelCore
internal import ReelPool

/// Writes every event of a walk as JSON Lines.
///
/// Each line has `event` and `time_ms` (since the walk began). Depending on the event, it also has `item` (the
/// identity), `slot`, `detail`, `count`, `seconds` (the frame's time on the item's timeline), `request` (its number,
/// from 1), `url`, `purpose` and `bytes`.
public final class WalkTrace: Sendable {
  enum Event: String {
    case swipe, settled, assigned, reached, evicted, departed, attached, detached, poster, shown, decoded,
      stalled
    case resumed, ended, failed, request, response, received
  }

  private struct Line: Encodable {
    var event: String
    var timeMs: Double
    var item: String?
    var slot: Int?
    var detail: String?
    var count: Int?
    var seconds: Double?
    var request: Int?
    var url: String?
    var purpose: String?
    var bytes: Int64?
  }

  private let began = Locked(Duration.zero)
  private let requestCount = Locked(0)
  private let write: @Sendable (String) -> Void

  /// A trace that passes each line to `write`.
  ///
  /// - Parameter write: Called with each line, without a line end, on any thread.
  public init(write: @escaping @Sendable (String) -> Void) { self.write = write }

  func begin(at now: Duration) { began.withLock { $0 = now } }

  func note(
    _ event: Event, _ id: FeedItem.ID, at now: Duration?, slot: Int? = nil, detail: String? = nil,
    count: Int? = nil, seconds: Double? = nil
  ) {
    guard let now else { return }
    put(
      Line(
        event: event.rawValue, timeMs: time(now), item: id.description, slot: slot, detail: detail,
        count: count, seconds: seconds))
  }

  /// A number that distinguishes the lines of a request from those of others to the same URL.
  func makeRequestNumber() -> Int {
    requestCount.withLock { count in
      count += 1
      return count
    }
  }

  func note(
    _ event: Event, _ request: FetchRequest, number: Int, at now: Duration, bytes: Int64?, detail: String?
  ) {
    // The contents of a data: URL may be a key.
    let url = request.url.scheme?.lowercased() == "data" ? "data:" : request.url.absoluteString
    put(
      Line(
        event: event.rawValue, timeMs: time(now), detail: detail, request: number, url: url,
        purpose: request.purpose.rawValue, bytes: bytes))
  }

  // MARK: - Private

  /// To the microsecond.
  private func time(_ now: Duration) -> Double {
    ((now - began.withLock { $0 }) / .microseconds(1)).rounded() / 1000
  }

  private func put(_ line: Line) {
    if let text = try? JSONLine.string(line, of: "event") { write(text) }
  }
}
