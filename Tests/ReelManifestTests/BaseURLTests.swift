import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

@Suite struct BaseURLTests {
  private func presentation(_ bases: String, _ set: String = "", _ segments: String) throws -> Presentation {
    try dashPresentation(
      """
      <MPD mediaPresentationDuration="PT4S">\(bases)<Period><AdaptationSet mimeType="video/mp4">\(set)
      \(segments)<Representation id="v"/></AdaptationSet></Period></MPD>
      """)
  }

  private let template = #"<SegmentTemplate media="$Number$" initialization="i" duration="2"/>"#
  private let two = "<BaseURL>https://a.example/</BaseURL><BaseURL>https://b.example/x/</BaseURL>"

  @Test func theSameBytesAreElsewhere() throws {
    let segments = try presentation(two, "", template).segments()
    #expect(segments.urls == ["https://a.example/1", "https://a.example/2"])
    try #require(segments.count > 1)
    #expect(segments[1].alternateURLs.map(\.absoluteString) == ["https://b.example/x/2"])
    #expect(
      segments[0].initialization?.alternateURLs.map(\.absoluteString) == ["https://b.example/x/i"])
  }

  @Test func oneBaseURLHasNoAlternates() throws {
    let segments = try presentation("<BaseURL>https://a.example/</BaseURL>", "", template).segments()
    #expect(segments.allSatisfy { $0.alternateURLs.isEmpty })
  }

  @Test func levelsMultiplyOrReplace() throws {
    let relative = "<BaseURL>p/</BaseURL><BaseURL>q/</BaseURL>"
    let multiplied = try presentation(two, relative, template).segments()[0]
    #expect(multiplied.url.absoluteString == "https://a.example/p/1")
    #expect(
      multiplied.alternateURLs.map(\.absoluteString) == [
        "https://a.example/q/1", "https://b.example/x/p/1", "https://b.example/x/q/1",
      ])
    let absolute = "<BaseURL>https://c.example/</BaseURL>"
    let replaced = try presentation(two, absolute, template).segments()[0]
    #expect(replaced.url.absoluteString == "https://c.example/1")
    #expect(replaced.alternateURLs.isEmpty)
  }

  @Test func theyAreBounded() throws {
    let many = (0..<100).map { "<BaseURL>https://h\($0).example/</BaseURL>" }.joined()
    let relative = (0..<100).map { "<BaseURL>\($0)/</BaseURL>" }.joined()
    #expect(try presentation(many, relative, template).segments()[0].alternateURLs.count == 7)
  }

  @Test func manyElementsShareABudget() throws {
    let representation = "<Representation id='v'><BaseURL>a/</BaseURL><BaseURL>b/</BaseURL></Representation>"
    let sets = String(repeating: representation, count: 7200)
    let presentation = try dashPresentation(
      """
      <MPD mediaPresentationDuration="PT4S">\(two)<BaseURL>https://c.example/</BaseURL>
      <BaseURL>https://d.example/</BaseURL><Period><AdaptationSet>\(template)\(sets)</AdaptationSet></Period></MPD>
      """)
    let rungs = try #require(presentation.periods.first?.trackGroups.first?.rungs)
    #expect(rungs.count == 7200)
    #expect(rungs.first?.media.segments?.first?.alternateURLs.count == 7)
    #expect(rungs.last?.media.segments?.first?.url.absoluteString == "https://a.example/a/1")
    #expect(rungs.last?.media.segments?.first?.alternateURLs == [])
  }

  @Test func prioritiesAndWeightsOrderThem() throws {
    let bases = """
      <BaseURL dvb:priority="2">https://a.example/</BaseURL><BaseURL dvb:weight="5">https://b.example/</BaseURL>
      <BaseURL dvb:priority="1" dvb:weight="9">https://c.example/</BaseURL><BaseURL>https://d.example/</BaseURL>
      """
    let segment = try presentation(bases, "", template).segments()[0]
    #expect(
      ([segment.url] + segment.alternateURLs).map(\.host) == [
        "c.example", "b.example", "d.example", "a.example",
      ])
  }

  @Test func oneThatLeadsNowhereIsPassedOver() throws {
    let bases = "<BaseURL>file:///etc/</BaseURL><BaseURL>https://b.example/</BaseURL><BaseURL/>"
    let presentation = try presentation(bases, "", template)
    #expect(try presentation.segments().urls[0] == "https://b.example/1")
    #expect(presentation.warnings.map(\.place) == [.element("MPD")])
  }

  @Test func filesHaveAlternatesToo() throws {
    let files = "<BaseURL>v.mp4</BaseURL>"
    let presentation = try presentation(
      two, files, #"<SegmentBase indexRange="1-2"><Initialization range="0-0"/></SegmentBase>"#)
    let index = try #require(presentation.periods.first?.trackGroups.first?.rungs.first?.media.index)
    #expect(index.alternateURLs.map(\.absoluteString) == ["https://b.example/x/v.mp4"])
    #expect(index.initialization?.alternateURLs == index.alternateURLs)
    let absolute = #"<SegmentTemplate media="https://z.example/$Number$" duration="2"/>"#
    #expect(try self.presentation(two, "", absolute).segments()[0].alternateURLs.isEmpty)
  }
}
