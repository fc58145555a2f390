import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelPlayback

@Suite("The jobs of an item's workers", .hangLimit)
struct SessionJobTests {
  @Test("Where it is to begin elsewhere, all workers begin there")
  func start() {
    let place = MediaTime(value: 5, timescale: 1)
    let session = makeHandTurnedSession(start: place)
    let (target, starts) = session.look { state in
      (state.videoJob.target, MediaPacket.Kind.allCases.map { state.readingJobs[$0]?.start })
    }
    #expect(target == place + ItemState.instant)
    #expect(starts == [target, target])
    #expect(session.look { $0.packets.position } == target)
  }

  @Test("A failure of the place before is nobody's")
  func failureBeforeSeek() {
    let session = makeHandTurnedSession()
    let reader = ItemReader(session, kind: .video)
    reader.job = session.look { $0.readingJobs[.video] }
    session.change { state, out in
      _ = state.seek(to: MediaTime(value: 3, timescale: 1), tolerance: .zero, &out)
    }
    #expect(reader.job?.scope.isCancelled == true)
    #expect(reader.recover(from: ReelError(.badMedia, "not media")) == .again)
    #expect(session.look { $0.failure } == nil)
    reader.job = session.look { $0.readingJobs[.video] }
    #expect(reader.recover(from: ReelError(.badMedia, "not media")) == .idle)
    #expect(session.look { $0.failure } != nil)
  }

  @Test("Once the player has left an item, its workers change nothing, and have nothing to do")
  func left() {
    let session = makeHandTurnedSession()
    let reader = ItemReader(session, kind: .video)
    session.core.replaceCurrentItem(with: nil, start: nil)
    #expect(session.change { _, _ in true } == nil)
    #expect(session.read { _ in true } == nil)
    #expect(reader.turn() == .idle)
    #expect(reader.recover(from: ReelError(.badMedia, "not media")) == .idle)
    #expect(ItemDecoder(session).turn() == .idle)
    #expect(session.item.errorLog.isEmpty)
  }

  @Test("Two threads and random seeks: in order, none lost, none of an earlier job", arguments: [1, 3, 8])
  func twoThreads(frameCapacity: Int) async throws {
    let clip = VideoPipelineTests.Clip("h264-gops.mp4")
    let frames = try clip.frames()
    let session = makeHandTurnedSession(frameCapacity: frameCapacity)
    for packet in try readPackets(clip.path) where packet.kind == .video { session.append(packet) }
    session.end([.video])
    let clock = ManualMonotonicClock()
    let decoder = ItemDecoder(session)
    let producer = TaskLoop(named: "producer", clock: clock) { decoder.turn() }
    let received = Locked<[(job: DecodingJob, shown: Shown)]>([])
    let consumer = TaskLoop(named: "consumer", clock: clock) {
      let job = session.videoJob
      while case .frame = session.head, session.videoJob === job {
        guard let frame = session.takeFrame(of: job) else { return .again }
        if let shown = try? Shown(frame) { received.withLock { $0.append((job, shown)) } }
        producer.wake()
      }
      return .idle
    }
    var starts: [(job: DecodingJob, index: Int)] = []
    for _ in 0..<40 {
      let index = Int.random(in: 0..<frames.count)
      try #require(session.seekInside(to: frames[index].time))
      let job = session.videoJob
      starts.append((job, index))
      producer.wake()
      let target = Int.random(in: 0...min(6, frames.count - index))
      try await until {
        producer.wake()
        consumer.wake()
        return received.withLock { $0.count { $0.job === job } } >= target
      }
    }
    let last = try #require(starts.last)
    try await until {
      producer.wake()
      consumer.wake()
      return session.videoJob === last.job && session.head == .drained
    }
    producer.stop()
    consumer.stop()
    await producer.waitUntilStopped()
    await consumer.waitUntilStopped()
    let all = received.withLock { $0 }
    var place = 0
    for (job, index) in starts {
      let shown = all[place...].prefix { $0.job === job }.map(\.shown)
      #expect(shown == Array(frames[index...].prefix(shown.count)))
      place += shown.count
    }
    #expect(place == all.count)
    #expect(all.count { $0.job === last.job } == frames.count - last.index)
    #expect(session.look { $0.frames.statistics.highWaterFrameCount } <= frameCapacity)
  }
}
