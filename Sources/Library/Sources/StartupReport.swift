import Synchronization
package import ReelCore

/// The time, requests and bytes that each stage up to the first frame took.
public struct StartupReport: Sendable, Hashable {
  /// A stage of start-up.
  public enum Stage: String, Sendable, Hashable, CaseIterable {
    /// From the call until the first bytes identify the format: name resolution, connection, first response.
    case open
    /// The rest of the manifest, and the media playlist or segment index: loading and parsing.
    case manifest
    /// The initialization segment: from its request to its last byte.
    case initialization = "init"
    /// Media: the time spent waiting for bytes, up to those of the first frame.
    case segment
    /// Demuxing, without the time spent waiting for bytes.
    case demux
    /// Decoding the first frame.
    case decode
    /// Scaling, turning and conversion to RGB. Recorded by the code that converts the frame.
    case convert
  }

  /// The cost of a stage.
  public struct Entry: Sendable, Hashable {
    /// The time spent in the stage.
    public var duration: Duration = .zero
    /// The number of requests, with redirects and retries. Opening a local file counts as one.
    public var requestCount = 0
    /// The number of bytes received or read.
    public var byteCount: Int64 = 0

    package init() {}
  }

  /// The times measured by a track's reader and decoder.
  package struct Timing: Sendable {
    /// The time spent waiting for bytes.
    package var source = Duration.zero
    package var demux = Duration.zero
    package var decode = Duration.zero

    package init(
      source: Duration = Duration.zero, demux: Duration = Duration.zero, decode: Duration = Duration.zero
    ) {
      self.source = source
      self.demux = demux
      self.decode = decode
    }
  }

  /// The entries of the stages that took place.
  package var entries: [Stage: Entry] = [:]
  /// The time from the call to the decoded first frame, before conversion.
  public var total: Duration = .zero
  /// The time spent waiting for a turn, because of other sources. Neither `total` nor any stage includes it.
  package var queued: Duration = .zero

  package init() {}

  /// The entry of a stage, with zeros if the stage did not take place.
  public subscript(stage: Stage) -> Entry { entries[stage] ?? Entry() }
}

/// Collects the entries of a `StartupReport`.
package final class StartupRecorder: Sendable {
  /// The clock by which durations are measured.
  package let clock: any MonotonicClock
  package let start: Duration
  /// Ends the measurement of a clock that does not always run, and returns its time and the time that it stood still.
  private let end: (@Sendable () -> (total: Duration, queued: Duration))?
  private let report = Locked(StartupReport())
  private let isClosed = Atomic<Bool>(false)

  /// - Parameters:
  ///   - clock: The clock by which durations are measured.
  ///   - end: Returns the time up to the first frame, and the time spent waiting for a turn, and is called once; nil for a clock
  ///     that runs all the time.
  package init(
    clock: any MonotonicClock = SystemMonotonicClock(),
    end: (@Sendable () -> (total: Duration, queued: Duration))? = nil
  ) {
    self.clock = clock
    self.end = end
    start = clock.now
  }

  /// The report so far.
  package var current: StartupReport { report.withLock { $0 } }

  /// Adds to a stage, until the first frame is decoded.
  package func add(
    _ stage: StartupReport.Stage, _ duration: Duration = .zero, requests: Int = 0, bytes: Int64 = 0
  ) {
    guard !isClosed.load(ordering: .relaxed) else { return }
    report.withLock { report in
      report.entries[stage, default: .init()].duration += duration
      report.entries[stage, default: .init()].requestCount += requests
      report.entries[stage, default: .init()].byteCount += bytes
    }
  }

  /// Ends the report when the first frame is decoded.
  package func close(_ timing: StartupReport.Timing) {
    add(.segment, timing.source)
    add(.demux, timing.demux)
    add(.decode, timing.decode)
    guard !isClosed.exchange(true, ordering: .relaxed) else { return }
    let (total, queued) = end?() ?? (clock.now - start, .zero)
    report.withLock { ($0.total, $0.queued) = (total, queued) }
  }
}
