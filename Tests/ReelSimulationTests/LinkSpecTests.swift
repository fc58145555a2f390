import ReelCore
import ReelSimulation
import Testing

@Suite("Bit rates")
struct BitRateTests {
  @Test(
    "Units and plain numbers",
    arguments: [
      ("3Mbit", 3_000_000), ("800k", 800_000), ("2.5Mbit", 2_500_000), ("1000", 1_000), ("1G", 1_000_000_000),
      ("10 Mbit/s", 10_000_000), ("64kbps", 64_000), (" 5mbit ", 5_000_000), ("1bit", 1), ("56Kbits", 56_000),
      ("3Mb", 3_000_000), ("3mb/s", 3_000_000),
    ])
  func sound(text: String, bitsPerSecond: Int64) throws {
    #expect(try BitRate(parsing: text).bitsPerSecond == bitsPerSecond)
  }

  @Test(
    "What is no rate",
    arguments: [
      "", "M", "fast", "-5M", "0", "0.1", "5MB", "5Mbyte", "1e9", "5 5", "nan", "inf", "99999999999999999",
      "1.2.3M", "10Mbit/50ms", "3MB/s", "5B",
    ])
  func malformed(text: String) {
    #expect(throws: ReelError.self) { try BitRate(parsing: text) }
  }

  @Test("As text, in the largest unit")
  func description() throws {
    #expect(try BitRate(parsing: "2500k").description == "2.5 Mbit/s")
    #expect(try BitRate(parsing: "3M").description == "3 Mbit/s")
    #expect(try BitRate(parsing: "999").description == "999 bit/s")
    #expect(try BitRate(parsing: "1G").description == "1 Gbit/s")
  }
}

@Suite("Links")
struct LinkSpecTests {
  @Test(
    "Rate and round trip",
    arguments: [
      ("10Mbit/50ms", 10_000_000, Duration.milliseconds(50)), ("800k/0.3s", 800_000, .milliseconds(300)),
      ("10Mbit/s/50ms", 10_000_000, .milliseconds(50)), ("1000000/0ms", 1_000_000, .zero),
      ("1G/250us", 1_000_000_000, .microseconds(250)), (" 5M / 10 ms ", 5_000_000, .milliseconds(10)),
    ])
  func sound(text: String, bitsPerSecond: Int64, roundTripTime: Duration) throws {
    let link = try LinkSpec(parsing: text)
    #expect(link.bitsPerSecond == bitsPerSecond)
    #expect(link.roundTripTime == roundTripTime)
  }

  @Test("Profiles by name")
  func profiles() throws {
    #expect(
      try LinkSpec(parsing: "3g") == LinkSpec(bitsPerSecond: 1_600_000, roundTripTime: .milliseconds(300)))
    #expect(
      try LinkSpec(parsing: "LTE") == LinkSpec(bitsPerSecond: 12_000_000, roundTripTime: .milliseconds(70)))
    #expect(try LinkSpec(parsing: "wifi") == .wifi)
    #expect(LinkSpec.profiles.map(\.name) == ["3g", "lte", "wifi"])
  }

  @Test(
    "What is no link",
    arguments: [
      "", "10Mbit", "/50ms", "10Mbit/", "10Mbit/50", "10Mbit/-5ms", "0/50ms", "5g", "10Mbit/99999s",
    ])
  func malformed(text: String) throws {
    let error = #expect(throws: ReelError.self) { try LinkSpec(parsing: text) }
    #expect(error?.kind == .usage)
  }

  @Test("Options")
  func options() throws {
    let plain = try LinkSpec(parsing: "10Mbit/50ms")
    #expect(plain.features.isEmpty && plain.modelledWords == "ideal")
    #expect(plain.jitter == .zero)
    let all = try LinkSpec(parsing: "10Mbit/50ms, TCP,tls,dns,jitter=10ms,scale=0.5,rtt=0.2s,start=1.5min")
    #expect(all.features == .all && all.modelledWords == "slow start, TLS, DNS")
    #expect(all.jitter == .milliseconds(10))
    #expect(all.bitsPerSecond == 5_000_000)
    #expect(all.roundTripTime == .milliseconds(200))
    #expect(all.start == .seconds(90))
    let drawn = try LinkSpec(parsing: "lte,start=seed")
    #expect(drawn.drawsStart)
    #expect(drawn.bitsPerSecond == LinkSpec.lte.bitsPerSecond)
    #expect(try LinkSpec(parsing: "3g,start=30").start == .seconds(30))
    #expect(try LinkSpec(parsing: "3g,start=1:30").start == .seconds(90))
    #expect(try LinkSpec(parsing: "3g,rtt=0.05s").roundTripTime == .milliseconds(50))
  }

  @Test(
    "A link models what it names, and what its user expects unless it is ideal",
    arguments: [
      ("", .all, []), (",tcp", .all, .tcp), (",tls,dns,tcp", .all, .all), (",ideal", [], []),
      (",ideal,tcp", .tcp, .tcp), (",dns,scale=2,Ideal", .dns, .dns),
    ] as [(String, LinkFeatures, LinkFeatures)])
  func ideal(options: String, features: LinkFeatures, named: LinkFeatures) throws {
    let links = try LinkArgument(parsing: "lte\(options)", unlessIdeal: .all).links(seed: 1)
    #expect(links.map(\.spec.features) == [features])
    #expect(try LinkSpec(parsing: "lte\(options)").features == named)
  }

  @Test(
    "What is no option",
    arguments: [
      "", "udp", "tcp=1", "tcp,tcp", "ideal,ideal", "ideal=1", "scale=0", "scale=-1", "scale=nan",
      "scale=inf", "scale=", "scale=1e3",
      "scale=9999999", "scale", "rtt=5", "rtt=-5ms", "rtt=2h", "jitter=", "jitter=10", "start=never",
      "start=-1",
      "start=99999999999", "rtt=1ms,RTT=2ms", "scale=0.000001,scale=2", "tcp,",
    ])
  func badOptions(text: String) {
    let error = #expect(throws: ReelError.self) { try LinkSpec(parsing: "10Mbit/50ms," + text) }
    #expect(error?.kind == .usage)
  }

  @Test("A scaled rate has limits")
  func scaleLimits() {
    #expect(throws: ReelError.self) { try LinkSpec(parsing: "1000/50ms,scale=0.0001") }
    #expect(throws: ReelError.self) { try LinkSpec(parsing: "1000G/50ms,scale=1000") }
  }

  @Test("As text")
  func description() throws {
    #expect(try LinkSpec(parsing: "10Mbit/50ms").description == "10 Mbit/s, 50 ms")
    #expect(try LinkSpec(parsing: "10Mbit/250us").description == "10 Mbit/s, 0.25 ms")
  }

  @Test("Values that make no sense")
  func invalid() {
    #expect(throws: ReelError.self) { try LinkSpec(bitsPerSecond: 0, roundTripTime: .zero) }
    #expect(throws: ReelError.self) { try LinkSpec(bitsPerSecond: 1, roundTripTime: .milliseconds(-1)) }
  }
}
