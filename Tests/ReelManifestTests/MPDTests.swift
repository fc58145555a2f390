import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

@Suite struct MPDTests {
  /// The shape of GPAC's long test streams: three video rungs by number, one separate sound.
  private let longStream = """
    <?xml version="1.0"?>
    <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" minBufferTime="PT1.500S" type="static"
     mediaPresentationDuration="PT0H11M58.998S" maxSegmentDuration="PT0H0M2.005S"
     profiles="urn:mpeg:dash:profile:isoff-live:2011,http://dashif.org/guidelines/dash264">
     <Period duration="PT0H11M58.998S">
      <AdaptationSet segmentAlignment="true" maxWidth="3840" maxHeight="2160" maxFrameRate="60000/1001" par="16:9"
       lang="und" startWithSAP="1">
       <SegmentTemplate timescale="60000" media="$RepresentationID$_$Number$.m4s" startNumber="1" duration="119952"
        initialization="$RepresentationID$_init.mp4"/>
       <Representation id="1" mimeType="video/mp4" codecs="hev1.2.4.L153.90" width="3840" height="2160"
        frameRate="60000/1001" sar="1:1" bandwidth="5678130"/>
       <Representation id="2" mimeType="video/mp4" codecs="hev1.2.4.L153.90" width="3840" height="2160"
        frameRate="60000/1001" sar="1:1" bandwidth="8310000"/>
       <Representation id="3" mimeType="video/mp4" codecs="hev1.2.4.L153.90" width="3840" height="2160"
        frameRate="60000/1001" sar="1:1" bandwidth="10870000"/>
      </AdaptationSet>
      <AdaptationSet segmentAlignment="true" lang="en">
       <SegmentTemplate timescale="48000" media="a_$Number%05d$.m4s" duration="96000" initialization="a_init.mp4"/>
       <Representation id="5" mimeType="audio/mp4" codecs="mp4a.40.2" audioSamplingRate="48000" bandwidth="130000">
        <AudioChannelConfiguration schemeIdUri="urn:mpeg:dash:23003:3:audio_channel_configuration:2011" value="2"/>
       </Representation>
      </AdaptationSet>
     </Period>
    </MPD>
    """

  @Test func aLongStreamByNumber() throws {
    let presentation = try dashPresentation(longStream)
    #expect(presentation.format == .dash)
    #expect(!presentation.isLive)
    #expect(presentation.duration == MediaTime(value: 718_998, timescale: 1000))
    let groups = try #require(presentation.periods.first).trackGroups
    try #require(groups.map(\.kind) == [.video, .audio])
    let rungs = groups[0].rungs
    try #require(rungs.map(\.bitsPerSecond) == [5_678_130, 8_310_000, 10_870_000])
    #expect(rungs[0].id == "1")
    #expect(rungs[0].codecs == ["hev1.2.4.L153.90"])
    #expect(rungs[0].size == PixelSize(width: 3840, height: 2160))
    #expect(rungs[0].frameRate == Rational(60_000, 1001))
    #expect(rungs[0].sampleAspectRatio == Rational(1, 1))
    #expect(groups[1].language == "en")
    #expect(groups[1].rungs[0].channels == "2")

    let segments = try presentation.segments()
    try #require(segments.count == 360)
    #expect(segments[0].url.absoluteString == "https://origin.example/a/b/1_1.m4s")
    #expect(segments[0].initialization?.url.absoluteString == "https://origin.example/a/b/1_init.mp4")
    #expect(segments[0].duration == MediaTime(value: 119_952, timescale: 60_000))
    #expect(segments[1].start == MediaTime(value: 119_952, timescale: 60_000))
    #expect(segments[359].number == 360)
    #expect(segments[359].start == MediaTime(value: 119_952 * 359, timescale: 60_000))
    #expect(segments[359].duration == MediaTime(value: 12_852, timescale: 10_000))
    #expect(segments.end == MediaTime(value: 718_998, timescale: 1000))
    #expect(segments[0].timestampOffset == .zero)
    let sound = try presentation.segments(group: 1)
    try #require(!sound.isEmpty)
    #expect(sound[0].url.absoluteString == "https://origin.example/a/b/a_00001.m4s")
    #expect(sound.count == 360)
  }

