import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import ReelGateway
import Testing

@Suite struct VirtualHLSTests {
  @Test func imagesAreNoPartOfGeneratedPlaylists() throws {
    let image =
      #"<AdaptationSet contentType="image" mimeType="image/jpeg">\#(template)<Representation id="t"/></AdaptationSet>"#
    let metadata =
      #"<AdaptationSet mimeType="application/mp4" codecs="abcd">\#(template)<Representation id="m"/></AdaptationSet>"#
    for (set, name) in [(image, "thumbnail images are"), (metadata, "timed metadata is")] {
      let error = manifestError(.unsupported) { _ = try VirtualHLS(dashPresentation(mpd(set))) }
      #expect(
        error?.reason
          == "nothing in it can be presented as HLS: \(name) left out: only video, audio and subtitles are presented as HLS"
      )
    }
    let error = manifestError(.unsupported) {
      _ = try VirtualHLS(hlsPresentation("#EXTM3U\n#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=4200,URI=tiles.m3u8"))
    }
    #expect(error?.reason.contains("image playlists are left out: ") == true)
  }

  @Test func framesAndSound() throws {
    let hls = try virtualHLS(
      mpd(
        set(
          #"contentType="video" frameRate="30000/1001""#,
          template + rung("lo", 300_000, "avc1.64000b", #"width="160" height="90""#)
            + rung("hi", 700_000, "avc1.64000c", #"width="256" height="144""#))
          + set(
            #"contentType="audio" lang="en""#, template + rung("a", 32_000, "mp4a.40.2")), attributes: nine))
    #expect(
      hls.multivariantPlaylist() == """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio-0",LANGUAGE="en",NAME="en",DEFAULT=YES,AUTOSELECT=YES,URI="audio-0.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=332000,CODECS="avc1.64000b,mp4a.40.2",RESOLUTION=160x90,FRAME-RATE=29.970,AUDIO="audio-0"
        video-0.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=732000,CODECS="avc1.64000c,mp4a.40.2",RESOLUTION=256x144,FRAME-RATE=29.970,AUDIO="audio-0"
        video-1.m3u8

        """)
    #expect(
      try hls.playlist("video-1") == """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-TARGETDURATION:4
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXT-X-MAP:URI="init-0.mp4"
        #EXTINF:4,
        0.m4s
        #EXTINF:4,
        1.m4s
        #EXTINF:1,
        2.m4s
        #EXT-X-ENDLIST

        """)
    #expect(hls.tracks.map(\.name) == ["video-0", "video-1", "audio-0"])
    #expect(hls.tracks.map(\.kind) == [.video, .video, .audio])
    #expect(hls.tracks.map(\.segmentCount) == [3, 3, 3])
    #expect(hls.warnings.isEmpty)
  }

  @Test func references() throws {
    let hls = try virtualHLS(
      mpd(set(#"contentType="video""#, template + rung("v", 300_000, "avc1.64000b")), attributes: nine))
    let track = try #require(hls.track(named: "video-0"))
    #expect(
      hls.multivariantPlaylist { "/x/\($0.name)/index.m3u8" }.hasSuffix("\n/x/video-0/index.m3u8\n"))
    let text = hls.mediaPlaylist(of: track)
    #expect(text.contains("#EXT-X-MAP:URI=\"https://origin.example/a/b/v/init.mp4\"\n"))
    #expect(text.contains("\nhttps://origin.example/a/b/v/3.m4s\n"))
    let segment = try #require(track.segment(named: "2.m4s"))
    #expect(segment.url.absoluteString == "https://origin.example/a/b/v/3.m4s")
    #expect(segment.kind == .segment)
    #expect(segment.mediaType == "video/mp4")
    #expect(
      try hls.resources("video-0")["init-0.mp4"]?.url.absoluteString
        == "https://origin.example/a/b/v/init.mp4")
    for name in [
      "3.m4s", "-1.m4s", "02.m4s", "2.mp4", "2", "2.m4s.m4s", "", ".", "..", "init.mp4", "init-0.mp4",
      "99999999999999999999.m4s", "+2.m4s", "٢.m4s",
    ] {
      #expect(track.segment(named: name) == nil, "\(name)")
    }
  }

  @Test func byteRangesOfOneFile() throws {
    let list = """
      <BaseURL>all.mp4</BaseURL><SegmentList timescale="1000" duration="1500"><Initialization range="0-99"/>
      <SegmentURL mediaRange="100-299"/><SegmentURL mediaRange="300-349"/></SegmentList>
      """
    let hls = try virtualHLS(
      mpd(
        set(#"contentType="video""#, rung("v", 300_000, "avc1.64000b", content: list)),
        attributes: #"type="static" mediaPresentationDuration="PT3S""#))
    #expect(
      try hls.playlist("video-0") == """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-TARGETDURATION:2
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXT-X-MAP:URI="file-0.mp4",BYTERANGE="100@0"
        #EXTINF:1.5,
        #EXT-X-BYTERANGE:200@100
        file-0.mp4
        #EXTINF:1.5,
        #EXT-X-BYTERANGE:50@300
        file-0.mp4
        #EXT-X-ENDLIST

        """)
    let track = try #require(hls.track(named: "video-0"))
    #expect(try hls.resources("video-0")["file-0.mp4"]?.url.lastPathComponent == "all.mp4")
    #expect(track.segment(named: "0.m4s") == nil)
  }

  /// Thirds of a second can't be written down: the boundaries are rounded, so that 3 of them make a second.
  @Test func lengthsDoNotDrift() throws {
    let timeline = """
      <SegmentTemplate timescale="3" initialization="i" media="$Time$"><SegmentTimeline><S t="0" d="1" r="5"/>
      </SegmentTimeline></SegmentTemplate>
      """
    let hls = try virtualHLS(
      mpd(
        set(#"mimeType="video/mp4""#, timeline + rung("v", 1, "avc1.64000b")),
        attributes: #"type="static" mediaPresentationDuration="PT2S""#))
    let lengths = try hls.playlist("video-0").split(separator: "\n").filter { $0.hasPrefix("#EXTINF:") }
    let third = ["#EXTINF:0.333333333,", "#EXTINF:0.333333334,", "#EXTINF:0.333333333,"]
    #expect(lengths.map(String.init) == third + third)
  }

  /// A length that has to be rounded up for EXT-X-TARGETDURATION, in sound alone, counts for all.
  @Test func targetDurationIsOneForAll() throws {
    let long = """
      <SegmentTemplate timescale="2" initialization="i" media="$Number$"><SegmentTimeline><S t="0" d="9" r="1"/>
      </SegmentTimeline></SegmentTemplate>
      """
    let hls = try virtualHLS(
      mpd(
        set(#"contentType="video""#, template + rung("v", 1, "avc1.64000b"))
          + set(#"contentType="audio""#, long + rung("a", 1, "mp4a.40.2")), attributes: nine))
    #expect(try hls.playlist("video-0").contains("#EXT-X-TARGETDURATION:5\n"))
    #expect(try hls.playlist("audio-0").contains("#EXT-X-TARGETDURATION:5\n#"))
    #expect(try hls.playlist("audio-0").contains("#EXTINF:4.5,\n"))
  }

  /// A hole in a timeline belongs to the segment before it: what follows stays where it is.
  @Test func holesInATimeline() throws {
    let timeline = """
      <SegmentTemplate timescale="1" initialization="i" media="$Time$"><SegmentTimeline><S t="0" d="2"/><S t="5" d="2"/>
      </SegmentTimeline></SegmentTemplate>
      """
    let hls = try virtualHLS(
      mpd(set(#"mimeType="video/mp4""#, timeline + rung("v", 1, "avc1.64000b")), attributes: nine))
    let lengths = try hls.playlist("video-0").split(separator: "\n").filter { $0.hasPrefix("#EXTINF:") }
    #expect(lengths == ["#EXTINF:5,", "#EXTINF:2,"])
  }

  @Test func soundAlone() throws {
    let hls = try virtualHLS(
      mpd(
        set(
          #"contentType="audio" lang="en""#,
          template + rung("hi", 128_000, "mp4a.40.2") + rung("lo", 32_000, "mp4a.40.2"))
          + set(#"contentType="audio" lang="fr""#, template + rung("fr", 64_000, "mp4a.40.2")),
        attributes: nine))
    #expect(
      hls.multivariantPlaylist() == """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-INDEPENDENT-SEGMENTS
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio-0",LANGUAGE="en",NAME="en",DEFAULT=YES,AUTOSELECT=YES,URI="audio-1.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio-0",LANGUAGE="fr",NAME="fr",DEFAULT=NO,AUTOSELECT=YES,URI="audio-2.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio-1",LANGUAGE="en",NAME="en",DEFAULT=YES,AUTOSELECT=YES,URI="audio-0.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio-1",LANGUAGE="fr",NAME="fr",DEFAULT=NO,AUTOSELECT=YES,URI="audio-2.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.2",AUDIO="audio-0"
        audio-1.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=128000,CODECS="mp4a.40.2",AUDIO="audio-1"
        audio-0.m3u8

        """)
    try #require(hls.tracks.count > 1)
    #expect(hls.tracks[1].bitsPerSecond == 32_000)
    #expect(try hls.playlist("audio-0").contains("#EXT-X-INDEPENDENT-SEGMENTS\n"))
    #expect(hls.tracks[0].segment(named: "0.m4s")?.mediaType == "audio/mp4")
  }

  /// A codec that a player may lack has a group of its own, without spoiling the other.
  @Test func soundInTwoCodecs() throws {
    let hls = try virtualHLS(
      mpd(
        set(#"contentType="video""#, template + rung("v", 1_000_000, "avc1.64001f"))
          + set(
            #"contentType="audio" lang="en""#,
            #"<Role schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>"# + template
              + rung("aac", 128_000, "mp4a.40.2"))
          + set(
            #"contentType="audio" lang="en""#,
            #"<Role schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>"# + template
              + rung("ec3", 384_000, "ec-3"))
          + set(
            #"contentType="audio" lang="en""#,
            #"<Role schemeIdUri="urn:mpeg:dash:role:2011" value="description"/>"# + template
              + rung("ad", 64_000, "mp4a.40.2")), attributes: nine))
    #expect(
      hls.multivariantPlaylist() == """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio-0",LANGUAGE="en",NAME="en",DEFAULT=YES,AUTOSELECT=YES,URI="audio-0.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio-0",LANGUAGE="en",NAME="en (description)",DEFAULT=NO,AUTOSELECT=YES,CHARACTERISTICS="public.accessibility.describes-video",URI="audio-2.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio-1",LANGUAGE="en",NAME="en",DEFAULT=YES,AUTOSELECT=YES,URI="audio-1.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=1128000,CODECS="avc1.64001f,mp4a.40.2",AUDIO="audio-0"
        video-0.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=1384000,CODECS="avc1.64001f,ec-3",AUDIO="audio-1"
        video-0.m3u8

        """)
  }

  @Test func muxedSoundNeedsNoGroup() throws {
    let hls = try virtualHLS(
      mpd(
        set(#"contentType="video""#, template + rung("v", 1_000_000, "avc1.64001f,mp4a.40.2")),
        attributes: nine))
    #expect(
      hls.multivariantPlaylist().hasSuffix(
        "#EXT-X-STREAM-INF:BANDWIDTH=1000000,CODECS=\"avc1.64001f,mp4a.40.2\"\nvideo-0.m3u8\n"))
  }

  /// More than 64 pairs: each frame rung gets the sound of its own rank.
  @Test func manyQualities() throws {
    let video = (1...20).map { rung("v\($0)", $0 * 100_000, "avc1.64001f") }.joined()
    let audio = (1...10).map { rung("a\($0)", $0 * 10_000, "mp4a.40.2") }.joined()
    let hls = try virtualHLS(
      mpd(
        set(#"contentType="video""#, template + video) + set(#"contentType="audio""#, template + audio),
        attributes: nine))
    let rates = hls.multivariantPlaylist().split(separator: "\n").filter { $0.hasPrefix("#EXT-X-STREAM-INF") }
      .map { $0.prefix { $0 != "," } }
    #expect(rates.count == 20)
    #expect(rates.first == "#EXT-X-STREAM-INF:BANDWIDTH=110000")
    #expect(rates.last == "#EXT-X-STREAM-INF:BANDWIDTH=2100000")

    let few = try virtualHLS(
      mpd(
        set(#"contentType="video""#, template + (1...6).map { rung("v\($0)", $0, "avc1.64001f") }.joined())
          + set(#"contentType="audio""#, template + audio), attributes: nine))
    #expect(few.multivariantPlaylist().components(separatedBy: "#EXT-X-STREAM-INF").count - 1 == 60)
  }

  @Test func webVTTIsSubtitles() throws {
    let hls = try virtualHLS(
      mpd(
        set(#"contentType="video""#, template + rung("v", 1_000_000, "avc1.64001f"))
          + set(
            #"mimeType="text/vtt" lang="de""#,
            #"<Role schemeIdUri="urn:mpeg:dash:role:2011" value="forced-subtitle"/>"#
              + #"<Representation id="t" bandwidth="100"><BaseURL>de.vtt</BaseURL></Representation>"#)
          + set(#"mimeType="application/mp4" contentType="text""#, template + rung("s", 100, "stpp")),
        attributes: nine))
    #expect(
      hls.multivariantPlaylist() == """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="text",LANGUAGE="de",NAME="de (forced-subtitle)",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES,URI="text-0.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=1000000,CODECS="avc1.64001f",SUBTITLES="text"
        video-0.m3u8

        """)
    #expect(
      try hls.playlist("text-0") == """
        #EXTM3U
        #EXT-X-VERSION:3
        #EXT-X-TARGETDURATION:9
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXTINF:9,
        0.vtt
        #EXT-X-ENDLIST

        """)
    #expect(hls.warnings.map(\.reason) == ["text 's' is left out: text other than WebVTT files"])
  }

  /// What a manifest says can't leave its attribute.
  @Test func hostileTexts() throws {
    let hls = try virtualHLS(
      mpd(
        set(#"contentType="video""#, template + rung("v", 1_000_000, "avc1.64001f"))
          + set(
            #"contentType="audio" lang="e&quot;,URI=&quot;http://x/&#10;#EXT-X-ENDLIST""#,
            "<Label>a\"&#13;b&#x202e;c</Label>" + template + rung("a", 1, "mp4a&quot;&#10;x")),
        attributes: nine))
    let lines = hls.multivariantPlaylist().split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count == 6)
    #expect(lines.filter { $0.hasPrefix("#EXT-X-MEDIA:") }.count == 1)
    let media = try #require(lines.first { $0.hasPrefix("#EXT-X-MEDIA:") })
    #expect(media.filter { $0 == "\"" }.count == 6)
    #expect(!media.contains("LANGUAGE"), "no language, and players refuse what is none")
    #expect(media.contains(#"NAME="a'\u{d}b\u{202e}c""#))
  }

  // MARK: - Errors

  @Test func nothingIsLeft() throws {
    let text = mpd(
      set(
        #"mimeType="video/webm""#,
        template.replacing(".m4s", with: ".webm") + rung("w", 1, "vp9") + rung("x", 2, "vp9"))
        + set(
          #"contentType="video""#,
          #"<EssentialProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>"# + template
            + rung("t", 1, "avc1.64001f")), attributes: nine)
    let error = manifestError(.unsupported) { _ = try virtualHLS(text) }
    #expect(
      error?.reason
        == "nothing in it can be presented as HLS: video 'w' and video 'x' are left out: HLS has no WebM segments; a group of video is left out: trick mode"
    )
  }

  @Test func segmentsThatAreNotKnown() throws {
    let text = mpd(
      set(#"mimeType="video/mp4""#, rung("v", 1, "avc1.64001f", content: "<BaseURL>v.mp4</BaseURL>")))
    let error = manifestError(.unsupported) { _ = try virtualHLS(text) }
    #expect(
      error?.reason
        == "nothing in it can be presented as HLS: video 'v' is left out: its segments are not known")
  }

  @Test func tooManySegments() throws {
    let reference = SegmentReference(
      number: 1, url: manifestURL, start: .zero, duration: MediaTime(value: 1, timescale: 1))
    let rungs = (0..<3).map {
      Rung(
        id: "\($0)", bitsPerSecond: 1,
        media: .segments(SegmentList(count: 1_000_000, end: .zero) { _ in reference }))
    }
    let group = TrackGroup(
      id: nil, kind: .video, language: nil, label: nil, roles: [], isDefault: true, rungs: rungs)
    let period = Period(id: nil, start: .zero, duration: nil, trackGroups: [group])
    let error = manifestError(.unsupported) {
      _ = try VirtualHLS(Presentation(format: .dash, duration: nil, periods: [period]))
    }
    #expect(error?.reason == "3000000 segments in all tracks, more than 2000000")
  }
}

// MARK: - Manifests

let nine = #"type="static" mediaPresentationDuration="PT9S""#

/// Segments of 4 seconds, under the id of their representation.
let template = """
  <SegmentTemplate duration="4" initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/$Number$.m4s"/>
  """

func set(_ attributes: String, _ content: String) -> String {
  "<AdaptationSet \(attributes)>\(content)</AdaptationSet>"
}

func rung(
  _ id: String, _ bandwidth: Int, _ codecs: String, _ attributes: String = "", content: String = ""
) -> String {
  #"<Representation id="\#(id)" bandwidth="\#(bandwidth)" codecs="\#(codecs)" \#(attributes)>\#(content)</Representation>"#
}

/// The playlists of an MPD given as text.
func virtualHLS(_ text: String) throws(ReelError) -> VirtualHLS {
  try VirtualHLS(try dashPresentation(text))
}

extension VirtualHLS {
  /// A media playlist that names resources as they are called in paths: those that are named by their URLs by a number, in
  /// the order of their appearance.
  func playlist(_ name: String) throws -> String {
    var names: [String: String] = [:]
    return mediaPlaylist(of: try #require(track(named: name))) { Self.number($0, &names) }
  }

  /// The resources in a media playlist, by the names in `playlist(_:)`.
  func resources(_ name: String) throws -> [String: Resource] {
    var (names, resources): ([String: String], [String: Resource]) = ([:], [:])
    _ = mediaPlaylist(of: try #require(track(named: name))) { resource in
      let name = Self.number(resource, &names)
      resources[name] = resource
      return name
    }
    return resources
  }

  private static func number(_ resource: Resource, _ names: inout [String: String]) -> String {
    guard resource.kind != .segment else { return resource.name }
    if let known = names[resource.name] { return known }
    let kind = resource.kind.rawValue + "-"
    let count = names.values.filter { $0.hasPrefix(kind) }.count
    let name = "\(kind)\(count).\(resource.name.split(separator: ".").last ?? "")"
    names[resource.name] = name
    return name
  }
}
