import Foundation
import ReelCore
import ReelManifest
import Testing

@testable import ReelReading
@testable import ReelSources

@Suite("Choosing the rung of each segment")
struct RungControllerTests {
  private static func rung(_ id: String, _ bits: Int) -> Rung {
    Rung(id: id, bitsPerSecond: bits, media: .playlist(URL(filePath: "/\(id).m3u8")))
  }

  /// Not in the order of their bit rates.
  private let ladder = [rung("mid", 2_000_000), rung("high", 4_000_000), rung("low", 1_000_000)]
  private let conditions = Locked(RungConditions())

  private func makeController(_ adaptation: any RungAdaptation = FixedRung()) -> RungController {
    let conditions = conditions
    return RungController(adaptation: adaptation) { conditions.withLock { $0 } }
  }

  /// Avoids a rung; returns true if another one is left.
  private func leave(_ rung: Rung, _ controller: RungController, among ladder: [Rung]? = nil) -> Bool {
    let hasOther = controller.hasOther(than: rung, among: ladder ?? self.ladder)
    controller.avoid(rung)
    return hasOther
  }

  private func cap(_ bits: Int?) { conditions.withLock { $0.peakBitRate = bits } }

  /// Takes the rung that it is told, and notes what it is asked with.
  private struct Told: RungAdaptation {
    let wanted: Locked<String>
    let asked = Locked<[(candidates: [RungCandidate], state: AdaptationState)]>([])
    let samples = Locked<[TransferSample]>([])

    var estimatedBandwidth: Double? { samples.withLock { $0.last.map { Double($0.byteCount) } } }

    func choose(among candidates: [RungCandidate], _ state: AdaptationState) -> RungCandidate {
      asked.withLock { $0.append((candidates, state)) }
      let wanted = wanted.withLock { $0 }
      return candidates.first { $0.id == wanted } ?? candidates[0]
    }

    func recordTransfer(_ sample: TransferSample) { samples.withLock { $0.append(sample) } }
  }

