import Foundation

/// Inputs to begin with, beside the fixtures: one of each thing that a parser knows.
enum Seeds {
  /// Writes the seeds of `target` into `folder`, and those that it takes from `media`, MP4 files with an index in them.
  static func write(_ target: FuzzTarget, into folder: URL, media: [URL]) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    var seeds = texts(for: target).map { Array($0.utf8) }
    if target == .sidx {
      for file in media {
        let bytes = Array(try Data(contentsOf: file))
        guard let index = bytes.firstRange(of: Array("sidx".utf8)), index.lowerBound >= 4 else { continue }
        let size = bytes[index.lowerBound - 4..<index.lowerBound].reduce(0) { $0 << 8 | Int($1) }
        seeds.append([0] + bytes[(index.lowerBound - 4)...].prefix(size))
        seeds.append([0x15] + bytes.prefix(index.lowerBound - 4 + size))
      }
      seeds.append(contentsOf: [index(version: 0), index(version: 1)])
    }
    for (number, seed) in seeds.enumerated() {
      try Data(seed).write(to: folder.appending(path: "seed-\(number)"))
    }
  }

  // MARK: - Private

  private static func texts(for target: FuzzTarget) -> [String] {
    switch target {
    case .hlsMultivariant: [multivariant]
    case .hlsMedia: [media, live]
    case .mpd: [mpd("static", number), mpd("static", timeline), mpd("static", list), mpd("static", base)]
    case .mpdLive: [mpd("dynamic", number), mpd("dynamic", timeline), mpd("dynamic", list)]
    case .window:
      [reading(5, 3) + "#NEXT\n" + reading(6, 3) + "#NEXT\n" + reading(4, 3) + "#NEXT\n" + reading(90, 3)]
    case .violations: [multivariant, media, live]
    case .template: ["$RepresentationID$/$Number%05d$-$Time$.m4s", "$Bandwidth$/$$/$SubNumber$", "a"]
    case .dates:
      [
        "2026-01-31T12:00:00.123456789Z", "2026-01-31 12:00:00+0100", "P1Y2M3DT4H5M6.789S", "PT0S",
        "Sun, 06 Nov 1994 08:49:37 GMT", "6.006",
      ]
    case .sidx: []
    }
  }

  /// A `sidx` (ISO/IEC 14496-12 §8.16.3) of three references, with the byte that chooses its place before it.
  private static func index(version: UInt8) -> [UInt8] {
    var body: [UInt8] = [version, 0, 0, 0]
    func append(_ value: UInt64, _ count: Int) {
      for index in (0..<count).reversed() {
        body.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * index)))
      }
    }
    append(1, 4)
    append(90_000, 4)
    append(0, version == 0 ? 4 : 8)
    append(0, version == 0 ? 4 : 8)
    append(3, 4)
    for _ in 0..<3 {
      append(5_000, 4)
      append(180_000, 4)
      append(0x9000_0000, 4)
    }
    let count = UInt32(body.count + 8)
    return [0] + (0..<4).map { UInt8(truncatingIfNeeded: count >> UInt32(24 - 8 * $0)) } + Array("sidx".utf8)
      + body
  }

  private static let multivariant = """
    #EXTM3U
    #EXT-X-VERSION:8
    #EXT-X-INDEPENDENT-SEGMENTS
    #EXT-X-START:TIME-OFFSET=-12.5,PRECISE=NO
    #EXT-X-DEFINE:NAME="a",VALUE="b"
    #EXT-X-DEFINE:QUERYPARAM="token"
    #EXT-X-CONTENT-STEERING:SERVER-URI="/steer",PATHWAY-ID="A"
    #EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="skd://x",KEYFORMAT="com.apple.streamingkeydelivery"
    #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="s",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="{$a}/e.m3u8"
    #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="t",NAME="x",LANGUAGE="de",FORCED=NO,URI="t.m3u8"
    #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="c",NAME="cc",INSTREAM-ID="CC1"
    #EXT-X-STREAM-INF:BANDWIDTH=1280000,AVERAGE-BANDWIDTH=1000000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=720x1280,FRAME-RATE=29.970,AUDIO="s",SUBTITLES="t",CLOSED-CAPTIONS="c",VIDEO-RANGE=SDR,PATHWAY-ID="A"
    low.m3u8
    #EXT-X-STREAM-INF:BANDWIDTH=1280000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=720x1280,AUDIO="s",PATHWAY-ID="B"
    https://b.example/low.m3u8
    #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=86000,URI="i.m3u8",CODECS="avc1.64001f",RESOLUTION=720x1280

    """

  private static let media = """
    #EXTM3U
    #EXT-X-VERSION:7
    #EXT-X-TARGETDURATION:6
    #EXT-X-MEDIA-SEQUENCE:7
    #EXT-X-PLAYLIST-TYPE:VOD
    #EXT-X-DEFINE:NAME="v",VALUE="x"
    #EXT-X-KEY:METHOD=AES-128,URI="{$v}.key",IV=0x000102030405060708090A0B0C0D0E0F
    #EXT-X-MAP:URI="init.mp4",BYTERANGE="720@0"
    #EXTINF:6.006,title
    #EXT-X-BYTERANGE:1000@720
    media.mp4
    #EXTINF:6.006,
    #EXT-X-BYTERANGE:2000
    media.mp4
    #EXT-X-DISCONTINUITY
    #EXT-X-KEY:METHOD=NONE
    #EXT-X-BITRATE:500
    #EXTINF:5,
    #EXT-X-GAP
    s{$v}.mp4
    #EXT-X-ENDLIST

    """

  private static let live = """
    #EXTM3U
    #EXT-X-VERSION:9
    #EXT-X-TARGETDURATION:4
    #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.0,CAN-SKIP-UNTIL=24.0,HOLD-BACK=12
    #EXT-X-PART-INF:PART-TARGET=0.33334
    #EXT-X-MEDIA-SEQUENCE:266
    #EXT-X-DISCONTINUITY-SEQUENCE:3
    #EXT-X-SKIP:SKIPPED-SEGMENTS=3
    #EXT-X-PROGRAM-DATE-TIME:2026-01-31T12:00:00.123Z
    #EXTINF:4.00008,
    s269.mp4
    #EXT-X-DATERANGE:ID="ad",START-DATE="2026-01-31T12:00:04Z",DURATION=8,SCTE35-OUT=0xFC
    #EXT-X-DISCONTINUITY
    #EXT-X-PART:DURATION=0.33334,URI="p.0.mp4",INDEPENDENT=YES
    #EXTINF:4.00008,
    s270.mp4
    #EXT-X-PRELOAD-HINT:TYPE=PART,URI="p.1.mp4"
    #EXT-X-RENDITION-REPORT:URI="../r.m3u8",LAST-MSN=273,LAST-PART=2

    """

  /// A live playlist of `count` segments.
  private static func reading(_ sequence: Int, _ count: Int) -> String {
    let segments = (sequence..<sequence + count).map { number in
      (number % 2 == 0 ? "#EXT-X-DISCONTINUITY\n" : "") + "#EXTINF:2.002,\ns\(number).ts\n"
    }
    return
      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(sequence)\n#EXT-X-DISCONTINUITY-SEQUENCE:"
      + "\(sequence / 2)\n#EXT-X-PROGRAM-DATE-TIME:2026-01-31T12:00:\(10 + sequence % 50)Z\n"
      + segments.joined()
  }

  private static func mpd(_ type: String, _ segments: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!-- a comment --><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" xmlns:dvb="urn:dvb:dash:dash-extensions:2014-1" \
    profiles="urn:mpeg:dash:profile:isoff-live:2011" type="\(type)" mediaPresentationDuration="PT60S" minBufferTime="PT2S" \
    availabilityStartTime="2026-01-31T11:59:00Z" publishTime="2026-01-31T12:00:00Z" minimumUpdatePeriod="PT2S" \
    timeShiftBufferDepth="PT30S" suggestedPresentationDelay="PT6S" maxSegmentDuration="PT2S">
    <BaseURL dvb:priority="1" serviceLocation="a">https://a.example/</BaseURL><BaseURL dvb:priority="2">b/</BaseURL>
    <Location>https://c.example/m.mpd</Location>
    <Period id="1" start="PT0S" duration="PT30S">
    <AdaptationSet id="1" mimeType="video/mp4" lang="en" segmentAlignment="true" frameRate="30000/1001" par="16:9">
    <ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cenc"/>
    <Role schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>\(segments)
    <Representation id="v1" bandwidth="1000000" codecs="avc1.64001f" width="720" height="1280" sar="1:1"/>
    <Representation id="v2" bandwidth="500000" codecs="avc1.64001f"><BaseURL>v2/</BaseURL></Representation>
    </AdaptationSet></Period>
    <Period id="2"><AdaptationSet contentType="audio">
    <Representation id="a" mimeType="audio/mp4" bandwidth="64000" codecs="mp4a.40.2">
    <AudioChannelConfiguration schemeIdUri="urn:mpeg:dash:23003:3:audio_channel_configuration:2011" value="2"/>\(segments)
    </Representation></AdaptationSet></Period>
    <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-head:2014" value="https://time.example/"/>
    <UTCTiming schemeIdUri="urn:mpeg:dash:utc:direct:2014" value="2026-01-31T12:00:00Z"/>
    </MPD>

    """
  }

  private static let number = """
    <SegmentTemplate timescale="90000" duration="180180" startNumber="5" endNumber="40" presentationTimeOffset="180" \
    availabilityTimeOffset="1.5" initialization="$RepresentationID$/i.mp4" media="$RepresentationID$/$Number%05d$.m4s"/>
    """

  private static let timeline = """
    <SegmentTemplate timescale="48000" presentationTimeOffset="96000" initialization="i-$Bandwidth$.mp4" \
    media="$Time$.m4s"><SegmentTimeline><S t="96000" d="96256" r="2"/><S d="95232"/><S t="480000" d="96000" r="-1"/>\
    <S t="960000" n="77" d="96000" k="4"/></SegmentTimeline></SegmentTemplate>
    """

  private static let list = """
    <SegmentList timescale="1000" duration="2000" startNumber="1"><Initialization sourceURL="i.mp4" range="0-99"/>\
    <SegmentURL media="1.m4s" mediaRange="0-99" indexRange="0-9"/><SegmentURL media="2.m4s"/></SegmentList>
    """

  private static let base = """
    <SegmentBase timescale="1000" indexRange="800-1200" indexRangeExact="true" presentationTimeOffset="5">\
    <Initialization range="0-799"/></SegmentBase>
    """
}
