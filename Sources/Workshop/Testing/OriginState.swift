import Foundation
import ReelCore

/// The state of an origin that is visible outside of its event loop.
final class OriginState: Sendable {
  private struct Waiter {
    var condition: @Sendable (Origin.Snapshot) -> Bool
    var continuation: CheckedContinuation<Origin.Snapshot, Never>
  }

  private struct State {
    var snapshot = Origin.Snapshot()
    var routes: [String: Origin.Response]
    /// How often each route was set.
    var routeVersions: [String: Int] = [:]
    var faults: [FaultRule]
    var waiters: [UInt64: Waiter] = [:]
    var waiterCount: UInt64 = 0
  }

  let configuration: Origin.Configuration
  private let startedAt = ContinuousClock.now
  private let state: Locked<State>

  init(_ configuration: Origin.Configuration) {
    self.configuration = configuration
    state = Locked(
      State(routes: configuration.routes, faults: configuration.faults), rank: .transfer)
  }

  var snapshot: Origin.Snapshot { state.withLock { $0.snapshot } }

  func setRoute(_ path: String, _ response: Origin.Response?) {
    state.withLock { state in
      state.routes[path] = response
      state.routeVersions[path, default: 0] += 1
    }
  }

  func setFaults(_ faults: [FaultRule]) {
    state.withLock { $0.faults = faults }
  }

  /// Records a connection, and returns its number.
  func connectionOpened() -> Int {
    let now = ContinuousClock.now - startedAt
    return change { snapshot in
      snapshot.connectionArrivals.append(now)
      snapshot.openConnectionCount += 1
      return snapshot.acceptedConnectionCount
    }
  }

  func connectionClosed() {
    change { $0.openConnectionCount -= 1 }
  }

  /// Records a request, and returns its index in the log.
  func requestCame(_ record: RequestRecord) -> Int {
    var record = record
    record.arrival = .now - startedAt
    return change { [record] snapshot in
      snapshot.requests.append(record)
      return snapshot.requests.count - 1
    }
  }

  func bytesSent(_ count: Int, headByteCount: Int, isLast: Bool, for index: Int) {
    let now = ContinuousClock.now - startedAt
    change { snapshot in
      snapshot.requests[index].bytesSent += Int64(count)
      snapshot.requests[index].bodyBytesSent += Int64(count - headByteCount)
      if snapshot.requests[index].firstByteSent == nil { snapshot.requests[index].firstByteSent = now }
      if isLast { snapshot.requests[index].lastByteSent = now }
    }
  }

  /// Takes the first unused fault for this path.
  func takeFault(for path: String) -> Fault? {
    state.withLock { state in
      guard
        let index = state.faults.firstIndex(where: { $0.count != 0 && $0.matches(path: path) })
      else { return nil }
      if let count = state.faults[index].count { state.faults[index].count = count - 1 }
      return state.faults[index].fault
    }
  }

  /// The resource at a decoded path.
  func resource(at path: String) -> Resource? {
    let (route, version) = state.withLock { ($0.routes[path], $0.routeVersions[path] ?? 0) }
    if let route {
      return Resource(
        bytes: route.bytes, contentType: route.contentType ?? MediaType.type(forPath: path),
        version: version, headers: route.headers, status: route.status)
    }
    for source in configuration.resources {
      guard let response = source.response(at: path) else { continue }
      // Other bytes of the same size at the same path must get another tag.
      var hasher = Hasher()
      response.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
      return Resource(
        bytes: response.bytes, contentType: response.contentType ?? MediaType.type(forPath: path),
        version: Int(hasher.finalize().magnitude >> 1), headers: response.headers, status: response.status)
    }
    return configuration.directory.flatMap { Resource(path: path, below: $0) }
  }

  /// Waits until `condition` holds, or until the task is cancelled.
  func wait(until condition: @escaping @Sendable (Origin.Snapshot) -> Bool) async -> Origin.Snapshot {
    let number = state.withLock { state in
      state.waiterCount += 1
      return state.waiterCount
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let met: Origin.Snapshot? = state.withLock { state in
          if Task.isCancelled || condition(state.snapshot) { return state.snapshot }
          state.waiters[number] = Waiter(condition: condition, continuation: continuation)
          return nil
        }
        if let met { continuation.resume(returning: met) }
      }
    } onCancel: {
      let (waiter, snapshot) = state.withLock { ($0.waiters.removeValue(forKey: number), $0.snapshot) }
      waiter?.continuation.resume(returning: snapshot)
    }
  }

  // MARK: - Private

  @discardableResult
  private func change<Result: Sendable>(_ body: @Sendable (inout Origin.Snapshot) -> Result) -> Result {
    let (result, released, snapshot) = state.withLock { state in
      let result = body(&state.snapshot)
      guard !state.waiters.isEmpty else { return (result, [Waiter](), Origin.Snapshot()) }
      let met = state.waiters.filter { $0.value.condition(state.snapshot) }
      for number in met.keys { state.waiters[number] = nil }
      return (result, Array(met.values), state.snapshot)
    }
    for waiter in released { waiter.continuation.resume(returning: snapshot) }
    return result
  }
}