  @Test("A cap for the start counts for the first segment alone")
  func startCap() {
    let controller = makeController()
    conditions.withLock { $0.startCap = 1 }
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "low")
    #expect(!controller.staysAt(ladder[2], among: ladder, segmentDuration: .seconds(1)))
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "high")
    #expect(controller.staysAt(ladder[1], among: ladder, segmentDuration: .seconds(1)))
    // The next one is chosen as a first one is.
    let told = Told(wanted: Locked("mid"))
    let other = makeController(told)
    for _ in 0..<3 { _ = other.choose(among: ladder, segmentDuration: nil) }
    #expect(told.asked.withLock { $0.map(\.state.peakBitRate) } == [1, nil, nil])
    #expect(told.asked.withLock { $0.map(\.state.current) } == [nil, nil, 1])
  }

  @Test("A change of rung has a cause")
  func causes() {
    let wanted = Locked("mid")
    let controller = makeController(Told(wanted: wanted))
    func choose(_ id: String? = nil) -> RungSwitchCause? {
      if let id { wanted.withLock { $0 = id } }
      _ = controller.choose(among: ladder, segmentDuration: nil)
      return controller.lastSwitchCause
    }
    #expect(choose() == nil)
    #expect(choose("high") == .adaptationUp)
    #expect(choose("low") == .adaptationDown)
    #expect(
      !controller.staysAt(ladder[2], among: ladder, segmentDuration: nil) || choose("high") == .adaptationUp)
    #expect(leave(ladder[1], controller))
    #expect(choose("mid") == .failure)
    conditions.withLock { $0.now = .seconds(600) }
    #expect(choose("high") == .retry)
    cap(2_000_000)
    #expect(choose("mid") == .limit)
    let other = [Self.rung("other", 1_000_000)]
    _ = controller.choose(among: other, segmentDuration: nil)
    #expect(controller.lastSwitchCause == .period)
    let started = makeController()
    conditions.withLock { ($0.startCap, $0.peakBitRate) = (1, nil) }
    _ = started.choose(among: ladder, segmentDuration: nil)
    #expect(!started.staysAt(ladder[2], among: ladder, segmentDuration: .seconds(1)))
    _ = started.choose(among: ladder, segmentDuration: nil)
    #expect(started.lastSwitchCause == .startup)
  }

  @Test("The adaptation is asked with the ladder in rising order, and with what is so now")
  func asking() throws {
    let told = Told(wanted: Locked("mid"))
    let controller = makeController(told)
    conditions.withLock { conditions in
      conditions.buffered = .seconds(2)
      conditions.rate = 1.5
      conditions.isRebuffering = true
      conditions.now = .seconds(7)
      conditions.maximumHeight = 720
    }
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "mid")
    #expect(controller.staysAt(ladder[0], among: ladder, segmentDuration: .seconds(4)))
    let asked = told.asked.withLock { $0 }
    try #require(asked.count == 2)
    #expect(asked[0].candidates.map(\.id) == ["low", "mid", "high"])
    #expect(asked[0].candidates.map(\.index) == [0, 1, 2])
    #expect(asked[0].state.current == nil)
    #expect(asked[1].state.current == 1)
    #expect(asked[1].state.segmentDuration == .seconds(4))
    #expect(asked[1].state.buffered == .seconds(2))
    #expect(asked[1].state.rate == 1.5)
    #expect(asked[1].state.isRebuffering)
    #expect(asked[1].state.now == .seconds(7))
    #expect(asked[1].state.maximumHeight == 720)
  }

  @Test("What ended a span is what the next one is of, though another would be chosen by then")
  func pending() {
    let controller = makeController()
    cap(1_500_000)
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "low")
    #expect(controller.staysAt(ladder[2], among: ladder, segmentDuration: nil))
    cap(3_000_000)
    #expect(!controller.staysAt(ladder[2], among: ladder, segmentDuration: nil))
    cap(1_500_000)
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "mid")
    // Once.
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "low")
  }

  @Test("What was chosen for the next span is forgotten where it is not there, or has failed")
  func pendingGone() {
    let controller = makeController()
    cap(1_500_000)
    _ = controller.choose(among: ladder, segmentDuration: nil)
    cap(3_000_000)
    #expect(!controller.staysAt(ladder[2], among: ladder, segmentDuration: nil))
    #expect(controller.choose(among: [ladder[2]], segmentDuration: nil)?.id == "low")
    #expect(!controller.staysAt(ladder[2], among: ladder, segmentDuration: nil))
    #expect(leave(ladder[0], controller))
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "low")
  }

  @Test("One rung is never left for another")
  func oneRung() {
    let controller = makeController()
    let one = [ladder[1]]
    cap(1)
    #expect(controller.choose(among: one, segmentDuration: nil)?.id == "high")
    #expect(controller.staysAt(ladder[1], among: one, segmentDuration: nil))
    #expect(!leave(ladder[1], controller, among: one))
    #expect(controller.choose(among: one, segmentDuration: nil) == nil)
    controller.forgive()
    #expect(controller.choose(among: one, segmentDuration: nil)?.id == "high")
  }

  @Test("A rung that has failed is left alone until its penalty is over")
  func penalties() {
    let controller = makeController()
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "high")
    #expect(leave(ladder[1], controller))
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "mid")
    #expect(leave(ladder[0], controller))
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "low")
    #expect(!leave(ladder[2], controller))
    #expect(controller.choose(among: ladder, segmentDuration: nil) == nil)
    // A span of a rung that can't be left goes on.
    #expect(controller.staysAt(ladder[2], among: ladder, segmentDuration: nil))
    conditions.withLock { $0.now = .seconds(60) }
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "high")
  }

  @Test("All locations are tried once, each with all rungs, until something can be read")
  func locations() {
    let controller = makeController()
    for rung in ladder { controller.avoid(rung) }
    #expect(controller.hasOtherLocation(of: 3))
    controller.goToNextLocation(of: 3)
    #expect(controller.location.index == 1)
    #expect(controller.choose(among: ladder, segmentDuration: nil)?.id == "high")
    controller.goToNextLocation(of: 3)
    #expect(controller.location.index == 2)
    #expect(!controller.hasOtherLocation(of: 3))
    controller.forgive()
    #expect(controller.hasOtherLocation(of: 3))
    controller.goToNextLocation(of: 3)
    #expect(controller.location.index == 0)
    controller.recordSuccess()
    for _ in 0..<2 { controller.goToNextLocation(of: 3) }
    #expect(!controller.hasOtherLocation(of: 3))
    #expect(!makeController().hasOtherLocation(of: 1))
  }

  @Test("Transfers are told to the adaptation")
  func transfers() {
    let told = Told(wanted: Locked("low"))
    let controller = makeController(told)
    #expect(controller.estimatedBandwidth == nil)
    conditions.withLock { $0.now = .seconds(9) }
    var transfer = SegmentTransfer(index: 4, began: .seconds(1), answered: .seconds(1))
    transfer.add(1000, at: .seconds(2))
    controller.record(transfer)
    #expect(controller.estimatedBandwidth == 1000)
    #expect(told.samples.withLock { $0.map(\.endedAt) } == [.seconds(9)])
  }

  @Test("A playlist is asked for at the location that answers")
  func beginning() {
    var rung = Self.rung("a", 1)
    #expect(rung.beginning(at: 5).urls == rung.urls)
    rung.alternateURLs = [URL(filePath: "/b.m3u8"), URL(filePath: "/c.m3u8")]
    let names = { (rung: Rung) in rung.urls.map(\.lastPathComponent) }
    #expect(names(rung.beginning(at: 0)) == ["a.m3u8", "b.m3u8", "c.m3u8"])
    #expect(names(rung.beginning(at: 1)) == ["b.m3u8", "c.m3u8", "a.m3u8"])
    #expect(names(rung.beginning(at: 2)) == ["c.m3u8", "a.m3u8", "b.m3u8"])
    #expect(names(rung.beginning(at: 3)) == ["a.m3u8", "b.m3u8", "c.m3u8"])
  }
}

extension Rung {
  /// Of its playlist, in the order in which they are tried.
  fileprivate var urls: [URL] {
    guard case .playlist(let url) = media else { return [] }
    return [url] + alternateURLs
  }
}
