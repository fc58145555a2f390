import Foundation
import ReelCore
import ReelPlayback
import ReelTestSupport
import Testing

@Suite("Event channels", .hangLimit)
struct EventChannelTests {
  @Test("An observer gets what happens after it began, repetitions too")
  func events() async {
    let channel = EventChannel<Int>()
    channel.send(1)
    let events = channel.events
    for event in [2, 2, 3] { channel.send(event) }
    channel.finish()
    channel.send(4)
    var seen: [Int] = []
    for await event in events { seen.append(event) }
    #expect(seen == [2, 2, 3])
  }

  @Test("Many observers get the same in the same order, while many send")
  func manyObservers() async {
    let channel = EventChannel<Int>()
    let streams = (0..<20).map { _ in channel.events }
    #expect(channel.observerCount == 20)
    await withTaskGroup { group in
      for sender in 0..<4 {
        group.addTask { for index in 0..<100 { channel.send(sender * 1000 + index) } }
      }
    }
    channel.finish()
    var all: Set<[Int]> = []
    for stream in streams {
      var seen: [Int] = []
      for await event in stream { seen.append(event) }
      all.insert(seen)
    }
    #expect(all.count == 1)
    #expect(all.first?.count == 400)
    #expect(channel.observerCount == 0)
  }

  @Test("A slow observer loses the oldest")
  func slow() async {
    let channel = EventChannel<Int>()
    let events = channel.events
    for event in 1...3000 { channel.send(event) }
    channel.finish()
    var seen: [Int] = []
    for await event in events { seen.append(event) }
    #expect(seen == Array((3001 - EventChannel<Int>.bufferLimit)...3000))
  }

  @Test("A channel that keeps one event gives a slow observer the newest; an observer may have a first one")
  func newest() async {
    let channel = EventChannel<Int>(bufferLimit: 1)
    var (slow, quick) = (channel.events.makeAsyncIterator(), channel.events(after: 0).makeAsyncIterator())
    #expect(await quick.next() == 0)
    for event in 1...3 {
      channel.send(event)
      #expect(await quick.next() == event)
    }
    #expect(await slow.next() == 3)
    channel.finish()
    #expect(await slow.next() == nil)
    #expect(await quick.next() == nil)
  }

  @Test("Observers that stop leave nothing behind, and one that comes after the end gets the end")
  func stopping() async throws {
    let channel = EventChannel<Int>()
    do { _ = channel.events }
    let task = Task { for await _ in channel.events {} }
    try await until { channel.observerCount != 0 }
    task.cancel()
    await task.value
    try await until { channel.observerCount == 0 }
    channel.finish()
    for await event in channel.events { Issue.record("\(event) after the end") }
    #expect(channel.observerCount == 0)
  }

  @Test("Observers can be cancelled while events are sent")
  func cancellation() async {
    let channel = EventChannel<Int>()
    let isDone = Locked(false)
    let sender = Thread { while !isDone.withLock({ $0 }) { channel.send(1) } }
    sender.start()
    for _ in 0..<2000 {
      await withTaskGroup { group in
        for _ in 0..<4 { group.addTask { for await _ in channel.events {} } }
        await Task.yield()
        group.cancelAll()
      }
    }
    isDone.withLock { $0 = true }
    #expect(channel.observerCount == 0)
  }

  @Test("An observer does not keep the channel, and ends with it")
  func owner() async {
    var channel: EventChannel<Int>? = EventChannel()
    weak let observed = channel
    let events = channel?.events
    channel?.send(1)
    channel = nil
    #expect(observed == nil)
    var seen: [Int] = []
    if let events { for await event in events { seen.append(event) } }
    #expect(seen == [1])
  }
}
