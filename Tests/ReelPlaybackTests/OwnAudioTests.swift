import Foundation
import ReelCore
import ReelFFmpeg
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPlayback
import ReelSources

/// Video with its own audio in its segments, beside audio that has segments of its own.
@Suite("Audio in the segments of the video", .hangLimit)
struct OwnAudioTests {
  private final class Sound: AudioOutput {
    private let count = Locked(0)

    var sampleCount: Int { count.withLock { $0 } }

    func write(_ audio: TimedAudio) { count.withLock { $0 += audio.buffer.frameCount } }

    func finish() {}
  }

  private static let header = "#EXTM3U\n"
  private static let other = "../hls-fmp4/audio/index.m3u8"

  private static func rendition(_ group: String, _ attributes: String, uri: Bool = false) -> String {
    "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"\(group)\",NAME=\"\(uri ? "other" : "own")\",\(attributes)"
      + (uri ? ",URI=\"\(other)\"\n" : "\n")
  }

  private static func variant(
    _ attributes: String = "", codecs: String? = "avc1.64000b,mp4a.40.2", path: String = "low/index.m3u8"
  ) -> String {
    "#EXT-X-STREAM-INF:BANDWIDTH=400000\(codecs.map { ",CODECS=\"\($0)\"" } ?? "")\(attributes)\n\(path)\n"
  }

  private static let audioOnly = variant(codecs: "mp4a.40.2", path: other)

  /// Plays a manifest beside the segments of `hls-ts`, which have audio, and returns true if the audio comes from them.
  private func playsOwnAudio(
    _ text: String, name: String = "hls-ts/own.m3u8", languages: [String] = [], peakBitRate: Int = 3_000_000
  ) async throws -> Bool {
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.hasSuffix(name) ? .bytes(Array(text.utf8)) : .none
    }
    let stage = try SimulatedStage(name, fetcher: fetcher) {
      $0.loading.audioLanguages = languages
      $0.loading.preferredPeakBitRate = peakBitRate
    }
    let sound = Sound()
    stage.player.attach(sound)
    stage.begin(rate: .infinity)
    let end = try await stage.end()
    if case .playedToEnd = end {} else { Issue.record("\(end)") }
    #expect(sound.sampleCount > 24_000)
    #expect(stage.item.errorLog.allSatisfy { $0.loss == nil }, "\(stage.item.errorLog)")
    try await stage.close()
    return !fetcher.requests.contains { $0.url.path.contains("audio") }
  }

  @Test("A rendition without a URI is chosen by its attributes, like any other")
  func rendition() async throws {
    let own = Self.rendition("a", "LANGUAGE=\"en\",DEFAULT=YES,AUTOSELECT=YES")
    let german = Self.rendition("a", "LANGUAGE=\"de\",DEFAULT=NO,AUTOSELECT=YES", uri: true)
    let text = Self.header + own + german + Self.variant(",AUDIO=\"a\"")
    #expect(try await playsOwnAudio(text))
    #expect(try await playsOwnAudio(text, languages: ["en"]))
    #expect(try await !playsOwnAudio(text, languages: ["de"]))
    #expect(try await playsOwnAudio(text, languages: ["fr"]))
  }

  @Test(
    "The default goes before what may be chosen by itself, and that before the rest",
    arguments: [
      ("DEFAULT=NO,AUTOSELECT=YES", "DEFAULT=YES,AUTOSELECT=YES", false),
      ("DEFAULT=NO,AUTOSELECT=NO", "DEFAULT=NO,AUTOSELECT=YES", false),
      ("DEFAULT=NO,AUTOSELECT=YES", "DEFAULT=NO,AUTOSELECT=NO", true),
      ("DEFAULT=NO", "DEFAULT=NO", true),
    ])
  func attributes(own: String, other: String, isOwn: Bool) async throws {
    let renditions = Self.rendition("a", other, uri: true) + Self.rendition("a", own)
    #expect(try await playsOwnAudio(Self.header + renditions + Self.variant(",AUDIO=\"a\"")) == isOwn)
  }

  @Test(
    "A variant without a group, or whose group does not exist, has its own audio",
    arguments: [
      "", ",AUDIO=\"missing\"",
    ])
  func noGroup(attribute: String) async throws {
    let unnamed = Self.rendition("b", "LANGUAGE=\"de\",DEFAULT=YES,AUTOSELECT=YES", uri: true)
    for codecs in ["avc1.64000b,mp4a.40.2", nil] {
      let variant = Self.variant(attribute, codecs: codecs)
      #expect(try await playsOwnAudio(Self.header + unnamed + variant, languages: ["de"]))
      #expect(try await playsOwnAudio(Self.header + variant + Self.audioOnly))
    }
  }

  @Test(
    "Of variants with and without audio of their own, the chosen one decides",
    arguments: [200_000, 3_000_000])
  func mixture(peakBitRate: Int) async throws {
    let low = Self.variant().replacing("400000", with: "100000")
    let high = Self.variant(",AUDIO=\"a\"", path: "high/index.m3u8")
    let text = Self.header + Self.rendition("a", "DEFAULT=YES", uri: true) + low + high
    #expect(try await playsOwnAudio(text, peakBitRate: peakBitRate) == (peakBitRate < 400_000))
  }

  @Test("A group whose renditions all have a URI is not in the variant's segments")
  func separate() async throws {
    let text = Self.header + Self.rendition("a", "DEFAULT=NO", uri: true) + Self.variant(",AUDIO=\"a\"")
    #expect(try await !playsOwnAudio(text))
  }

  @Test(
    "In DASH, a Representation with audio keeps it unless another set fits better",
    arguments: [
      (#"<Role schemeIdUri="urn:mpeg:dash:role:2011" value="commentary"/>"#, [], true), ("", [], true),
      (#"<Role schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>"#, [], false), ("", ["de"], false),
      ("", ["en"], true),
    ])
  func dash(role: String, languages: [String], isOwn: Bool) async throws {
    let text = mpd(
      """
      <AdaptationSet mimeType="audio/mp4" lang="de">\(role)<Representation id="a" bandwidth="32000"
       codecs="mp4a.40.2"><BaseURL>audio.mp4</BaseURL></Representation></AdaptationSet>
      <AdaptationSet mimeType="video/mp4"><Representation id="v" bandwidth="300000" codecs="avc1.64000c,mp4a.40.2">
      <BaseURL>../media/h264-fragmented.mp4</BaseURL></Representation></AdaptationSet>
      """, attributes: #"type="static" mediaPresentationDuration="PT1S""#)
    #expect(try await playsOwnAudio(text, name: "dash-ondemand/own.mpd", languages: languages) == isOwn)
  }
}
