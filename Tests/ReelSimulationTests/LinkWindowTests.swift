import ReelCore
import ReelSimulation
import Testing

@Suite("Congestion windows")
struct LinkWindowTests {
  private var window = LinkWindow()
  private let roundTrip = Duration.milliseconds(100)

  /// Sends what the window lets out at `time`, each segment `spacing` behind the other, and takes in the acknowledgements
  /// a round trip later. Returns when the last one has come.
  @discardableResult
  private mutating func round(at time: Duration, spacing: Duration = .zero, limit: Int = .max) -> Duration {
    var (sent, last) = (0, time)
    while window.opensAt == nil, sent < limit {
      last = time + spacing * sent
      window.send(at: last, waitingSince: time, acknowledgedAt: last + roundTrip)
      sent += 1
    }
    let end = last + roundTrip
    window.acknowledge(by: end, waitingSince: sent < limit ? .zero : nil)
    return end
  }

  @Test("A window that is not used does not grow")
  mutating func unused() {
    var time = Duration.zero
    for _ in 0..<20 { time = round(at: time, limit: 5) }
    #expect(window.segmentCount == 10)
    round(at: time, limit: 6)
    #expect(window.segmentCount > 10)
  }

  @Test(
    "Slow start ends when the first segments of a round trip wait for the link; then it is one segment a round trip"
  )
  mutating func avoidance() {
    // A round trip carries 25 segments.
    let spacing = Duration.milliseconds(4)
    var time = Duration.zero
    var free = Duration.zero
    var windows: [Int] = []
    for _ in 0..<2000 {
      let start = max(max(time, free), window.opensAt ?? .zero)
      window.acknowledge(by: start, waitingSince: .zero)
      free = start + spacing
      window.send(at: start, waitingSince: .zero, acknowledgedAt: free + roundTrip)
      time = start
      windows.append(window.segmentCount)
      if !window.isInSlowStart, windows.count == 1000 { break }
    }
    #expect(!window.isInSlowStart)
    // More than the path holds, and less than four times as much.
    #expect((26...104).contains(windows[200]), "\(windows[200])")
    let grown = windows[999] - windows[499]
    #expect((3...25).contains(grown), "\(grown)")
  }

  @Test("After a pause the window is halved for each timeout, down to 10")
  mutating func restart() {
    var time = Duration.zero
    for _ in 0..<4 { time = round(at: time) }
    #expect(window.segmentCount == 160)
    // The timeout is 100 ms and 200 ms.
    var short = window
    short.send(at: time + .milliseconds(150), waitingSince: .zero, acknowledgedAt: time + .seconds(1))
    #expect(short.segmentCount == 160)
    var middle = window
    middle.send(at: time + .milliseconds(250), waitingSince: .zero, acknowledgedAt: time + .seconds(1))
    #expect(middle.segmentCount == 80)
    var long = window
    long.send(at: time + .seconds(10), waitingSince: .zero, acknowledgedAt: time + .seconds(11))
    #expect(long.segmentCount == 10)
    #expect(long.isInSlowStart)
  }
}