  @Test func aTimelineByTime() throws {
    let presentation = try dashPresentation(
      mpd(
        videoSet(
          """
          <SegmentTemplate timescale="90000" presentationTimeOffset="900000" startNumber="5"
            media="$Bandwidth$/$Time%09d$.m4s" initialization="$Bandwidth$/i.mp4">
            <SegmentTimeline><S t="900000" d="180000" r="2"/><S d="90000"/><S t="1620000" d="90000" r="-1"/>
            </SegmentTimeline>
          </SegmentTemplate>
          """), period: #"start="PT100S" duration="PT10S""#))
    let segments = try presentation.segments()
    try #require(segments.map(\.number) == [5, 6, 7, 8, 9, 10])
    #expect(
      segments.urls.map { String($0.suffix(21)) }
        == ["900000", "1080000", "1260000", "1440000", "1620000", "1710000"]
        .map { "1000000/" + String(repeating: "0", count: 9 - $0.count) + $0 + ".m4s" })
    #expect(segments.starts.map(\.seconds) == [100, 102, 104, 106, 108, 109])
    #expect(segments.durations.map(\.seconds) == [2, 2, 2, 1, 1, 1])
    #expect(segments[0].timestampOffset == MediaTime(value: 90, timescale: 1))
    #expect(segments.end == MediaTime(value: 110, timescale: 1))
  }

  @Test func aTimelineRepeatsUpToTheNextEntry() throws {
    let presentation = try dashPresentation(
      mpd(
        videoSet(
          """
          <SegmentTemplate media="$Time$"><SegmentTimeline><S d="2" r="-1"/><S t="5" d="3"/></SegmentTimeline>
          </SegmentTemplate>
          """)))
    #expect(try presentation.segments().starts.map(\.seconds) == [0, 2, 4, 5])
  }

  @Test func segmentsOutsideOfThePeriodAreLeftOut() throws {
    let timeline =
      #"<SegmentTemplate media="$Number$" presentationTimeOffset="10"><SegmentTimeline><S t="0" d="4" r="99"/>"#
      + "</SegmentTimeline></SegmentTemplate>"
    let segments = try dashPresentation(mpd(videoSet(timeline))).segments()
    #expect(segments.map(\.number) == [3, 4, 5, 6, 7, 8])
    #expect(segments.first?.start == MediaTime(value: -2, timescale: 1))
  }

  @Test func segmentsInParts() throws {
    let presentation = try dashPresentation(
      mpd(
        videoSet(
          """
          <SegmentTemplate timescale="10" media="$Number$.$SubNumber$"><SegmentTimeline>
          <S d="20" r="1" k="3"/><S d="10"/></SegmentTimeline></SegmentTemplate>
          """)))
    let segments = try presentation.segments()
    #expect(
      segments.urls.map { String($0.suffix(3)) } == ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.1"])
    #expect(segments.starts.map(\.value) == [0, 6, 13, 20, 26, 33, 40])
    #expect(segments.durations.map(\.value) == [6, 7, 7, 6, 7, 7, 10])
  }

  @Test func aSegmentList() throws {
    let presentation = try dashPresentation(
      mpd(
        videoSet(
          """
          <SegmentList timescale="1000" duration="4000"><Initialization sourceURL="i.mp4" range="0-99"/>
          <SegmentURL media="a.m4s"/><SegmentURL media="b.m4s" mediaRange="100-199"/>
          <SegmentURL mediaRange="200-"/></SegmentList>
          """, representation: "<BaseURL>file.mp4</BaseURL>"),
        attributes: #"mediaPresentationDuration="PT11S""#))
    let segments = try presentation.segments()
    #expect(segments.urls.map { String($0.dropFirst(27)) } == ["a.m4s", "b.m4s", "file.mp4"])
    #expect(
      segments.map(\.byteRange) == [
        nil, ByteRange(offset: 100, length: 100), ByteRange(offset: 200, length: nil),
      ])
    #expect(segments.durations.map(\.seconds) == [4, 4, 3])
    try #require(!segments.isEmpty)
    #expect(segments[0].initialization?.byteRange == ByteRange(offset: 0, length: 100))
  }

  @Test func aSegmentListWithATimeline() throws {
    let presentation = try dashPresentation(
      mpd(
        videoSet(
          """
          <SegmentList startNumber="7"><SegmentTimeline><S t="0" d="4" r="9"/></SegmentTimeline>
          <SegmentURL media="a"/><SegmentURL media="b"/></SegmentList>
          """)))
    #expect(try presentation.segments().map(\.number) == [7, 8])
    #expect(try presentation.segments().urls.map { String($0.suffix(1)) } == ["a", "b"])
  }

  @Test func aFileWithAnIndex() throws {
    let presentation = try dashPresentation(
      mpd(
        videoSet(
          "",
          representation: """
            <BaseURL>v.mp4</BaseURL><SegmentBase indexRange="862-905" timescale="1000" presentationTimeOffset="500">
            <Initialization range="0-861"/></SegmentBase>
            """), period: #"start="PT2S""#))
    let index = try #require(presentation.periods.first?.trackGroups.first?.rungs.first?.media.index)
    #expect(index.url.absoluteString == "https://origin.example/a/b/v.mp4")
    #expect(index.indexRange == ByteRange(offset: 862, length: 44))
    #expect(index.initialization?.byteRange == ByteRange(offset: 0, length: 862))
    #expect(index.initialization?.url == index.url)
    #expect(index.start == MediaTime(value: 2, timescale: 1))
    #expect(index.duration == MediaTime(value: 18, timescale: 1))
    #expect(index.timestampOffset == MediaTime(value: 3, timescale: 2))
  }

  @Test(arguments: [
    (#"<RepresentationIndex range="5-9"/>"#, 5), (#"<RepresentationIndex sourceURL="x" range="5-9"/>"#, 1),
  ])
  func theIndexMayBeNamedByAnElement(element: String, offset: Int64) throws {
    let base = #"<BaseURL>v.mp4</BaseURL><SegmentBase indexRange="1-2">\#(element)</SegmentBase>"#
    let presentation = try dashPresentation(mpd(videoSet("", representation: base)))
    let index = try #require(presentation.periods.first?.trackGroups.first?.rungs.first?.media.index)
    #expect(index.indexRange?.offset == offset)
  }

  @Test func aFileByItsBaseURLAlone() throws {
    let presentation = try dashPresentation(mpd(videoSet("", representation: "<BaseURL>v.mp4</BaseURL>")))
    let index = try #require(presentation.periods.first?.trackGroups.first?.rungs.first?.media.index)
    #expect(index.indexRange == nil)
    #expect(index.initialization == nil)
  }

  @Test func baseURLsOfAllLevelsAdd() throws {
    let text = """
      <MPD mediaPresentationDuration="PT4S"><BaseURL> https://cdn.example/root/ </BaseURL>
      <BaseURL>https://backup.example/</BaseURL>
      <Period><BaseURL>period/</BaseURL><AdaptationSet contentType="video"><BaseURL><![CDATA[set/?a=1&b=2]]></BaseURL>
      <SegmentTemplate media="$Number$.m4s" duration="2"/>
      <Representation id="a"><BaseURL>rep/</BaseURL></Representation>
      <Representation id="b"><BaseURL>//other.example/x/</BaseURL></Representation>
      </AdaptationSet></Period></MPD>
      """
    let presentation = try dashPresentation(text)
    #expect(try presentation.segments().urls.first == "https://cdn.example/root/period/set/rep/1.m4s")
    #expect(try presentation.segments(rung: 1).urls.last == "https://other.example/x/2.m4s")
    let model = try MPD(Array(text.utf8))
    #expect(model.baseURLs.map(\.reference) == ["https://cdn.example/root/", "https://backup.example/"])
    #expect(model.periods.first?.adaptationSets.first?.baseURLs.first?.reference == "set/?a=1&b=2")
  }

  @Test func attributesAreInheritedAcrossThreeLevels() throws {
    let presentation = try dashPresentation(
      """
      <MPD mediaPresentationDuration="PT8S"><Period>
      <SegmentTemplate timescale="10" startNumber="0" initialization="$RepresentationID$/i"/>
      <AdaptationSet mimeType="video/mp4" width="640" height="360" codecs="avc1.64001f" frameRate="25">
      <SegmentTemplate duration="20" media="$RepresentationID$/$Number$"/>
      <Representation id="a" bandwidth="1"/>
      <Representation id="b" bandwidth="2" width="1280" height="720"><SegmentTemplate duration="40"/></Representation>
      <Representation id="c" bandwidth="3"><SegmentTemplate><SegmentTimeline><S d="80"/></SegmentTimeline>
      </SegmentTemplate></Representation>
      </AdaptationSet></Period></MPD>
      """)
    let rungs = try #require(presentation.periods.first?.trackGroups.first?.rungs)
    #expect(rungs.map(\.size?.width) == [640, 1280, 640])
    #expect(rungs.allSatisfy { $0.codecs == ["avc1.64001f"] && $0.frameRate == Rational(25, 1) })
    #expect(rungs.compactMap(\.media.segments?.count) == [4, 2, 1])
    #expect(try presentation.segments(rung: 1).urls.last == "https://origin.example/a/b/b/1")
    #expect(
      try presentation.segments(rung: 2).first?.initialization?.url.absoluteString
        == "https://origin.example/a/b/c/i")
  }

  @Test func periodsImplyStartAndDuration() throws {
    let set = videoSet(#"<SegmentTemplate media="$Number$" duration="3"/>"#)
    let presentation = try dashPresentation(
      """
      <MPD mediaPresentationDuration="PT31S">
      <Period id="a" duration="PT6S">\(set)</Period><Period id="b">\(set)</Period>
      <Period id="c" start="PT20S">\(set)</Period></MPD>
      """)
    #expect(presentation.periods.map(\.start.seconds) == [0, 6, 20])
    #expect(presentation.periods.map(\.duration?.seconds) == [6, 14, 11])
    #expect(try (0..<3).map { try presentation.segments(period: $0).count } == [2, 5, 4])
    let last = try #require(try presentation.segments(period: 2).last)
    #expect(last.duration == MediaTime(value: 2, timescale: 1))
    #expect(last.discontinuity == 2)
    #expect(last.timestampOffset == MediaTime(value: 20, timescale: 1))
  }

  @Test func aPeriodWithoutDurationEndsWithItsSegments() throws {
    let timeline =
      #"<SegmentTemplate media="$Number$"><SegmentTimeline><S d="7"/></SegmentTimeline></SegmentTemplate>"#
    let presentation = try dashPresentation(
      "<MPD><Period>\(videoSet(timeline))</Period><Period>\(videoSet(timeline))</Period></MPD>")
    #expect(presentation.periods.map(\.start.seconds) == [0, 7])
    #expect(presentation.duration == MediaTime(value: 14, timescale: 1))
  }

  @Test(arguments: [
    (#"duration="2""#, 10), (#"duration="2" endNumber="4""#, 4),
    (#"duration="2" startNumber="5" endNumber="4""#, 0),
    (#"duration="3""#, 7), (#"duration="20""#, 1), (#"duration="50""#, 1), ("", 1),
    (#"duration="3333333" timescale="1000000""#, 6), (#"duration="6666667" timescale="1000000""#, 3),
    (#"duration="6666666" timescale="1000000""#, 3),
  ])
  func segmentsAreCounted(attributes: String, count: Int) throws {
    let text = mpd(videoSet(#"<SegmentTemplate media="$Number$" \#(attributes)/>"#))
    if count == 0 {
      let error = manifestError { _ = try dashPresentation(text) }
      #expect(error?.reason == "the Representation has no segments in its period")
    } else {
      #expect(try dashPresentation(text).segments().count == count)
    }
  }

  @Test func aTimelineOutsideOfThePeriodIsTakenAsItIs() throws {
    let presentation = try dashPresentation(
      mpd(
        videoSet(
          #"<SegmentTemplate media="$Time$"><SegmentTimeline><S t="42" d="4" r="2"/></SegmentTimeline></SegmentTemplate>"#
        )))
    #expect(try presentation.segments().starts.map(\.seconds) == [42, 46, 50])
    #expect(presentation.warnings.first?.reason.contains("outside of the period") == true)
  }

  @Test(arguments: [("5", 0.5, 2), ("-5", -0.5, 3)])
  func theFirstSegmentMayStartBesideThePeriod(delta: String, start: Double, count: Int) throws {
    let set = videoSet(
      #"<SegmentTemplate media="$Number$" timescale="10" duration="20" presentationTimeOffset="100" eptDelta="\#(delta)"/>"#
    )
    let segments = try dashPresentation(mpd(set, attributes: #"mediaPresentationDuration="PT4.5S""#))
      .segments()
    #expect(segments.count == count)
    #expect(segments.starts.first?.seconds == start)
    #expect(segments.first?.timestampOffset == MediaTime(value: -10, timescale: 1))
  }

  @Test func aPeriodEndsWhereTheNextStarts() throws {
    let set = videoSet(#"<SegmentTemplate media="$Number$" duration="2"/>"#)
    let presentation = try dashPresentation(
      """
      <MPD mediaPresentationDuration="PT20S"><Period id="a" duration="PT9S">\(set)</Period>
      <Period id="b" start="PT4S">\(set)</Period><Period id="c" start="PT4S">\(set)</Period></MPD>
      """)
    #expect(presentation.periods.map(\.id) == ["a", "c"])
    #expect(presentation.periods.map(\.duration?.seconds) == [4, 16])
    #expect(presentation.warnings.map(\.place) == [.element("MPD/Period[2]")])
  }

  @Test func theMediaTypeAndDataURLsAreKept() throws {
    let presentation = try dashPresentation(
      mpd(
        videoSet(
          #"<SegmentTemplate media="$Number$" duration="2" initialization="data:video/mp4;base64,AAAA+/=="/>"#
        )))
    #expect(presentation.periods.first?.trackGroups.first?.rungs.first?.mimeType == "video/mp4")
    let initialization = try presentation.segments().first?.initialization
    #expect(initialization?.url.absoluteString == "data:video/mp4;base64,AAAA+/==")
    #expect(initialization?.alternateURLs == [])
  }
}
