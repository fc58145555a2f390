import Foundation
import ReelCore

/// How busy this machine was for a time.
struct MachineLoad: Sendable, Hashable {
  /// The share of all processors' time that was used, by all processes; nil if the system does not report it.
  var cores: Double?
  /// The share of the rate of the busiest network interface; nil if none has a known rate.
  var link: Double?
  /// How late a timer fired in this process.
  var lateness = Duration.zero

  /// True if the machine may have had no room for what viewers wanted to do.
  var isFull: Bool { areCoresFull || isLinkFull }

  /// A process that gets no core wakes late, also where it may use only a part of the machine: a container.
  var areCoresFull: Bool { cores ?? 0 >= 0.95 || lateness >= .milliseconds(100) }
  var isLinkFull: Bool { link ?? 0 >= 0.9 }

  /// The higher values of both.
  func highest(_ other: MachineLoad) -> MachineLoad {
    func most(_ values: [Double?]) -> Double? { values.compactMap(\.self).max() }
    return MachineLoad(
      cores: most([cores, other.cores]), link: most([link, other.link]),
      lateness: max(lateness, other.lateness))
  }
}

/// How busy this machine was during a run.
struct MachineUse: Sendable {
  /// The mean, if it is known.
  private(set) var cores: Double?
  /// The highest value, if one is known.
  private(set) var link: Double?
  private(set) var lateness = Duration.zero
  private var seconds = 0
  private var fullCoreSeconds = 0
  private var fullLinkSeconds = 0

  /// The share of time above which the figures of a run are not those of its servers.
  static let allowedShare = 0.05

  /// Adds a second.
  mutating func add(_ load: MachineLoad) {
    seconds += 1
    if let busy = load.cores { cores = ((cores ?? 0) * Double(seconds - 1) + busy) / Double(seconds) }
    if let busy = load.link { link = max(link ?? 0, busy) }
    lateness = max(lateness, load.lateness)
    if load.areCoresFull { fullCoreSeconds += 1 }
    if load.isLinkFull { fullLinkSeconds += 1 }
  }

  /// The shares of time for which the cores and the link were full.
  var fullCores: Double { share(fullCoreSeconds) }
  var fullLink: Double { share(fullLinkSeconds) }

  /// Why the figures are not those of the servers, as a sentence without a full stop; nil if they are.
  var bottleneck: String? {
    let full = [("cores were", fullCores), ("link was", fullLink)].filter { $0.1 > Self.allowedShare }
    guard !full.isEmpty else { return nil }
    let words = full.map { "\($0) full for \(($1 * 100).formatted(places: 0)) % of the time" }
    return "this machine was a bottleneck: its \(words.joined(separator: ", its ")); "
      + "the figures are not those of the server"
  }

  private func share(_ count: Int) -> Double { seconds > 0 ? Double(count) / Double(seconds) : 0 }
}

/// Measures how busy this machine is, from one call to the next.
struct MachineMeter {
  private var processors = ProcessorUse()
  private var interfaces = NetworkInterface.all()
  private var time = SystemMonotonicClock().now

  /// Returns the load since the last call, or since the beginning.
  mutating func load(lateness: Duration) -> MachineLoad {
    var load = MachineLoad(lateness: lateness)
    let (processors, interfaces, now) = (ProcessorUse(), NetworkInterface.all(), SystemMonotonicClock().now)
    if let before = self.processors, let processors { load.cores = before.share(until: processors) }
    let seconds = (now - time) / .seconds(1)
    load.link = interfaces.compactMap { interface in
      self.interfaces.first { $0.name == interface.name }.map { interface.share(since: $0, seconds) }
    }.max()
    (self.processors, self.interfaces, time) = (processors, interfaces, now)
    return load
  }
}

/// A network interface of this machine whose rate is known. A loopback interface has none.
private struct NetworkInterface {
  let name: String
  let bitsPerSecond: Double
  let received: Double
  let sent: Double

  /// Empty on systems without `/proc/net/dev`.
  static func all() -> [NetworkInterface] {
    let text = (try? String(contentsOfFile: "/proc/net/dev", encoding: .utf8)) ?? ""
    return text.split(separator: "\n").compactMap { line in
      // `eth0: bytes packets errs drop fifo frame compressed multicast bytes …`: received, then sent.
      let sides = line.split(separator: ":", maxSplits: 1)
      guard sides.count == 2 else { return nil }
      let name = sides[0].trimmed
      let numbers = sides[1].split(separator: " ").map { Double($0) ?? 0 }
      // In Mbit/s; -1 if there is no carrier.
      let speed = (try? String(contentsOfFile: "/sys/class/net/\(name)/speed", encoding: .utf8))
        .flatMap { Double($0.trimmed) }
      guard numbers.count > 8, let speed, speed > 0 else { return nil }
      return NetworkInterface(
        name: name, bitsPerSecond: speed * 1e6, received: numbers[0], sent: numbers[8])
    }
  }

  /// Returns the share of its rate, of the busier direction, from 0 to 1.
  func share(since before: NetworkInterface, _ seconds: Double) -> Double {
    let bytes = max(received - before.received, sent - before.sent)
    return seconds > 0 ? min(max(bytes * 8 / seconds / bitsPerSecond, 0), 1) : 0
  }
}
