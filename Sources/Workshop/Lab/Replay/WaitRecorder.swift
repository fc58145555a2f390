internal import ReelCore
internal import ReelPlayback
internal import ReelPool

/// Divides the wait for a first frame into parts by cause.
///
/// It follows the requests of all items, and keeps those of the awaited item until its first frame is decoded.
final class WaitRecorder: Sendable {
  private struct Request {
    let number: Int
    let item: FeedItem.ID
    let purpose: FetchPurpose
    let began: Duration
    var answeredAt: Duration?
    var endedAt: Duration?

    func isOpen(at time: Duration) -> Bool { began <= time && (endedAt.map { time < $0 } ?? true) }
  }

  private struct State {
    var awaited: FeedItem.ID?
    var settledAt = Duration.zero
    var firstFrameAt: Duration?
    var requests: [Request] = []
  }

  private let state = Locked(State())

  func record(_ event: WalkEvent) {
    switch event.kind {
    case .request:
      guard let item = event.item, let number = event.request, let purpose = event.purpose else { return }
      let request = Request(number: number, item: item, purpose: purpose, began: event.time)
      state.withLock { $0.requests.append(request) }
    case .response:
      if event.detail != nil { return end(event) }
      state.withLock { state in
        guard let index = state.requests.firstIndex(where: { $0.number == event.request }) else { return }
        state.requests[index].answeredAt = event.time
      }
    case .received: end(event)
    case .reached where event.stage == .firstFrame:
      state.withLock { state in
        if state.awaited == event.item, state.firstFrameAt == nil { state.firstFrameAt = event.time }
      }
    default: break
    }
  }

  /// Begins the wait for an item.
  ///
  /// - Parameter time: The time of the settle since the walk began.
  func settle(on item: FeedItem.ID, at time: Duration) {
    state.withLock { state in
      state.awaited = item
      state.settledAt = time
      state.firstFrameAt = nil
      state.requests.removeAll { $0.endedAt != nil }
    }
  }

  /// Returns the parts of a wait for the item that was settled on last, in the order in which they began. To
  /// the microsecond, they add up to `wait`.
  ///
  /// At each moment the item waits for its earliest open request: first those for the source, then manifests, keys,
  /// initialization segments and segments. `segment answer` is the time until the answer begins, `segment transfer` the
  /// time after that. `decode` is the time in the decoder before the first frame, `show` the time from there to the
  /// surface, and `preparing` the rest: waiting for more important slots, parsing, demuxing.
  ///
  /// - Parameter decode: The time that decoding the first frame took.
  func parts(of wait: Duration, decode: Duration) -> [StageTime] {
    let (settledAt, firstFrameAt, requests) = state.withLock { state in
      (state.settledAt, state.firstFrameAt, state.requests.filter { $0.item == state.awaited })
    }
    let end = settledAt + wait
    let decoded = min(firstFrameAt ?? end, end)
    let decodes = max(settledAt, decoded - decode)
    var bounds = [settledAt, decodes, decoded, end]
    for request in requests {
      bounds += [request.began, request.answeredAt, request.endedAt].compactMap { $0 }
    }
    bounds = bounds.filter { $0 >= settledAt && $0 <= end }.sorted()
    let ordered = requests.sorted {
      ($0.purpose.order, $0.number) < ($1.purpose.order, $1.number)
    }
    var parts: [StageTime] = []
    for (start, stop) in zip(bounds, bounds.dropFirst()) {
      // Differences of rounded times add up without a remainder.
      let length = (stop - settledAt).wholeMicroseconds - (start - settledAt).wholeMicroseconds
      guard length > 0 else { continue }
      let name: String
      if start >= decoded {
        name = "show"
      } else if start >= decodes {
        name = "decode"
      } else if let request = ordered.first(where: { $0.isOpen(at: start) }) {
        let isAnswered = request.answeredAt.map { $0 <= start } ?? false
        name = "\(request.purpose.rawValue) \(isAnswered ? "transfer" : "answer")"
      } else {
        name = "preparing"
      }
      if let index = parts.firstIndex(where: { $0.stage == name }) {
        parts[index] = StageTime(stage: name, duration: parts[index].duration + .microseconds(length))
      } else {
        parts.append(StageTime(stage: name, duration: .microseconds(length)))
      }
    }
    return parts
  }

  // MARK: - Private

  private func end(_ event: WalkEvent) {
    state.withLock { state in
      guard let index = state.requests.firstIndex(where: { $0.number == event.request }) else { return }
      let request = state.requests[index]
      if request.item == state.awaited, state.firstFrameAt.map({ request.began < $0 }) ?? true {
        state.requests[index].endedAt = event.time
      } else {
        state.requests.remove(at: index)
      }
    }
  }
}
