import ReelCore
import ReelPool
import ReelLab
import ReelTestSupport
import Testing

@Suite("Assertions about walks")
struct WalkAssertionTests {
  @Test(
    "Met and not met",
    arguments: [
      ("first_frame.p95<150ms", false), ("first_frame.p50 <= 19us", false), ("first_frame.p50<=20us", true),
      ("first_frame.p50<=355ms", true),
      ("first_frame.hit.p99<=1ms", true),
      ("first_frame.hit.max<20us", false), ("first_frame.hit.max<=0.02ms", true),
      ("first_frame.hit.max==20us", true),
      ("first_frame.hit.max=20us", true), ("first_frame.miss.p50>0.3s", true), ("second_frame.p95<3s", true),
      ("second_frame.hit.p50==33ms", true),
      ("stalls.max<1s", true), ("stalls.max<600ms", false), ("stalls.total<0.02min", false),
      ("stalls.count<=0", false),
      ("stalls.count==3", true), ("memory.slot<30MB", true), ("memory.slot<=11MB", true),
      ("memory.slot<11MB", false),
      ("memory.slot<10.5MiB", true), ("memory.pool > 16 MB", true), ("hit.ratio>=60%", true),
      ("hit.ratio>60%", false),
      ("reached.manifest==80%", true), ("reached.buffered>=50%", false), ("bytes.wasted<22.5%", false),
      ("bytes.wasted<=22.5 %", true), ("bytes.wasted<10MB", true), ("bytes.wasted<9MB", false),
      ("bytes.fetched<=40MB", true), ("frames.wasted<1%", true), ("frames.wasted<=3", true),
      ("frames.decoded==400", true), ("failed<=0", false), ("failed==1", true), ("abandoned<2", true),
      (" FIRST_FRAME.P50 < 1s ", true), ("first_frame.over_100ms<=40%", true),
      ("first_frame.over_100ms<40%", false),
      ("first_frame.over_1s==1", true), ("second_frame.over_100ms<=2", true),
      ("second_frame.over_1s<20%", false),
      ("rebuffering<16%", true), ("rebuffering<15%", false), ("rung.mean>=625kbit", true),
      ("rung.mean>0.625Mbit/s", false), ("rung.mean>0kbit", true),
      ("rung.switches<=1", true), ("rung.switches<1", false),
    ])
  func evaluation(text: String, isMet: Bool) throws {
    let outcome = try WalkAssertion(parsing: text).evaluate(.sample())
    #expect(outcome.isMet == isMet, "\(outcome)")
  }

  @Test(
    "A walk that has no such figure does not hold it, and is told why",
    arguments: [
      ("first_frame.p95<150ms", "no swipe was counted"), ("first_frame.hit.p99>=0us", "no swipe was a hit"),
      ("second_frame.miss.max<1s", "no swipe was a miss"), ("memory.slot<30MB", "memory was not measured"),
      ("memory.pool<30MB", "memory was not measured"), ("hit.ratio>=0%", "no swipe was counted"),
      ("second_frame.over_1s<1%", "no swipe was counted"), ("rebuffering<1%", "nothing was watched"),
      ("rung.mean>1Mbit", "no rung with a stated bit rate was shown"),
      ("bytes.wasted<20%", "nothing was fetched"), ("frames.wasted<20%", "no frame was decoded"),
    ])
  func absent(text: String, reason: String) throws {
    let outcome = try WalkAssertion(parsing: text).evaluate(.empty)
    #expect(!outcome.isMet)
    #expect(outcome.description == "\(text): not met, \(reason)")
  }

  @Test("What happened no times is 0, and has a figure")
  func zero() throws {
    for text in ["stalls.max<1s", "stalls.count<=0", "failed<=0", "bytes.wasted<1MB"] {
      #expect(try WalkAssertion(parsing: text).evaluate(.empty).isMet)
    }
  }

  @Test("Outcomes in words")
  func description() throws {
    #expect(
      try WalkAssertion(parsing: "second_frame.hit.p50 < 1s").evaluate(.sample()).description
        == "second_frame.hit.p50 < 1s: met, 33 ms")
    #expect(
      try WalkAssertion(parsing: "hit.ratio>=90%").evaluate(.sample()).description
        == "hit.ratio>=90%: not met, 60 %")
    #expect(
      try WalkAssertion(parsing: "memory.slot<=10.9999MB").evaluate(.sample()).description
        == "memory.slot<=10.9999MB: not met, 11000000 B")
  }

  @Test(
    "What is no assertion",
    arguments: [
      "", "first_frame.p95", "first_frame.p95 150ms", "first_frame.p95!=150ms", "first_frame.p95<>150ms",
      "first_frame.p95=<150ms", "<150ms",
      "first_frame.p96<1s",
      "first_frame<1s", "first_frame.p95<", "first_frame.p95<150", "first_frame.p95<150MB",
      "first_frame.p95<-1ms", "first_frame.p95<1e3ms",
      "first_frame.p95<nan",
      "stalls.count<1.5", "stalls.count<1s", "memory.slot<30", "memory.slot<30Mbit", "hit.ratio>=0.9",
      "hit.ratio>=90",
      "bytes.wasted<20", "rung.mean>1", "rung.mean>1MB", "rung.switches<1%", "rebuffering<1s",
      "failed<1%", "first_frame.p95<99999999s", "first_frame.p95<1s<2s",
    ])
  func malformed(text: String) {
    let error = #expect(throws: ReelError.self) { try WalkAssertion(parsing: text) }
    #expect(error?.kind == .usage)
    #expect(error?.advice != nil)
  }

  @Test("A message says what was meant, or what there is")
  func advice() {
    let unknown = #expect(throws: ReelError.self) { try WalkAssertion(parsing: "firt_frame.p95<1s") }
    #expect(unknown?.advice == "did you mean first_frame.p95? reel feed --help lists the metrics")
    let far = #expect(throws: ReelError.self) { try WalkAssertion(parsing: "foo<3") }
    #expect(far?.description == "\"foo\" is not a metric; reel feed --help lists the metrics")
    let unit = #expect(throws: ReelError.self) { try WalkAssertion(parsing: "bytes.wasted<20ms") }
    #expect(unit?.advice == "it takes a share in percent, as 90%, or a size with a unit, as 10MB")
  }

  @Test("Every metric has a name of its own, and a figure of each of its kinds")
  func metrics() {
    let totals = WalkReport.sample().totals
    #expect(Set(WalkFigures.all.map(\.name)).count == WalkFigures.all.count)
    for metric in WalkFigures.all {
      #expect(!metric.meaning.isEmpty)
      for kind in WalkValue.Kind.allCases {
        #expect(metric.value(in: totals, as: kind)?.kind == (metric.kinds.contains(kind) ? kind : nil))
      }
    }
  }
}
