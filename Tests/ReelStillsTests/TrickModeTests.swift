import Foundation
import ReelCore
import ReelFFmpeg
import ReelReading
import ReelTestSupport
import Testing

@testable import ReelSources
@testable import ReelStills

@Suite("Rungs for trick mode as sources of stills", .hangLimit)
struct TrickModeTests {
  /// An MPD of the rung `high`, and of `low` for trick mode.
  private func mpd(property: String = "", size: String = #"width="160" height="90""#) -> [UInt8] {
    let template =
      #"<SegmentTemplate timescale="1" duration="1" startNumber="0" initialization="$RepresentationID$/init.mp4" "#
      + #"media="$RepresentationID$/segment-$Number$.m4s"/>"#
    return Array(
      """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT6S"><Period>
      <AdaptationSet mimeType="video/mp4">\(template)
      <Representation id="high" codecs="avc1.64000d" width="320" height="180" bandwidth="1200000"/></AdaptationSet>
      <AdaptationSet mimeType="video/mp4">
      <EssentialProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>\(property)\(template)
      <Representation id="low" codecs="avc1.64000b" \(size) bandwidth="400000"/></AdaptationSet>
      </Period></MPD>
      """.utf8)
  }

  private func storyboard(_ mpd: [UInt8], width: Int) async throws -> (
    times: [Double], rung: String?, track: StillTrack?
  ) {
    let fetcher = FixtureFetcher { request, _ in
      request.url.pathExtension == "mpd" ? .bytes(mpd) : .none
    }
    let made = try await makeStoryboard(
      of: MediaSource(argument: "http://stills.test/stills/trick.mpd"), from: fetcher, size: .square(width))
    return (made.times, made.storyboard.rung?.id, made.storyboard.track)
  }

  @Test("Taken if the frames are large enough")
  func taken() async throws {
    let small = try await storyboard(mpd(), width: 160)
    #expect(small.times.count == 6)
    #expect(small.rung == "low")
    #expect(try await storyboard(mpd(), width: 320).rung == "high")
    #expect(try await storyboard(mpd(size: ""), width: 160).rung == "high")
  }

  @Test("Not taken with a property that is not understood")
  func notUnderstood() async throws {
    let property = #"<EssentialProperty schemeIdUri="urn:unknown" value="1"/>"#
    #expect(try await storyboard(mpd(property: property), width: 160).rung == "high")
  }

  @Test("A poster is made of one, too")
  func poster() async throws {
    let mpd = mpd()
    let fetcher = FixtureFetcher { request, _ in
      request.url.pathExtension == "mpd" ? .bytes(mpd) : .none
    }
    let extractor = StillExtractor(
      TrackOpener(fetcher: fetcher, configuration: LoadingConfiguration(), logger: silentLogger),
      size: .square(160))
    let made = try await extractor.poster(
      .best(of: 6), of: MediaSource(argument: "http://stills.test/stills/trick.mpd")
    ) { $0.candidates.count }
    #expect(made.poster.rung?.id == "low")
    #expect(made.result == 6)
  }

  @Test("An MPD with nothing but trick mode has stills, but is not played")
  func alone() async throws {
    let property = #"<EssentialProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>"#
    let template =
      #"<SegmentTemplate timescale="1" duration="1" startNumber="0" initialization="$RepresentationID$/init.mp4" "#
      + #"media="$RepresentationID$/segment-$Number$.m4s"/>"#
    let mpd = Array(
      """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT6S"><Period>
      <AdaptationSet mimeType="video/mp4">\(property)\(template)
      <Representation id="low" codecs="avc1.64000b" width="160" height="90" bandwidth="400000"/></AdaptationSet>
      </Period></MPD>
      """.utf8)
    let fetcher = FixtureFetcher { request, _ in
      request.url.pathExtension == "mpd" ? .bytes(mpd) : .none
    }
    let source = try MediaSource(argument: "http://stills.test/stills/trick.mpd")
    #expect(try await storyboard(mpd, width: 160).track == .keyFrames)
    let extractor = StillExtractor(
      TrackOpener(fetcher: fetcher, configuration: LoadingConfiguration(), logger: silentLogger),
      size: .square(160))
    #expect(try await extractor.poster(.best(of: 6), of: source) { _ in }.poster.track == .keyFrames)
    let error = await #expect(throws: ReelError.self) {
      _ = try await extract(.first, from: source, fetcher: fetcher)
    }
    #expect(
      error?.reason == "the only video is for trick mode (fast forward and rewind), which is not played")
    #expect(error?.advice != nil)
  }

  @Test("A playlist of I-frames without its master: every frame, and no fault")
  func iFramesAlone() async throws {
    let extraction = try await extract(.count(0), path: "stills/i-frames.m3u8")
    #expect(extraction.report.faults.isEmpty, "\(extraction.report.faults)")
    #expect(extraction.report.damagedCount == 0)
    #expect(extraction.frames.count == 6)
  }
}
