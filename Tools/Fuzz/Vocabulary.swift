/// The words of the formats, for inputs that are made up.
enum Vocabulary {
  static let numbers = [
    "0", "1", "-1", "2", "00", "007", "255", "256", "65535", "65536", "1000000", "2147483647", "2147483648",
    "4294967295", "4294967296", "9007199254740993", "9223372036854775806", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "18446744073709551615", "18446744073709551616",
    "340282366920938463463374607431768211456", "0.000000000000000001", "0.1", "1e9", "1.5", "-0.5", "NaN",
    "INF",
    "99999999999999999999.999999999999999999999",
  ]

  static func values(for shape: FuzzTarget.Shape) -> [String] {
    switch shape {
    case .xml: numbers + xmlValues
    case .playlist: numbers + playlistValues
    case .binary, .text: numbers
    }
  }

  static func attributes(for shape: FuzzTarget.Shape) -> [String] {
    shape == .xml ? xmlAttributes : playlistAttributes
  }

  static func tokens(for shape: FuzzTarget.Shape) -> [String] {
    switch shape {
    case .playlist: playlistLines
    case .xml: xmlElements
    case .text: textTokens + numbers
    case .binary: []
    }
  }

  // MARK: - Private

  private static let xmlValues = [
    "", "PT0S", "PT-1S", "-PT5S", "PT1H2M3.456S", "P1Y2M3DT4H", "PT9223372036854775807S", "PT0.000000001S",
    "2026-01-31T12:00:00Z", "1970-01-01T00:00:00Z", "2262-04-11T23:47:16Z", "1600-01-01T00:00:00+24:00",
    "static", "dynamic", "true", "false", "$Number$.m4s", "$Time$", "$Number%09d$-$Time%020d$",
    "$RepresentationID$",
    "$Bandwidth$$SubNumber$", "$$", "$", "0-0", "0-", "9223372036854775806-9223372036854775807", "5-4",
    "30000/1001",
    "1/0", "video/mp4", "application/mp4", "avc1.64001f,mp4a.40.2", "urn:mpeg:dash:utc:direct:2014",
    "urn:mpeg:dash:utc:http-head:2014", "urn:mpeg:dash:role:2011", "urn:mpeg:dash:mp4protection:2011",
    "https://a/b",
    "../../../../x", "//a", "data:,x", "file:///etc/passwd", "&amp;&#0;&#x10FFFF;", "\u{FFFD}é",
  ]

  private static let xmlAttributes = [
    "type", "mediaPresentationDuration", "availabilityStartTime", "availabilityEndTime", "publishTime",
    "minimumUpdatePeriod", "minBufferTime", "timeShiftBufferDepth", "suggestedPresentationDelay",
    "maxSegmentDuration",
    "id", "start", "duration", "bitstreamSwitching", "contentType", "lang", "par", "mimeType", "codecs",
    "width",
    "height", "frameRate", "sar", "bandwidth", "timescale", "presentationTimeOffset", "startNumber",
    "endNumber",
    "initialization", "media", "index", "indexRange", "mediaRange", "range", "sourceURL",
    "availabilityTimeOffset",
    "availabilityTimeComplete", "eptDelta", "t", "d", "r", "n", "k", "schemeIdUri", "value",
    "cenc:default_KID",
    "xlink:href", "xlink:actuate", "serviceLocation", "dvb:priority", "dvb:weight", "byteRange",
    "dependencyId",
    "selectionPriority", "tag", "audioSamplingRate", "startWithSAP",
  ]

  private static let xmlElements = [
    #"<Period start="PT0S" duration="PT4S">"#, "</Period>", #"<Period id="x" start="PT9S"/>"#,
    #"<AdaptationSet contentType="video">"#, "</AdaptationSet>",
    #"<Representation id="r" bandwidth="5" mimeType="video/mp4"/>"#, "</Representation>",
    #"<SegmentTemplate timescale="1000" duration="2000" media="$Number$" startNumber="3"/>"#,
    #"<SegmentTemplate timescale="1000" media="$Time$">"#, "</SegmentTemplate>", "<SegmentTimeline>",
    "</SegmentTimeline>", #"<S t="0" d="5" r="-1"/>"#, #"<S d="1" r="1000000"/>"#,
    #"<S t="3" n="7" d="2" k="4"/>"#,
    #"<SegmentList duration="3"><SegmentURL media="a" mediaRange="0-9"/></SegmentList>"#,
    #"<SegmentBase indexRange="0-99"><Initialization range="0-9"/></SegmentBase>"#, "<BaseURL>x/</BaseURL>",
    "<BaseURL dvb:priority=\"2\">https://b/</BaseURL>", "<Location>https://c/m.mpd</Location>",
    #"<PatchLocation ttl="60">p</PatchLocation>"#,
    #"<UTCTiming schemeIdUri="urn:mpeg:dash:utc:direct:2014" value="2026-01-31T12:00:00Z"/>"#,
    #"<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cenc"/>"#,
    #"<EssentialProperty schemeIdUri="x" value="y"/>"#,
    #"<Role schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>"#,
    #"<EventStream schemeIdUri="x" timescale="1"><Event presentationTime="1" duration="2">m</Event></EventStream>"#,
    #"<ServiceDescription><Latency target="3000"/><PlaybackRate max="1.1"/></ServiceDescription>"#,
    #"<ProducerReferenceTime id="0" wallClockTime="2026-01-31T12:00:00Z" presentationTime="0"/>"#,
    #"<FailoverContent valid="false"><FCS t="1" d="2"/></FailoverContent>"#, "<![CDATA[ x ]]>", "<!-- x -->",
    "<?x y?>",
    "<!DOCTYPE MPD [<!ENTITY a \"b\">]>", "&amp;", "&a;", "&#xD800;",
  ]

