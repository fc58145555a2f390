import DequeModule

/// Decides which source is begun next, within the limits of each host.
///
/// A pure value: time is passed in, measured from the start of the run. Sources of local files have the empty host, to
/// which no limit applies.
struct HostLimiter<Item: Sendable>: Sendable {
  struct Limits: Sendable {
    /// The maximum number of sources of a host that are open at once; nil for no limit.
    var perHost: Int?
    /// The minimum time between the starts of two sources of a host; nil for no limit.
    var interval: Duration?
    /// After this many consecutive temporary failures, the sources of a host are postponed; after as many
    /// again, they are not tried any more.
    var failureLimit = 3
    /// The longest requested pause. A host that asks for more is not tried any more.
    var longestHold = Duration.seconds(600)
  }

  enum Step {
    /// Begin this source now.
    case start(Item, Ticket)
    /// Report this source as failed without trying it: its host has been given up.
    case giveUp(Item, host: String)
    /// Nothing can be begun before this time.
    case wait(until: Duration)
    /// Nothing can be begun before a source ends or more are added.
    case none
  }

  enum Outcome: Sendable {
    /// The host answered, whether or not the source was valid.
    case answered
    case failedTemporarily
  }

  /// Identifies a source that was begun.
  struct Ticket: Sendable {
    let host: String
    /// The delay of the source's start because of its host's limits.
    let held: Duration
    /// The epoch of its host. Failures of sources begun before the host was postponed are ignored.
    fileprivate let epoch: Int
  }

  private struct Host {
    var waiting: Deque<Item> = []
    var running = 0
    var notBefore = Duration.zero
    /// The time since which its limits delay its next source; nil if they don't.
    var heldSince: Duration?
    var failures = 0
    var epoch = 0
    var state = HostState.normal
  }

  private enum HostState {
    case normal
    case postponed
    case givenUp
  }

  private let limits: Limits
  // Changed in place: a copy of a host would copy its deque with the next change.
  private var hosts: [String: Host] = [:]
  /// The hosts with waiting sources, by state, in the order of their turns.
  private var normal: Deque<String> = []
  private var postponed: Deque<String> = []
  private var givenUp: Deque<String> = []
  /// The number of hosts beyond which hosts without any state are removed.
  private var hostLimit = 1024

  /// The number of waiting sources.
  private(set) var waitingCount = 0

  init(limits: Limits) { self.limits = limits }

  mutating func add(_ item: Item, host: String) {
    let wasEmpty = hosts[host]?.waiting.isEmpty ?? true
    hosts[host, default: Host()].waiting.append(item)
    waitingCount += 1
    if wasEmpty { enqueue(host) }
  }

  /// Returns the next step. Call it when a source could begin.
  ///
  /// - Parameter isDrained: True if no other sources can be added before some are begun, so that it is the
  ///   turn of the postponed ones.
  mutating func next(at now: Duration, isDrained: Bool) -> Step {
    if hosts.count > hostLimit { forgetHosts(at: now) }
    if let host = givenUp.first, let item = take(from: host, \.givenUp) { return .giveUp(item, host: host) }
    var earliest: Duration?
    if let step = start(\.normal, at: now, atOnce: limits.perHost, &earliest) { return step }
    if isDrained, normal.isEmpty, let step = start(\.postponed, at: now, atOnce: 1, &earliest) { return step }
    return earliest.map { .wait(until: $0) } ?? .none
  }

  /// Begins no source of a host for this time; gives up the host if that is too long.
  mutating func hold(_ host: String, for delay: Duration, at now: Duration) {
    hosts[host, default: Host()].notBefore = max(hosts[host]?.notBefore ?? .zero, now + delay)
    if delay > limits.longestHold { setState(.givenUp, of: host) }
  }

  /// Returns true if a host may be tried again in this run, but not yet.
  func isHeld(_ host: String, at now: Duration) -> Bool { heldUntil(host, at: now) != nil }

  /// Returns the time before which no source of a host is begun, if it is tried again in this run; nil for
  /// none.
  func heldUntil(_ host: String, at now: Duration) -> Duration? {
    guard let entry = hosts[host], entry.notBefore > now, entry.state != .givenUp else { return nil }
    return entry.notBefore
  }

  mutating func finished(_ ticket: Ticket, _ outcome: Outcome) {
    let host = ticket.host
    hosts[host]?.running -= 1
    switch outcome {
    case .answered:
      hosts[host]?.failures = 0
      if hosts[host]?.state == .postponed { setState(.normal, of: host) }
    case .failedTemporarily:
      guard !host.isEmpty, let entry = hosts[host], ticket.epoch == entry.epoch else { return }
      guard entry.failures + 1 >= limits.failureLimit else {
        hosts[host]?.failures += 1
        return
      }
      hosts[host]?.failures = 0
      hosts[host]?.epoch += 1
      setState(entry.state == .normal ? .postponed : .givenUp, of: host)
    }
  }

  // MARK: - Private

  private mutating func enqueue(_ host: String) {
    switch hosts[host]?.state {
    case .normal: normal.append(host)
    case .postponed: postponed.append(host)
    case .givenUp: givenUp.append(host)
    case nil: break
    }
  }

  private mutating func setState(_ state: HostState, of host: String) {
    guard hosts[host]?.state != state else { return }
    hosts[host]?.state = state
    guard hosts[host]?.waiting.isEmpty == false else { return }
    normal.removeAll { $0 == host }
    postponed.removeAll { $0 == host }
    enqueue(host)
  }

  private mutating func forgetHosts(at now: Duration) {
    hosts = hosts.filter { _, host in
      !host.waiting.isEmpty || host.running > 0 || host.failures > 0 || host.state != .normal
        || host.notBefore > now
    }
    hostLimit = max(1024, hosts.count * 2)
  }

  /// Takes a source of the host at the front of a queue; the host's next turn comes after the others'.
  private mutating func take(
    from host: String, _ queue: WritableKeyPath<Self, Deque<String>>
  ) -> Item? {
    self[keyPath: queue].removeFirst()
    guard let item = hosts[host]?.waiting.popFirst() else { return nil }
    waitingCount -= 1
    if hosts[host]?.waiting.isEmpty == false { self[keyPath: queue].append(host) }
    return item
  }

  private mutating func start(
    _ queue: WritableKeyPath<Self, Deque<String>>, at now: Duration, atOnce limit: Int?,
    _ earliest: inout Duration?
  ) -> Step? {
    for _ in 0..<self[keyPath: queue].count {
      guard let host = self[keyPath: queue].first, let running = hosts[host]?.running,
        let notBefore = hosts[host]?.notBefore, let epoch = hosts[host]?.epoch
      else { return nil }
      // Local files have no limits.
      let isFull = !host.isEmpty && limit.map { running >= $0 } ?? false
      if !isFull, notBefore <= now || host.isEmpty {
        guard let item = take(from: host, queue) else { return nil }
        let held = hosts[host]?.heldSince.map { now - $0 } ?? .zero
        hosts[host]?.heldSince = nil
        hosts[host]?.running += 1
        if let interval = limits.interval { hosts[host]?.notBefore = max(notBefore, now) + interval }
        return .start(item, Ticket(host: host, held: held, epoch: epoch))
      }
      if hosts[host]?.heldSince == nil { hosts[host]?.heldSince = now }
      if !isFull { earliest = min(earliest ?? notBefore, notBefore) }
      self[keyPath: queue].append(self[keyPath: queue].removeFirst())
    }
    return nil
  }
}
