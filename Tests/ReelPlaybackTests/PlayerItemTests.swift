import ReelCore
import Testing

@testable import ReelPlayback
@testable import ReelSources

@Suite("Player items")
struct PlayerItemTests {
  private let item: PlayerItem

  init() throws { item = PlayerItem(try MediaSource(argument: "/clip.mp4")) }

  @Test("One entry for each rung in a row; a rung that comes again has another")
  func access() {
    for rung in ["low", "low", "high", "low"] { item.beginAccess(AccessLogEntry(rung: rung)) }
    #expect(item.accessLog.map(\.rung) == ["low", "high", "low"])
    item.updateAccess(rung: "low") { $0.byteCount += 5 }
    item.updateAccess(rung: "high") { $0.byteCount += 7 }
    item.updateAccess(rung: "none") { $0.byteCount += 9 }
    #expect(item.accessLog.map(\.byteCount) == [0, 7, 5])
  }

  @Test("A media file has an entry without a rung")
  func accessOfFile() {
    item.updateAccess(rung: nil) { $0.stallCount += 1 }
    item.beginAccess(AccessLogEntry())
    item.beginAccess(AccessLogEntry())
    item.updateAccess(rung: nil) { $0.stallCount += 1 }
    #expect(item.accessLog.map(\.stallCount) == [1])
  }

  @Test("The bit rate is that of the bytes that came while nothing held them back")
  func observedBitRate() {
    var entry = AccessLogEntry(rung: "low")
    #expect(entry.observedBitRate == nil)
    entry.byteCount = 5000
    entry.measuredByteCount = 1000
    entry.transferDuration = .milliseconds(500)
    #expect(entry.observedBitRate == 16_000)
  }

  @Test("The oldest entries go where there are too many")
  func limits() {
    for number in 0..<1005 {
      item.beginAccess(AccessLogEntry(rung: "\(number)"))
      item.log(ErrorLogEntry(error: ReelError(.network, "\(number)"), rung: nil, time: nil))
    }
    #expect(item.accessLog.count == 1000)
    #expect(item.accessLog.first?.rung == "5" && item.accessLog.last?.rung == "1004")
    #expect(item.errorLog.count == 1000)
    #expect(item.errorLog.first?.error.reason == "5")
  }

  @Test("Who loads the item is told of its preferences")
  func preferences() {
    let told = Locked(0)
    item.setOnChange { _ in told.withLock { $0 += 1 } }
    item.preferredForwardBufferDuration = .seconds(9)
    item.preferredPeakBitRate = 1
    item.preferredMaximumResolution = PixelSize(width: 16, height: 9)
    #expect(told.withLock { $0 } == 3)
    #expect(item.preferences.forwardBufferDuration == .seconds(9))
    #expect(item.preferences.peakBitRate == 1)
    item.setOnChange(nil)
    item.preferredPeakBitRate = nil
    #expect(told.withLock { $0 } == 3)
  }

  @Test("Loaded again, it is as it was before; preferences stay")
  func reset() {
    item.beginAccess(AccessLogEntry(rung: "low"))
    item.log(ErrorLogEntry(error: ReelError(.network, "cut"), rung: "low", time: .zero))
    item.setStartup(StartupReport())
    item.observed.status.set(.readyToPlay)
    item.observed.isPlaybackBufferEmpty.set(false)
    item.observed.loadedTimeRanges.set([.zero..<MediaTime(value: 1, timescale: 1)])
    item.observed.rung.set("low")
    item.preferredPeakBitRate = 7
    item.reset()
    #expect(item.accessLog.isEmpty && item.errorLog.isEmpty)
    #expect(item.startup == nil)
    #expect(item.status.value == .unknown)
    #expect(item.isPlaybackBufferEmpty.value)
    #expect(item.loadedTimeRanges.value.isEmpty)
    #expect(item.rung.value == nil)
    #expect(item.preferredPeakBitRate == 7)
  }

  @Test("An item is equal to itself alone")
  func equality() throws {
    #expect(item == item)
    #expect(item != PlayerItem(item.source))
  }
}
