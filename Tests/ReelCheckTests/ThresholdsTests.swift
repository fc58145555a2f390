@testable import ReelCheck
import Testing

@Suite("Thresholds of a check")
struct ThresholdsTests {
  @Test("A threshold that is set to its usual value is not a change")
  func changes() {
    var thresholds = Thresholds()
    #expect(thresholds[.blackRun] == 2)
    thresholds[.blackRun] = 5
    #expect(thresholds.changed == [.blackRun: 5])
    thresholds[.blackRun] = 2
    #expect(thresholds.changed.isEmpty)
    #expect(thresholds.normalized(.timestampGap) == 0.1)
    #expect(thresholds.normalized(.blackShare) == 0.98)
  }
}
