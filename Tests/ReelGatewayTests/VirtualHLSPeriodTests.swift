import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import ReelGateway
import Testing

@Suite struct VirtualHLSPeriodTests {
  /// The second period has no sound, other ids, and a length that its segments do not fit.
  @Test func periods() throws {
    let hls = try virtualHLS(
      mpdOfPeriods([
        (
          4.5,
          set(
            #"contentType="video""#,
            template + rung("lo", 300_000, "avc1.64000b") + rung("hi", 700_000, "avc1.64000c"))
            + set(#"contentType="audio" lang="en""#, template + rung("a", 32_000, "mp4a.40.2"))
        ),
        (
          5,
          set(
            #"contentType="video""#,
            template + rung("x", 600_000, "avc1.64001f", #"width="320" height="180""#))
        ),
        (
          2,
          set(
            #"contentType="video""#,
            template + rung("hi", 100_000, "avc1.64000c") + rung("lo", 200_000, "avc1.64000b"))
            + set(#"contentType="audio" lang="en""#, template + rung("a", 32_000, "mp4a.40.2"))
        ),
      ]))
    #expect(
      hls.multivariantPlaylist() == """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio-0",LANGUAGE="en",NAME="en",DEFAULT=YES,AUTOSELECT=YES,URI="audio-0.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=632000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=320x180,AUDIO="audio-0"
        video-0.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=732000,CODECS="avc1.64000c,mp4a.40.2",RESOLUTION=320x180,AUDIO="audio-0"
        video-1.m3u8

        """)
    let video = try #require(hls.track(named: "video-1"))
    #expect(
      hls.mediaPlaylist(of: video) { String($0.url.path().dropFirst(5)) } == """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-TARGETDURATION:4
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXT-X-MAP:URI="hi/init.mp4"
        #EXTINF:4,
        hi/1.m4s
        #EXTINF:0.5,
        hi/2.m4s
        #EXT-X-DISCONTINUITY
        #EXT-X-MAP:URI="x/init.mp4"
        #EXTINF:4,
        x/1.m4s
        #EXTINF:1,
        x/2.m4s
        #EXT-X-DISCONTINUITY
        #EXT-X-MAP:URI="hi/init.mp4"
        #EXTINF:2,
        hi/1.m4s
        #EXT-X-ENDLIST

        """)
    #expect(
      try hls.playlist("audio-0") == """
        #EXTM3U
        #EXT-X-VERSION:8
        #EXT-X-TARGETDURATION:4
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXT-X-INDEPENDENT-SEGMENTS
        #EXT-X-MAP:URI="init-0.mp4"
        #EXTINF:4,
        0.m4s
        #EXTINF:0.5,
        1.m4s
        #EXT-X-DISCONTINUITY
        #EXT-X-GAP
        #EXTINF:4,
        2.m4s
        #EXT-X-GAP
        #EXTINF:1,
        3.m4s
        #EXT-X-DISCONTINUITY
        #EXT-X-MAP:URI="init-0.mp4"
        #EXTINF:2,
        4.m4s
        #EXT-X-ENDLIST

        """)
    let audio = try #require(hls.track(named: "audio-0"))
    // A player that minds no gap gets a segment with nothing in it.
    #expect(audio.segment(named: "2.m4s")?.url.absoluteString == "data:video/mp4;base64,AAAACGZyZWU=")
    #expect(audio.segment(named: "4.m4s")?.url.lastPathComponent == "1.m4s")
  }

  /// Sound that begins with a gap has the map of what follows: a player knows what it is.
  @Test func gapAtTheBeginning() throws {
    let video = set(#"contentType="video""#, template + rung("v", 300_000, "avc1.64000b"))
    let hls = try virtualHLS(
      mpdOfPeriods([
        (2, video), (2, video + set(#"contentType="audio""#, template + rung("a", 32_000, "mp4a.40.2"))),
      ]))
    #expect(
      try hls.playlist("audio-0") == """
        #EXTM3U
        #EXT-X-VERSION:8
        #EXT-X-TARGETDURATION:2
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXT-X-INDEPENDENT-SEGMENTS
        #EXT-X-MAP:URI="init-0.mp4"
        #EXT-X-GAP
        #EXTINF:2,
        0.m4s
        #EXT-X-DISCONTINUITY
        #EXT-X-MAP:URI="init-0.mp4"
        #EXTINF:2,
        1.m4s
        #EXT-X-ENDLIST

        """)
  }

  /// A language goes on as itself, and one that a period lacks as the nearest thing.
  @Test func languages() throws {
    func audio(_ language: String, _ id: String) -> String {
      set(#"contentType="audio" lang="\#(language)""#, template + rung(id, 32_000, "mp4a.40.2"))
    }
    let hls = try virtualHLS(
      mpdOfPeriods([
        (4, audio("en", "1") + audio("fr", "2")), (4, audio("fr", "1") + audio("en-US", "2")),
        (4, audio("de", "1")),
      ]))
    let ways: [[String]] = hls.tracks.map { track in
      let text = hls.mediaPlaylist(of: track) { String($0.url.path().dropFirst(5)) }
      return text.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
    }
    // en, fr, en-US, de: by what there is first.
    #expect(hls.tracks.map(\.language) == ["en", "fr", "en-US", "de"])
    #expect(
      ways == [
        ["1/1.m4s", "2/1.m4s", "1/1.m4s"], ["2/1.m4s", "1/1.m4s", "1/1.m4s"],
        ["1/1.m4s", "2/1.m4s", "1/1.m4s"], ["1/1.m4s", "1/1.m4s", "1/1.m4s"],
      ])
  }

  /// What lasts without anything to show is passed over.
  @Test func emptyPeriod() throws {
    let video = set(#"contentType="video""#, template + rung("v", 300_000, "avc1.64000b"))
    let text = set(
      #"mimeType="text/vtt""#, #"<Representation id="t"><BaseURL>t.vtt</BaseURL></Representation>"#)
    let hls = try virtualHLS(mpdOfPeriods([(4, video), (4, text), (4, video)]))
    #expect(hls.tracks.map(\.name) == ["video-0"])
    #expect(
      try hls.playlist("video-0").split(separator: "\n").filter { $0.hasPrefix("#EXTINF") }.count == 2)
  }
}

/// An MPD with these periods, each of so many seconds.
private func mpdOfPeriods(_ list: [(seconds: Double, content: String)]) -> String {
  let elements = list.map { "<Period duration=\"PT\($0.seconds)S\">\($0.content)</Period>" }.joined()
  return #"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static">\#(elements)</MPD>"#
}
