import ReelCore
import Testing

@testable import ReelPlayback

@Suite("Measuring a segment's transfer")
struct SegmentTransferTests {
  @Test("Nothing has come at the beginning")
  func beginning() {
    let start = ContinuousClock.now
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
    let began = ContinuousClock.now - .seconds(2)
    var transfer = SegmentTransfer(index: 0, began: began, answered: began)
    transfer.add(1000)
    transfer.add(500)
    let end = transfer.freeEnd
    #expect(transfer.freeByteCount == 1500)
    #expect(end == transfer.ended)
    transfer.isHeldBack = true
    transfer.add(700)
    #expect(transfer.byteCount == 2200)
    #expect(transfer.freeByteCount == 1500)
    #expect(transfer.freeEnd == end)
    #expect(transfer.ended >= end)
    let sample = transfer.sample(at: .seconds(1))
    #expect(sample.byteCount == 1500)
    #expect(sample.duration == end - began)
    #expect(sample.duration >= .seconds(2))
  }
}
