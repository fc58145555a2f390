import ReelCore
import ReelPlayback
import ReelLab

/// A walk in the Trace Event Format of Chrome, which Perfetto and `chrome://tracing` can open.
///
/// Process 1 has a thread for the walk, and for each slot one for its items and their stages and up to eight
/// for its requests, because slices of one thread must be nested, and requests overlap. Counters have the
/// memory, bytes and decoded frames by slot. Times are in microseconds since the walk began.
///
/// Source: "Trace Event Format", Google, with the phases `M`, `X`, `i` and `C`.
enum ChromeTrace {
  private static let laneLimit = 8
  private static let walkThread = 1

  /// - Parameter names: The titles of the feed's items.
  static func json(_ report: WalkReport, _ timeline: WalkTimeline, names: [String]) -> [UInt8] {
    var events = Events(names: names)
    events.process("reel feed: \(report.label)")
    events.thread("walk", walkThread)
    for swipe in report.swipes { events.add(swipe) }
    for stall in timeline.stalls {
      events.slice("stall", "stall", walkThread, stall.from, stall.to) {
        $0.field("item", Int64(stall.itemIndex))
      }
    }
    for slot in 0..<timeline.slotCount {
      events.thread("slot \(slot)", thread(slot))
      for stay in timeline.stays where stay.slot == slot { events.add(stay, thread(slot)) }
      var lanes: [Duration] = []
      for request in timeline.requests where request.slot == slot {
        let lane = lanes.firstIndex { $0 <= request.from } ?? lanes.count
        if lane == lanes.count {
          guard lane < laneLimit else { continue }
          lanes.append(.zero)
          events.thread("slot \(slot) requests \(lane + 1)", thread(slot) + lane + 1)
        }
        lanes[lane] = request.to
        events.add(request, thread(slot) + lane + 1)
      }
    }
    for (number, bin) in timeline.bins.enumerated() {
      let time = timeline.binWidth * number
      events.counter("memory (bytes)", bin.memory, time)
      events.counter("bytes read", bin.byteCounts, time, slotCount: timeline.slotCount)
      events.counter("frames decoded", bin.frameCounts, time, slotCount: timeline.slotCount)
    }
    return events.finished()
  }

  private static func thread(_ slot: Int) -> Int { (slot + 1) * 100 }
}

/// The array of events as JSON.
private struct Events {
  private var text = JSONText()
  private var isFirst = true
  private let names: [String]

  init(names: [String]) {
    self.names = names
    text.append("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")
  }

  mutating func add(_ swipe: SwipeRecord) {
    if swipe.isPassing {
      event("i", "pass item \(swipe.itemIndex)", "swipe", 1, swipe.time) { $0.field("s", "t") }
      return
    }
    let end = swipe.time + swipe.watched
    slice(title(swipe.itemIndex), "visit", 1, swipe.time, end) { args in
      args.field("swipe", Int64(swipe.number))
      args.field("kind", swipe.kind.rawValue)
      args.field("stage", swipe.stage.reportName)
      args.field("cause", swipe.cause.map(Redaction.clean))
      args.field("error", swipe.error.map(Redaction.clean))
    }
    guard let wait = swipe.timeToFirstFrame ?? (swipe.error == nil ? swipe.watched : nil), wait > .zero else {
      return
    }
    slice("wait for the first frame", "wait", 1, swipe.time, min(swipe.time + wait, end)) { args in
      for part in swipe.waitParts { args.field(part.stage, part.duration.milliseconds) }
    }
  }

  mutating func add(_ stay: WalkTimeline.Stay, _ thread: Int) {
    slice(title(stay.itemIndex), "item", thread, stay.from, stay.to) { args in
      args.field("item", Int64(stay.itemIndex))
      args.field("failed", stay.failedAt != nil)
    }
    var from = stay.from
    for reached in stay.stages {
      slice(reached.stage.reportName, "stage", thread, from, min(reached.time, stay.to)) { _ in }
      from = reached.time
    }
  }

  mutating func add(_ request: WalkTimeline.Request, _ thread: Int) {
    slice(request.purpose.rawValue, "request", thread, request.from, request.to) { args in
      args.field("request", Int64(request.number))
      args.field("item", request.itemIndex.map(Int64.init))
      args.field("url", Redaction.clean(request.url))
      args.field("bytes", request.byteCount)
      args.field("failure", request.failure.map(Redaction.clean))
    }
    let answered = request.answeredAt ?? request.to
    if answered > request.from { slice("answer", "request", thread, request.from, answered) { _ in } }
    if request.to > answered { slice("transfer", "request", thread, answered, request.to) { _ in } }
  }

  mutating func slice(
    _ name: String, _ category: String, _ thread: Int, _ from: Duration, _ to: Duration,
    _ arguments: (inout JSONText) -> Void
  ) {
    event("X", name, category, thread, from) { text in
      text.field("dur", max(0, to.wholeMicroseconds - from.wholeMicroseconds))
      text.key("args")
      text.object(arguments)
    }
  }

  /// A value for each slot. Every event of a counter has the same slots.
  mutating func counter(_ name: String, _ values: [Int], _ time: Duration, slotCount: Int = 0) {
    guard !values.isEmpty || slotCount > 0 else { return }
    event("C", name, "slots", 0, time) { text in
      text.key("args")
      text.object { args in
        for slot in 0..<max(values.count, slotCount) {
          args.field("slot \(slot)", Int64(slot < values.count ? values[slot] : 0))
        }
      }
    }
  }

  mutating func process(_ name: String) { metadata("process_name", 0) { $0.field("name", name) } }

  /// Names a thread. Viewers order threads by name, unless they have an index.
  mutating func thread(_ name: String, _ thread: Int) {
    metadata("thread_name", thread) { $0.field("name", name) }
    metadata("thread_sort_index", thread) { $0.field("sort_index", Int64(thread)) }
  }

  consuming func finished() -> [UInt8] {
    text.append("\n]}\n")
    return text.bytes
  }

  // MARK: - Private

  private mutating func metadata(_ kind: String, _ thread: Int, _ arguments: (inout JSONText) -> Void) {
    event("M", kind, "__metadata", thread, .zero) { text in
      text.key("args")
      text.object(arguments)
    }
  }

  private func title(_ index: Int) -> String {
    names.indices.contains(index) ? "\(index): \(Markup.shortened(names[index], to: 80))" : "\(index)"
  }

  private mutating func event(
    _ phase: String, _ name: String, _ category: String, _ thread: Int, _ time: Duration,
    _ rest: (inout JSONText) -> Void
  ) {
    if !isFirst { text.append(",\n") }
    isFirst = false
    text.object { text in
      text.field("ph", phase)
      text.field("name", name)
      text.field("cat", category)
      text.field("pid", Int64(1))
      text.field("tid", Int64(thread))
      text.field("ts", time.wholeMicroseconds)
      rest(&text)
    }
  }
}
