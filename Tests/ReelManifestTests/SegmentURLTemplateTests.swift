import ReelCore
import ReelTestSupport
import Testing

@testable import ReelManifest

@Suite struct SegmentURLTemplateTests {
  @Test(arguments: [
    ("$Number$", "7"), ("$Number%05d$.m4s", "00007.m4s"), ("a$$b$Time$", "a$b9000000000"),
    ("$Time%03d$", "9000000000"),
    ("$RepresentationID$/$Bandwidth%08d$/x", "v/$1/00002500/x"), ("$Number$-$SubNumber%02d$", "7-03"),
    ("plain", "plain"),
    ("$Number%d$", "7"), ("$Time%012x$", "000218711a00"), ("$Time%X$", "218711A00"), ("", ""),
  ])
  func fillsIn(template: String, text: String) throws {
    let compiled = try SegmentURLTemplate(template, representationID: "v/$1", bandwidth: 2500)
    #expect(compiled.text(number: 7, time: 9_000_000_000, subNumber: 3) == text)
  }

  @Test(arguments: [
    "$", "$Number", "$number$", "$Number%$", "$Number%0-5d$", "$Number%99d$", "$Number%5.2d$",
  ])
  func refuses(template: String) {
    #expect(
      manifestError { _ = try SegmentURLTemplate(template, representationID: "v", bandwidth: 1) } != nil)
  }

  @Test func asksForWhatItNeeds() {
    #expect(
      manifestError { _ = try SegmentURLTemplate("$Bandwidth$", representationID: "v", bandwidth: nil) }
        != nil)
    #expect(
      manifestError { _ = try SegmentURLTemplate("$RepresentationID$", representationID: nil, bandwidth: 1) }
        != nil)
  }
}
