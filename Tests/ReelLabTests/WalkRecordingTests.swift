import Foundation
import ReelCore
import ReelPool
import ReelTestSupport
import Testing

@testable import ReelLab
import ReelPlayback
import ReelSources

@Suite("Records of a walk's events")
struct WalkRecordingTests {
  private static let item = FeedItem.ID(feed: "feed", source: "a.mp4")
  private static let other = FeedItem.ID(feed: "feed", source: "b.mp4")

  private func event(
    _ kind: WalkEvent.Kind, _ time: Duration, _ item: FeedItem.ID = Self.item,
    _ change: (inout WalkEvent) -> Void = { _ in }
  ) -> WalkEvent {
    var event = WalkEvent(kind, at: time)
    event.item = item
    change(&event)
    return event
  }

  private func request(
    _ number: Int, _ purpose: FetchPurpose, _ times: [Duration], of item: FeedItem.ID = Self.item
  ) -> [WalkEvent] {
    zip([WalkEvent.Kind.request, .response, .received], times).map { kind, time in
      event(kind, time, item) { event in
        event.request = number
        event.purpose = purpose
        event.byteCount = 1_000
      }
    }
  }

  @Test("The parts of a wait add up, also where requests overlap and began before the swipe")
  func waits() {
    let waits = WaitRecorder()
    var events = request(
      1, .manifest, [.milliseconds(900), .milliseconds(1_100), .nanoseconds(1_150_000_400)])
    events += request(2, .segment, [.milliseconds(1_160), .milliseconds(1_300), .seconds(9)])
    events += request(3, .initialization, [.milliseconds(1_160), .milliseconds(1_250), .milliseconds(1_260)])
    events += request(4, .segment, [.milliseconds(1), .milliseconds(2), .seconds(3)], of: Self.other)
    events.append(event(.reached, .milliseconds(1_500)) { $0.stage = .firstFrame })
    events.sort { $0.time < $1.time }
    for event in events where event.time < .seconds(1) { waits.record(event) }
    waits.settle(on: Self.item, at: .seconds(1))
    for event in events where event.time >= .seconds(1) { waits.record(event) }

    let wait = Duration.nanoseconds(510_000_600)
    let parts = waits.parts(of: wait, decode: .milliseconds(12))
    #expect(
      parts.map(\.stage) == [
        "manifest answer", "manifest transfer", "preparing", "initialization answer",
        "initialization transfer",
        "segment answer", "segment transfer", "decode", "show",
      ])
    #expect(parts.reduce(0) { $0 + $1.duration.wholeMicroseconds } == wait.wholeMicroseconds)
    #expect(parts.first { $0.stage == "segment transfer" }?.duration == .milliseconds(188))
    #expect(parts.first { $0.stage == "decode" }?.duration == .milliseconds(12))
  }

  @Test("A wait without a request is spent preparing, and one of no length has no parts")
  func idle() {
    let waits = WaitRecorder()
    waits.settle(on: Self.item, at: .seconds(1))
    #expect(
      waits.parts(of: .milliseconds(5), decode: .zero) == [
        StageTime(stage: "preparing", duration: .milliseconds(5))
      ])
    #expect(waits.parts(of: .zero, decode: .seconds(1)).isEmpty)
  }

  @Test("A timeline keeps stays, requests and figures by slot, within its limits")
  func timeline() throws {
    var feed = Feed(name: "feed")
    let url = try #require(URL(string: "https://host/a.mp4"))
    feed.append(.url(url))
    let id = try #require(feed.items.first?.id)
    let recorder = TimelineRecorder(feed)
    recorder.record(event(.assigned, .zero, id) { $0.slot = 0 })
    let exchange = request(1, .source, [.milliseconds(10), .milliseconds(60), .seconds(80)], of: id)
    for event in exchange.dropLast() { recorder.record(event) }
    recorder.record(event(.chunk, .milliseconds(70), id) { ($0.request, $0.byteCount) = (1, 700) })
    recorder.record(event(.memory, .milliseconds(80), id) { $0.slotByteCounts = [5, 6] })
    // Slots that are large one after the other are never large together.
    recorder.record(event(.memory, .milliseconds(81), id) { $0.slotByteCounts = [9, 0] })
    recorder.record(event(.memory, .milliseconds(82), id) { $0.slotByteCounts = [0, 9] })
    recorder.record(event(.chunk, .milliseconds(79_900), id) { ($0.request, $0.byteCount) = (1, 300) })
    for event in exchange.suffix(1) { recorder.record(event) }
    recorder.record(event(.reached, .milliseconds(80), id) { $0.stage = .manifest })
    recorder.record(event(.evicted, .seconds(81), id) { $0.slot = 0 })
    for _ in 0..<4_000 { recorder.record(event(.assigned, .seconds(82), id) { $0.slot = 0 }) }
    let timeline = recorder.timeline
    #expect(timeline.stays.count == 4_000)
    #expect(timeline.stays.first?.to == .seconds(81))
    #expect(timeline.stays.first?.stages.map(\.stage) == [.manifest])
    #expect(timeline.omittedCount == 1)
    #expect(timeline.requests.first?.answeredAt == .milliseconds(60))
    #expect(timeline.requests.first?.slot == 0)
    #expect(timeline.duration == .seconds(82))
    // Bins were merged, and nothing is lost; memory lasts until its next sample, and is that of one moment.
    #expect(timeline.binWidth == .milliseconds(100))
    #expect(timeline.bins.count == 800)
    #expect(timeline.bins.reduce(0) { $0 + $1.byteCounts.reduce(0, +) } == 1_000)
    #expect(timeline.bins.last?.memory == [5, 6])
  }

  @Test("Bytes of which only the sum is known are drawn evenly over their transfer")
  func spreadBytes() throws {
    var feed = Feed(name: "feed")
    feed.append(.url(try #require(URL(string: "https://host/a.mp4"))))
    let id = try #require(feed.items.first?.id)
    let recorder = TimelineRecorder(feed)
    recorder.record(event(.assigned, .zero, id) { $0.slot = 0 })
    let requests: [[Duration]] = [
      [.zero, .milliseconds(25), .milliseconds(125)], [.zero, .milliseconds(110), .milliseconds(110)],
    ]
    for (number, times) in requests.enumerated() {
      for event in request(number + 1, .segment, times, of: id) { recorder.record(event) }
    }
    // One that was cancelled before its answer.
    recorder.record(event(.request, .zero, id) { ($0.request, $0.purpose) = (3, .segment) })
    recorder.record(event(.received, .milliseconds(130), id) { ($0.request, $0.byteCount) = (3, 0) })
    #expect(recorder.timeline.bins.map(\.byteCounts) == [[250], [500], [1_250]])
  }
}
