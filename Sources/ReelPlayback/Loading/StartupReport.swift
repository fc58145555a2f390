import Synchronization
internal import ReelCore

/// What it took to get to the first frame, stage by stage.
public struct StartupReport: Sendable, Hashable {
  public enum Stage: String, Sendable, Hashable, CaseIterable {
    /// From the call until the first bytes of the source tell its kind: name, connection, first answer.
    case resolve
    /// The rest of the manifest, the media playlist or segment index, and reading them.
    case manifest
    /// The initialization segment: from its request to its last byte.
    case initialization = "init"
    /// Media: the time spent waiting for its bytes, up to the first frame's last one.
    case segment
    case demux
    case decode
    /// Scaling, turning and conversion to RGB; filled in by whoever does it.
    case convert
  }

  public struct Entry: Sendable, Hashable {
    public var duration: Duration = .zero
    public var requestCount = 0
    public var byteCount: Int64 = 0

    public init() {}
  }

  /// What is measured of a track's reader and decoder.
  struct Timing: Sendable {
    /// Waiting for bytes.
    var source = Duration.zero
    var demux = Duration.zero
    var decode = Duration.zero
  }

  public var entries: [Stage: Entry] = [:]
  /// From the call to the first frame in hand, before conversion.
  public var total: Duration = .zero

  public subscript(stage: Stage) -> Entry { entries[stage] ?? Entry() }
}

/// Collects a `StartupReport` from the places where its stages happen.
final class StartupRecorder: Sendable {
  /// What durations are measured by.
  let clock: any MonotonicClock
  let start: Duration
  private let report = Locked(StartupReport())
  private let isClosed = Atomic<Bool>(false)

  init(clock: any MonotonicClock = SystemMonotonicClock()) {
    self.clock = clock
    start = clock.now
  }

  /// The report so far.
  var current: StartupReport { report.withLock { $0 } }

  /// Counts towards a stage; nothing more once the first frame is there.
  func add(_ stage: StartupReport.Stage, _ duration: Duration = .zero, requests: Int = 0, bytes: Int64 = 0) {
    guard !isClosed.load(ordering: .relaxed) else { return }
    report.withLock { report in
      report.entries[stage, default: .init()].duration += duration
      report.entries[stage, default: .init()].requestCount += requests
      report.entries[stage, default: .init()].byteCount += bytes
    }
  }

  /// The first frame is there; its container's stages took so long.
  func close(_ timing: StartupReport.Timing) {
    add(.segment, timing.source)
    add(.demux, timing.demux)
    add(.decode, timing.decode)
    guard !isClosed.exchange(true, ordering: .relaxed) else { return }
    report.withLock { $0.total = clock.now - start }
  }
}
