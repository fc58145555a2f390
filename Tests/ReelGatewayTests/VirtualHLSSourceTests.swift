import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import ReelGateway
import Testing

/// What HLS itself is read as comes out the same.
@Suite struct VirtualHLSSourceTests {
  @Test func encryptedTransportStream() throws {
    let hls = try VirtualHLS(
      hlsPresentation(
        """
        #EXTM3U
        #EXT-X-TARGETDURATION:4
        #EXT-X-MEDIA-SEQUENCE:7
        #EXT-X-KEY:METHOD=AES-128,URI="k1"
        #EXTINF:4,
        a.ts
        #EXT-X-KEY:METHOD=AES-128,URI="k2",IV=0x000102030405060708090a0b0c0d0e0f
        #EXTINF:3.5,
        b.ts
        #EXT-X-DISCONTINUITY
        #EXT-X-KEY:METHOD=NONE
        #EXT-X-GAP
        #EXTINF:4,
        c.ts
        #EXTINF:4,
        #EXT-X-BYTERANGE:100@20
        all.ts
        #EXT-X-ENDLIST
        """))
    #expect(
      try hls.playlist("video-0") == """
        #EXTM3U
        #EXT-X-VERSION:8
        #EXT-X-TARGETDURATION:4
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXT-X-KEY:METHOD=AES-128,URI="key-0.key",IV=0x00000000000000000000000000000007
        #EXTINF:4,
        0.ts
        #EXT-X-KEY:METHOD=AES-128,URI="key-1.key",IV=0x000102030405060708090a0b0c0d0e0f
        #EXTINF:3.5,
        1.ts
        #EXT-X-DISCONTINUITY
        #EXT-X-KEY:METHOD=NONE
        #EXT-X-GAP
        #EXTINF:4,
        2.ts
        #EXTINF:4,
        #EXT-X-BYTERANGE:100@20
        file-0.ts
        #EXT-X-ENDLIST

        """)
    let resources = try hls.resources("video-0")
    #expect(resources["key-1.key"]?.url.absoluteString == "https://origin.example/a/b/k2")
    #expect(resources["file-0.ts"]?.mediaType == "video/mp2t")
    #expect(
      hls.multivariantPlaylist() == """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-STREAM-INF:BANDWIDTH=1000000
        video-0.m3u8

        """)
  }

  /// A map is encrypted by the key that stands before it, and by no other (RFC 8216 §4.3.2.5).
  @Test func encryptedInitialization() throws {
    let key = SegmentEncryption(
      method: "AES-128", keyURL: URL(string: "https://k.example/1"), keyFormat: "identity",
      initializationVector: [UInt8](repeating: 0xab, count: 16))
    let map = InitializationReference(url: manifestURL)
    let text = try Self.playlist([
      SegmentReference(
        number: 1, url: manifestURL, start: .zero, duration: MediaTime(value: 1, timescale: 1),
        initialization: map, encryption: key)
    ])
    #expect(
      text.contains(
        """
        #EXT-X-MAP:URI="init-0.mp4"
        #EXT-X-KEY:METHOD=AES-128,URI="key-0.key",IV=0xabababababababababababababababab
        #EXTINF:1,
        0.m4s
        """))
    var encrypted = map
    encrypted.encryption = key
    let other = try Self.playlist([
      SegmentReference(
        number: 1, url: manifestURL, start: .zero, duration: MediaTime(value: 1, timescale: 1),
        initialization: encrypted)
    ])
    #expect(
      other.contains(
        """
        #EXT-X-KEY:METHOD=AES-128,URI="key-0.key",IV=0xabababababababababababababababab
        #EXT-X-MAP:URI="init-0.mp4"
        #EXT-X-KEY:METHOD=NONE
        #EXTINF:1,
        0.m4s
        """))
  }

  /// The codecs of a variant are those of its audio too (RFC 8216 §4.3.4.2).
  @Test func codecs() throws {
    var presentation = try hlsPresentation(
      """
      #EXTM3U
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="en",URI="a.m3u8"
      #EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="avc1.64001f,mp4a.40.2",AUDIO="a"
      v.m3u8
      """)
    let segment = SegmentReference(
      number: 1, url: manifestURL, start: .zero, duration: MediaTime(value: 1, timescale: 1))
    for group in presentation.periods[0].trackGroups.indices {
      presentation.periods[0].trackGroups[group].rungs[0].media = .segments(SegmentList([segment]))
    }
    #expect(try VirtualHLS(presentation).multivariantPlaylist().contains("CODECS=\"avc1.64001f,mp4a.40.2\""))
  }

  @Test func datesAndIndependence() throws {
    let text = try Self.playlist(
      [
        SegmentReference(
          number: 1, url: manifestURL, start: .zero, duration: MediaTime(value: 1, timescale: 1),
          programDateTime: WallTime(nanosecondsSince1970: 1_500_000_000))
      ], isIndependent: true)
    #expect(
      text.contains(
        "#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:01.5Z\n#EXTINF:1,\n"))
  }

  /// Times beyond what can be written are clamped, not trapped on.
  @Test func timesBeyondAllBounds() throws {
    func segment(_ start: Int64, _ duration: Int64) -> SegmentReference {
      SegmentReference(
        number: .max, url: manifestURL, byteRange: ByteRange(offset: .max, length: .max),
        start: MediaTime(value: start, timescale: 1), duration: MediaTime(value: duration, timescale: 1))
    }
    let text = try Self.playlist([segment(.min, .max), segment(.max, .max), segment(0, .min)])
    let lengths = text.split(separator: "\n").filter { $0.hasPrefix("#EXTINF:") }
    #expect(lengths == ["#EXTINF:9223372036.854775807,", "#EXTINF:0,", "#EXTINF:0,"])
  }

  /// The media playlist of one rung with these segments.
  private static func playlist(
    _ segments: [SegmentReference], isIndependent: Bool = false
  ) throws -> String {
    let rung = Rung(
      id: "v", bitsPerSecond: .max, hasIndependentSegments: isIndependent,
      media: .segments(SegmentList(segments)))
    let group = TrackGroup(
      id: nil, kind: .video, language: nil, label: nil, roles: [], isDefault: true, rungs: [rung])
    let period = Period(id: nil, start: .zero, duration: nil, trackGroups: [group])
    return try VirtualHLS(Presentation(format: .dash, duration: nil, periods: [period])).playlist("video-0")
  }
}