  private static let playlistValues = [
    "", "YES", "NO", "NONE", "AES-128", "SAMPLE-AES", "identity", "AUDIO", "VIDEO", "SUBTITLES",
    "CLOSED-CAPTIONS",
    "0x", "0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "0x1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "10@0", "10", "@5",
    "9223372036854775807@9223372036854775807", "1920x1080", "0x0", "{$a}", "{$", "a.ts", "data:,x", "//h/p",
    "?q",
    "avc1.64001f,mp4a.40.2", "2026-01-31T12:00:00.000Z", "2026-01-31", "SDR", "PQ",
  ]

  private static let playlistAttributes = [
    "METHOD", "URI", "IV", "KEYFORMAT", "KEYFORMATVERSIONS", "BYTERANGE", "BANDWIDTH", "AVERAGE-BANDWIDTH",
    "CODECS",
    "RESOLUTION", "FRAME-RATE", "AUDIO", "VIDEO", "SUBTITLES", "CLOSED-CAPTIONS", "TYPE", "GROUP-ID", "NAME",
    "LANGUAGE", "DEFAULT", "AUTOSELECT", "CHANNELS", "INSTREAM-ID", "TIME-OFFSET", "PRECISE", "VALUE",
    "IMPORT",
    "QUERYPARAM", "ID", "START-DATE", "DURATION", "CAN-SKIP-UNTIL", "CAN-BLOCK-RELOAD", "HOLD-BACK",
    "PART-HOLD-BACK",
    "PART-TARGET", "SKIPPED-SEGMENTS", "INDEPENDENT", "VIDEO-RANGE", "PATHWAY-ID", "SERVER-URI",
  ]

  private static let playlistLines = [
    "#EXTM3U", "#NEXT", "#EXT-X-VERSION:7", "#EXT-X-TARGETDURATION:4", "#EXTINF:4.004,", "#EXTINF:",
    "#EXTINF:-1,",
    "#EXT-X-MEDIA-SEQUENCE:9223372036854775807", "#EXT-X-DISCONTINUITY-SEQUENCE:9223372036854775807",
    "#EXT-X-DISCONTINUITY-SEQUENCE:5", "#EXT-X-DISCONTINUITY", "#EXT-X-ENDLIST", "#EXT-X-GAP",
    "#EXT-X-I-FRAMES-ONLY",
    "#EXT-X-PLAYLIST-TYPE:EVENT", "#EXT-X-PLAYLIST-TYPE:VOD", "#EXT-X-INDEPENDENT-SEGMENTS",
    "#EXT-X-BYTERANGE:100@0",
    "#EXT-X-BYTERANGE:9223372036854775807@1", "#EXT-X-BYTERANGE:100", "#EXT-X-BITRATE:100",
    #"#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x1"#, "#EXT-X-KEY:METHOD=NONE",
    #"#EXT-X-MAP:URI="i",BYTERANGE="5@0""#,
    "#EXT-X-PROGRAM-DATE-TIME:2026-01-31T12:00:00Z", "#EXT-X-START:TIME-OFFSET=-9,PRECISE=YES",
    #"#EXT-X-DEFINE:NAME="a",VALUE="{$a}{$a}""#, #"#EXT-X-DEFINE:IMPORT="a""#,
    #"#EXT-X-DEFINE:QUERYPARAM="token""#,
    #"#EXT-X-DATERANGE:ID="d",START-DATE="2026-01-31T12:00:00Z",DURATION=5"#,
    #"#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="n",URI="a.m3u8""#,
    #"#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="g",RESOLUTION=1x1,FRAME-RATE=29.97"#,
    #"#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="i""#, #"#EXT-X-SESSION-KEY:METHOD=AES-128,URI="k""#,
    "#EXT-X-PART-INF:PART-TARGET=0.3", #"#EXT-X-PART:DURATION=0.3,URI="p",BYTERANGE=5@0"#,
    "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1", "#EXT-X-SKIP:SKIPPED-SEGMENTS=3",
    #"#EXT-X-PRELOAD-HINT:TYPE=PART,URI="p""#, #"#EXT-X-RENDITION-REPORT:URI="r",LAST-MSN=5"#,
    #"#EXT-X-CONTENT-STEERING:SERVER-URI="s",PATHWAY-ID="p""#, "a.ts", "../{$a}/b?c#d", "https://h:99999/x",
    "\u{FEFF}",
  ]

  private static let textTokens = [
    "$", "$$", "$Number$", "$Time$", "$Number%05d$", "$Time%031x$", "$SubNumber$", "$RepresentationID$",
    "$Bandwidth%019d$", "%0", "%5$", "%d", "2026-01-31T12:00:00Z", "P1Y", "PT1H", "T", "Z", "+", "-", ":",
    ".", "+24:59",
    "PT0.1S", "P", "Sun, 06 Nov 1994 08:49:37 GMT", " ", "W", "é",
  ]
}
