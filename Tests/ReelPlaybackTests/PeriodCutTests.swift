import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelReading
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelSources

/// Media before the start of its period, or after its end, is not presented (ISO/IEC 23009-1 §5.3.9.6).
@Suite("Media outside of its period", .hangLimit)
struct PeriodCutTests {
  /// One period: the part of the media of `dash-number` that it shows.
  struct Part: Sendable {
    /// In milliseconds of the media.
    var range: Range<Int>
    var firstSegment: Int
  }

  /// A presentation of these periods, with video and audio.
  private func presentation(_ parts: [Part], usesDelta: Bool) -> (
    source: MediaSource, fetcher: FixtureFetcher
  ) {
    let periods = parts.map { part in
      let start = part.range.lowerBound
      let first = (part.firstSegment - 1) * 1000
      let timing =
        usesDelta
        ? "duration=\"1000\" eptDelta=\"\(first - start)\""
        : ""
      let timeline =
        usesDelta
        ? ""
        : "<SegmentTimeline><S t=\"\(first)\" d=\"1000\" r=\"\((part.range.upperBound - first + 999) / 1000 - 1)\"/></SegmentTimeline>"
      let template = """
        <SegmentTemplate timescale="1000" startNumber="\(part.firstSegment)" \(timing)
         presentationTimeOffset="\(start)" initialization="$RepresentationID$/init.mp4"
         media="$RepresentationID$/segment-$Number%05d$.m4s">\(timeline)</SegmentTemplate>
        """
      let seconds = Double(part.range.count) / 1000
      return """
        <Period duration="PT\(seconds)S"><AdaptationSet mimeType="video/mp4">\(template)
        <Representation id="0" bandwidth="300000" codecs="avc1.64000b"/></AdaptationSet>
        <AdaptationSet mimeType="audio/mp4">\(template)<Representation id="2" bandwidth="32000"
         codecs="mp4a.40.2"/></AdaptationSet></Period>
        """
    }
    let length = Double(parts.map(\.range.count).reduce(0, +)) / 1000
    let text = """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT\(length)S" minBufferTime="PT1S">
      \(periods.joined())</MPD>
      """
    let fetcher = FixtureFetcher { request, _ in
      request.url.lastPathComponent == "cut.mpd" ? .bytes(Array(text.utf8)) : .none
    }
    let url = URL(string: "https://origin.example/dash-number/cut.mpd") ?? Fixtures.folder
    return (.url(url), fetcher)
  }

  /// The frames on show in parts of the media. Between two parts that follow each other, none is shown twice.
  private func expected(_ parts: [Part]) throws -> [String] {
    let golden = try Golden("dash-number-0")
    var hashes: [String] = []
    for part in parts {
      for (index, frame) in golden.frames.enumerated() {
        let (start, end) = (index * 1000 / 30, (index + 1) * 1000 / 30)
        if end > part.range.lowerBound, start < part.range.upperBound, hashes.last != frame.md5 {
          hashes.append(frame.md5)
        }
      }
    }
    return hashes
  }

  private static let cases = [
    [Part(range: 1500..<3000, firstSegment: 2)],
    [Part(range: 0..<1500, firstSegment: 1)],
    [Part(range: 1250..<2250, firstSegment: 2)],
    [Part(range: 0..<1500, firstSegment: 1), Part(range: 1500..<3000, firstSegment: 2)],
    [Part(range: 500..<1510, firstSegment: 1), Part(range: 1510..<2500, firstSegment: 2)],
    // Another part of the media comes first.
    [Part(range: 1500..<2500, firstSegment: 2), Part(range: 300..<1300, firstSegment: 1)],
  ]

  @Test("Frames, single times and playback have what is in the periods", arguments: cases, [true, false])
  func cut(parts: [Part], usesDelta: Bool) async throws {
    let (source, fetcher) = presentation(parts, usesDelta: usesDelta)
    let wanted = try expected(parts)
    let all = try await extract(.count(0), from: source, fetcher: fetcher).frames
    #expect(all.map(\.md5) == wanted)
    #expect(try await extract(.first, from: source, fetcher: fetcher).frames.map(\.md5) == [wanted[0]])
    let length = Double(parts.map(\.range.count).reduce(0, +)) / 1000
    for time in [0, 0.1, 0.5, 0.9, length - 0.05].map({ MediaTime(seconds: $0) }) {
      let frame = all.last { $0.time <= time } ?? all[0]
      #expect(
        try await extract(.times([time]), from: source, fetcher: fetcher).frames == [frame], "\(time.seconds)"
      )
    }
    let stage = try SimulatedStage(source, fetcher: fetcher)
    stage.begin(rate: .infinity)
    let end = try await stage.end()
    try await stage.close()
    #expect(stage.recording.all.map(\.md5) == wanted)
    guard case .playedToEnd(let time) = end else {
      Issue.record("\(end)")
      return
    }
    #expect(abs(time.seconds - length) < 0.05, "\(time.seconds)")
    #expect(!stage.eventNames.contains("gapSkipped"), "\(stage.events)")
    #expect(stage.item.errorLog.isEmpty)
  }

  @Test("Periods that end a little too early lose no frame", arguments: [2990, 2900])
  func rounded(end: Int) async throws {
    let (source, fetcher) = presentation([Part(range: 0..<end, firstSegment: 1)], usesDelta: false)
    #expect(try await extract(.count(0), from: source, fetcher: fetcher).frames.count == 90)
  }
}
