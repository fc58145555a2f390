import ReelCore
import Testing

@testable import ReelReading

@Suite("Measuring a segment's transfer")
struct SegmentTransferTests {
  @Test("Nothing has come at the beginning")
  func beginning() {
    let start = Duration.seconds(7)
    let transfer = SegmentTransfer(index: 3, began: start, answered: start + .milliseconds(50))
    #expect(transfer.byteCount == 0)
    #expect(transfer.ended == transfer.answered)
    #expect(
      transfer.sample(at: .seconds(5))
        == TransferSample(
          byteCount: 0, duration: .milliseconds(50), latency: .milliseconds(50), endedAt: .seconds(5)))
  }

  @Test("What comes after the reader held it back is counted, and not measured")
  func heldBack() {
    let began = Duration.seconds(7)
    var transfer = SegmentTransfer(index: 0, began: began, answered: began)
    transfer.add(1000, at: began + .seconds(1))
    transfer.add(500, at: began + .seconds(2))
    let end = transfer.freeEnd
    #expect(transfer.freeByteCount == 1500)
    #expect(end == began + .seconds(2))
    #expect(end == transfer.ended)
    transfer.isHeldBack = true
    transfer.add(700, at: began + .seconds(3))
    #expect(transfer.byteCount == 2200)
    #expect(transfer.freeByteCount == 1500)
    #expect(transfer.freeEnd == end)
    #expect(transfer.ended == began + .seconds(3))
    let sample = transfer.sample(at: .seconds(1))
    #expect(sample.byteCount == 1500)
    #expect(sample.duration == .seconds(2))
  }
}
