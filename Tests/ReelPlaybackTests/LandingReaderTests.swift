import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@testable import ReelReading
@testable import ReelSources

@Suite("Landing before a place that is sought")
struct LandingReaderTests {
  /// A stream of one packet a second, which lands so much later than it is asked to.
  private final class LateReader: PacketReader {
    private let maker: PacketMaker
    private let span: StreamSpan
    private let keys: Set<Int>
    private let lateness: Int
    private let count: Int
    private(set) var seeks: [MediaTime?] = []
    private var index = 0

    init(keys: Set<Int>, count: Int, lateness: Int) throws {
      maker = try PacketMaker()
      span = maker.makeSpan()
      self.keys = keys
      self.count = count
      self.lateness = lateness
    }

    let streams = ReaderStreams()
    let waits = ReaderWaits()
    let status = ReaderStatus()
    let endFault: ReelError? = nil

    func prepare() throws {}

    func next() throws -> MediaPacket? {
      guard index < count else { return nil }
      defer { index += 1 }
      let second = MediaTime(value: 1, timescale: 1)
      return try maker.make(
        second * Int64(index), lasting: second, of: span, isKey: keys.contains(index))
    }

    func seek(to time: MediaTime?, loop: LoopIteration, scope: LoadScope) throws {
      seeks.append(time)
      guard let time, time > .zero else { return index = 0 }
      index = min(Int(time.seconds) + lateness, count)
    }

    func isSeekWorthwhile(to time: MediaTime, from position: MediaTime) -> Bool { true }
    func rest() -> Bool { false }
    func setDropsAudio(_ drops: Bool) {}
  }

  private func seconds(_ value: Int64) -> MediaTime { MediaTime(value: value, timescale: 1) }

  private func times(_ reader: LandingReader, count: Int) throws -> [MediaTime] {
    var times: [MediaTime] = []
    while times.count < count, let packet = try reader.next() { times.append(packet.time) }
    return times
  }

  @Test("Where the first key frame is a later one, the seek is made again further back")
  func stepsBack() throws {
    let scope = LoadScope()
    let late = try LateReader(keys: [0, 10, 20], count: 30, lateness: 3)
    let reader = LandingReader(late, scope: scope)
    try reader.seek(to: seconds(19), needsKeyFrame: true, loop: LoopIteration(), scope: scope)
    #expect(try times(reader, count: 3) == [10, 11, 12].map(seconds))
    #expect(late.seeks == [19, 17, 15, 11, 3].map(seconds))
  }

  @Test("Without a key frame before the place it begins at the beginning, and at the end it ends")
  func beginning() throws {
    let scope = LoadScope()
    let late = try LateReader(keys: [25], count: 30, lateness: 0)
    let reader = LandingReader(late, scope: scope)
    try reader.seek(to: seconds(20), needsKeyFrame: true, loop: LoopIteration(), scope: scope)
    // Nothing before the key frame can be decoded.
    #expect(try times(reader, count: 2) == [25, 26].map(seconds))
    #expect(late.seeks.last == .some(.zero))
    let none = LandingReader(try LateReader(keys: [], count: 5, lateness: 0), scope: scope)
    try none.seek(to: seconds(3), needsKeyFrame: true, loop: LoopIteration(), scope: scope)
    #expect(try times(none, count: 9) == [])
  }

  @Test("A place that needs no key frame is taken as it comes, and one that was called off ends")
  func plain() throws {
    let scope = LoadScope()
    let reader = LandingReader(try LateReader(keys: [0], count: 30, lateness: 2), scope: scope)
    try reader.seek(to: seconds(4), needsKeyFrame: false, loop: LoopIteration(), scope: scope)
    #expect(try times(reader, count: 2) == [6, 7].map(seconds))
    try reader.seek(to: seconds(20), needsKeyFrame: true, loop: LoopIteration(), scope: scope)
    scope.cancel()
    #expect(throws: CancellationError.self) { _ = try reader.next() }
  }
}
