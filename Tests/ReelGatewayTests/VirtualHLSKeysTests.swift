import Foundation
import ReelCore
import ReelGateway
import ReelManifest
import ReelTestSupport
import Testing

/// How playlists say that the media of an MPD is encrypted, for MPDs as packagers write them.
@Suite struct VirtualHLSKeysTests {
  private static let widevine = "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"
  private static let playReady = "9a04f079-9840-4286-ab92-e65be0885f95"
  private static let fairPlay = "94ce86fb-07ff-4f43-adb8-93d2fa968ca2"
  private static let common = "1077efec-c0b2-4d02-ace3-3c1e52e2fb4b"
  private static let keyID = "31323334-3536-3738-3930-313233343536"
  private static let otherKeyID = "41424344-4546-4748-4950-515253545556"

  // MARK: - MPDs

  /// Shaka Packager: a `pssh` for each system, the data of PlayReady inside, and the common system.
  @Test func shakaPackager() throws {
    let object: [UInt8] = [12, 0, 0, 0, 1, 0, 1, 0, 2, 0, 60, 0]
    let box = try psshBox(Self.widevine, data: [0x12, 0x10] + Array(repeating: 7, count: 16))
    let protections =
      protection("cenc", id: Self.keyID) + system(Self.common, try psshBox(Self.common, keyIDs: [Self.keyID]))
      + system(Self.widevine, box)
      + system(Self.playReady, try psshBox(Self.playReady, keyIDs: [Self.keyID], data: object))
    let hls = try virtualHLS(mpd(video(protections)))
    #expect(
      try hls.playlist("video-0") == """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-TARGETDURATION:4
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,\(base64(box))",KEYID=0x31323334353637383930313233343536,KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed",KEYFORMATVERSIONS="1"
        #EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;charset=UTF-16;base64,\(base64(object))",KEYFORMAT="com.microsoft.playready",KEYFORMATVERSIONS="1"
        #EXT-X-MAP:URI="init-0.mp4"
        #EXTINF:4,
        0.m4s
        #EXTINF:4,
        1.m4s
        #EXT-X-ENDLIST

        """)
    #expect(
      hls.warnings.map(\.reason) == [
        "video 'v' stays encrypted (SAMPLE-AES-CTR): a player needs a license from Widevine or PlayReady;"
          + " HLS can't name the key for ClearKey"
      ])
  }

  /// Axinom: `cbcs`, and FairPlay without a URI, which only a license server's documentation has.
  @Test func axinom() throws {
    let box = try psshBox(Self.widevine, data: [1, 2, 3])
    let protections =
      protection("cbcs", id: Self.keyID)
      + system(Self.playReady, try psshBox(Self.playReady, data: [9]), "<mspr:pro>BgAAAA==</mspr:pro>")
      + system(Self.widevine, box) + system(Self.fairPlay, nil)
    let hls = try virtualHLS(mpd(video(protections)))
    #expect(
      try keys(hls) == [
        #"METHOD=SAMPLE-AES,URI="data:text/plain;charset=UTF-16;base64,BgAAAA==","#
          + #"KEYFORMAT="com.microsoft.playready",KEYFORMATVERSIONS="1""#,
        #"METHOD=SAMPLE-AES,URI="data:text/plain;base64,\#(base64(box))","#
          + #"KEYID=0x31323334353637383930313233343536,KEYFORMAT="urn:uuid:\#(Self.widevine)",KEYFORMATVERSIONS="1""#,
      ])
    #expect(hls.warnings.map(\.reason).last?.hasSuffix("; HLS can't name the key for FairPlay") == true)
  }

  /// Azure Media Services: ids in upper case, and only the PlayReady Object.
  @Test func azure() throws {
    let hls = try virtualHLS(
      mpd(
        video(
          protection("cenc", id: Self.keyID.uppercased())
            + system(Self.playReady.uppercased(), nil, "\n<mspr:pro> BgAA\n AA== </mspr:pro>"))))
    #expect(
      try keys(hls) == [
        #"METHOD=SAMPLE-AES-CTR,URI="data:text/plain;charset=UTF-16;base64,BgAAAA==","#
          + #"KEYFORMAT="com.microsoft.playready",KEYFORMATVERSIONS="1""#
      ])
  }

  /// Bento4 can name FairPlay in an MPD. Its players decrypt `cbcs` alone.
  @Test(arguments: [
    ("cbcs", ["com.apple.streamingkeydelivery", "com.microsoft.playready"]),
    ("cenc", ["com.microsoft.playready"]),
  ])
  func fairPlay(scheme: String, formats: [String]) throws {
    let hls = try virtualHLS(
      mpd(
        video(
          protection(scheme, id: Self.keyID)
            + system(Self.fairPlay, nil, "<dashif:Laurl>skd://key?id=1&amp;u=\"x\"</dashif:Laurl>")
            + system(Self.playReady, nil, "<mspr:pro>BgAAAA==</mspr:pro>"))))
    let lines = try keys(hls)
    #expect(lines.map { $0.quoted("KEYFORMAT") } == formats)
    if scheme == "cbcs" { #expect(lines.first?.quoted("URI") == "skd://key?id=1&u='x'") }
  }

  /// Of several boxes of a system, the one that names the key counts: a tag replaces one of the same format.
  @Test func theBoxOfTheKey() throws {
    let boxes = [
      try psshBox(Self.widevine, keyIDs: [Self.keyID]), try psshBox(Self.widevine, keyIDs: [Self.otherKeyID]),
    ]
    let systems = boxes.map { system(Self.widevine, $0) }.joined()
    for (id, box) in [(Self.keyID, boxes[0]), (Self.otherKeyID, boxes[1])] {
      let lines = try keys(try virtualHLS(mpd(video(protection("cenc", id: id) + systems))))
      #expect(lines.map { $0.quoted("URI") } == ["data:text/plain;base64,\(base64(box))"])
    }
    let lines = try keys(try virtualHLS(mpd(video(protection("cenc", id: nil) + systems))))
    #expect(lines.map { $0.quoted("URI") } == ["data:text/plain;base64,\(base64(boxes[0]))"])
    #expect(lines.allSatisfy { !$0.contains("KEYID") })
  }

  @Test(arguments: [
    (protection("cens"), "encrypted: HLS has no method for the scheme 'cens'"),
    (protection("cbc1"), "encrypted: HLS has no method for the scheme 'cbc1'"),
    (protection("sve1"), "encrypted: HLS has no method for the scheme 'sve1'"),
    (
      protection(nil),
      "encrypted (Common Encryption): the MPD does not state the scheme"
    ),
    (
      #"<ContentProtection schemeIdUri="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"/>"#,
      "encrypted (Widevine): the MPD does not state the scheme"
    ),
    (
      protection("cenc"),
      "encrypted (cenc): the MPD states no data by which a player of HLS gets the key (no DRM system)"
    ),
    (
      protection("cbcs")
        + #"<ContentProtection schemeIdUri="urn:uuid:94ce86fb-07ff-4f43-adb8-93d2fa968ca2"/>"#
        + #"<ContentProtection schemeIdUri="urn:uuid:e2719d58-a985-b3c9-781a-b030af78d30e"/>"#,
      "encrypted (cbcs): the MPD states no data by which a player of HLS gets the key (FairPlay, ClearKey)"
    ),
  ])
  func refusals(protections: String, reason: String) throws {
    let error = manifestError(.unsupported) { _ = try virtualHLS(mpd(video(protections))) }
    #expect(
      error?.reason == "nothing in it can be presented as HLS: video 'v' is left out: \(reason)")
    #expect(error?.advice?.contains("--key-file") == true)
    // Other tracks are presented.
    let audio = set(#"contentType="audio""#, template + rung("a", 32_000, "mp4a.40.2"))
    let hls = try virtualHLS(mpd(video(protections) + audio))
    #expect(hls.tracks.map(\.name) == ["audio-0"])
    #expect(hls.warnings.map(\.reason) == ["video 'v' is left out: \(reason)"])
  }

  /// Rungs of one set may have keys of their own, as for UHD.
  @Test func aKeyForEachRung() throws {
    let systems = try [Self.keyID, Self.otherKeyID].map { id in
      protection("cenc", id: id) + system(Self.widevine, try psshBox(Self.widevine, keyIDs: [id]))
    }
    let hls = try virtualHLS(
      mpd(
        set(
          #"contentType="video""#,
          template + rung("sd", 300_000, "avc1.64000b", content: systems[0])
            + rung("uhd", 900_000, "avc1.64000c", content: systems[1]) + rung("ad", 100_000, "avc1.64000b"))))
    #expect(
      try ["video-0", "video-1", "video-2"].map { try keys(hls, $0).count } == [1, 1, 0])
    #expect(try keys(hls, "video-0") != keys(hls, "video-1"))
  }

  // MARK: - Periods

  /// A new key follows the discontinuity, and a key without a successor in its format is ended.
  @Test func keysOfPeriods() throws {
    let widevine = try [Self.keyID, Self.otherKeyID].map { id in
      protection("cenc", id: id) + system(Self.widevine, try psshBox(Self.widevine, keyIDs: [id]))
    }
    let playReady = system(Self.playReady, nil, "<mspr:pro>BgAAAA==</mspr:pro>")
    let hls = try virtualHLS(
      periods([
        widevine[0] + playReady, widevine[0] + playReady, widevine[1] + playReady, widevine[1], "",
        widevine[0],
      ]))
    let lines = try hls.playlist("video-0").split(separator: "\n").map { Self.brief(String($0)) }
    let segment = ["#EXTINF", ".m4s"]
    #expect(
      Array(lines.dropFirst(4)) == [
        "KEY cd51d21ed 1", "KEY playready", "#EXT-X-MAP",
      ] + segment
        + ["#EXT-X-DISCONTINUITY", "#EXT-X-MAP"] + segment
        + ["#EXT-X-DISCONTINUITY", "KEY cd51d21ed 2", "KEY playready", "#EXT-X-MAP"] + segment
        + ["#EXT-X-DISCONTINUITY", "KEY NONE", "KEY cd51d21ed 2", "#EXT-X-MAP"] + segment
        + ["#EXT-X-DISCONTINUITY", "KEY NONE", "#EXT-X-MAP"] + segment
        + ["#EXT-X-DISCONTINUITY", "KEY cd51d21ed 1", "#EXT-X-MAP"] + segment + ["#EXT-X-ENDLIST"])
  }

  /// A period that can't be presented becomes a gap, and the others keep their keys.
  @Test func aPeriodOfAnotherScheme() throws {
    let widevine = system(Self.widevine, try psshBox(Self.widevine, keyIDs: [Self.keyID]))
    let audio = set(#"contentType="audio""#, template + rung("a", 32_000, "mp4a.40.2"))
    let hls = try virtualHLS(
      periods([protection("cens") + widevine, protection("cbcs") + widevine], and: audio))
    let text = try hls.playlist("video-0")
    let lines = text.split(separator: "\n").map { $0.prefix { $0 != ":" } }
    #expect(
      lines.dropFirst(4) == [
        "#EXT-X-KEY", "#EXT-X-MAP", "#EXT-X-GAP", "#EXTINF", "0.m4s", "#EXT-X-DISCONTINUITY", "#EXT-X-MAP",
        "#EXTINF",
        "1.m4s", "#EXT-X-ENDLIST",
      ])
    #expect(try keys(hls, "audio-0").isEmpty)
  }

  /// The window of a live presentation begins with the keys in force.
  @Test func liveKeys() throws {
    let widevine =
      protection("cbcs") + system(Self.widevine, try psshBox(Self.widevine, keyIDs: [Self.keyID]))
    let start = try #require(WallTime(iso8601: "2026-01-01T00:00:00Z"))
    let text = mpd(
      video(widevine),
      attributes:
        #"type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z" timeShiftBufferDepth="PT12S" minimumUpdatePeriod="PT4S""#
    )
    var hls: VirtualHLS?
    for second in [60, 64] {
      let now = start + MediaTime(value: Int64(second), timescale: 1)
      let next = try VirtualHLS(try dashPresentation(text, now: now), following: hls)
      let lines = try next.playlist("video-0").split(separator: "\n").filter { $0.hasPrefix("#EXT-X-KEY") }
      #expect(lines.count == 1)
      hls = next
    }
  }

  // MARK: - Read again

  /// Reel's own reader finds the segments and systems of the MPD in the playlist.
  @Test(arguments: [("cenc", "SAMPLE-AES-CTR"), ("cbcs", "SAMPLE-AES")])
  func roundTrip(scheme: String, method: String) throws {
    let box = try psshBox(Self.widevine, keyIDs: [Self.keyID])
    let protections =
      protection(scheme, id: Self.keyID) + system(Self.widevine, box)
      + system(Self.playReady, nil, "<mspr:pro>BgAAAA==</mspr:pro>")
    let source = try dashPresentation(periods([protections, ""]))
    let hls = try VirtualHLS(source)
    let track = try #require(hls.track(named: "video-0"))
    let found = try mediaPlaylist(hls.mediaPlaylist(of: track))
    #expect(found.warnings.isEmpty)
    #expect(found.segments.urls == (try source.segments(period: 0).urls + source.segments(period: 1).urls))
    #expect(found.segments.map { $0.encryption?.systems } == [["Widevine", "PlayReady"], nil])
    let encryption = try #require(found.segments.first?.encryption)
    #expect(encryption.encryptsSamples)
    #expect(encryption.systemKeys.map(\.method) == [method, method])
    #expect(encryption.systemKeys.first?.keyID == KeyID(Self.keyID))
    #expect(encryption.systemKeys.first?.uri == "data:text/plain;base64,\(base64(box))")
    #expect(encryption.systemKeys.map(\.keyFormatVersions) == ["1", "1"])
    // Presented once more, it is the same.
    let again = try VirtualHLS(try hlsPresentation(hls.mediaPlaylist(of: track)))
    #expect(try keys(again) == keys(hls))
  }

  // MARK: - Private

  private func keys(_ hls: VirtualHLS, _ name: String = "video-0") throws -> [String] {
    try hls.playlist(name).split(separator: "\n").filter { $0.hasPrefix("#EXT-X-KEY:") }.map {
      String($0.dropFirst(11))
    }
  }

  /// A tag without its value, or the format and the first digits of the id of a key.
  private static func brief(_ line: String) -> String {
    if line.hasSuffix(".m4s") { return ".m4s" }
    guard line.hasPrefix("#EXT-X-KEY"), let format = line.quoted("KEYFORMAT") else {
      return line == "#EXT-X-KEY:METHOD=NONE" ? "KEY NONE" : String(line.prefix { $0 != ":" })
    }
    let id = line.contains("KEYID=0x31") ? " 1" : line.contains("KEYID=0x41") ? " 2" : ""
    return "KEY \(format.suffix(9))\(id)"
  }

  private func video(_ protections: String) -> String {
    set(#"contentType="video""#, template + protections + rung("v", 300_000, "avc1.64000b"))
  }

  private func mpd(
    _ content: String, attributes: String = #"type="static" mediaPresentationDuration="PT8S""#
  ) -> String {
    "<MPD \(attributes)><Period id=\"p\" start=\"PT0S\">\(content)</Period></MPD>"
  }

  /// An MPD with a period of one segment for each of these protections.
  private func periods(_ list: [String], and content: String = "") -> String {
    let elements = list.map { "<Period duration=\"PT4S\">\(video($0))\(content)</Period>" }
    return "<MPD type=\"static\">\(elements.joined())</MPD>"
  }
}

private func protection(_ scheme: String?, id: String? = nil) -> String {
  let value = scheme.map { " value=\"\($0)\"" } ?? ""
  let id = id.map { " cenc:default_KID=\"\($0)\"" } ?? ""
  return "<ContentProtection schemeIdUri=\"urn:mpeg:dash:mp4protection:2011\"\(value)\(id)/>"
}

private func system(_ id: String, _ box: [UInt8]?, _ content: String = "") -> String {
  let data = box.map { "<cenc:pssh>\(base64($0))</cenc:pssh>" } ?? ""
  return "<ContentProtection schemeIdUri=\"urn:uuid:\(id)\">\(data)\(content)</ContentProtection>"
}

private func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

/// The keys of HLS itself come out as they are written.
@Suite struct VirtualHLSSourceKeysTests {
  /// Several formats, a change of one of them, and none at all.
  @Test func severalFormats() throws {
    let keys = [
      #"METHOD=SAMPLE-AES,URI="skd://a:b@key/1?x=1,2",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1""#,
      #"METHOD=SAMPLE-AES,URI="data:text/plain;base64,AAAA",KEYID=0x31323334353637383930313233343536,"#
        + #"IV=0x000102030405060708090a0b0c0d0e0f,KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed","#
        + #"KEYFORMATVERSIONS="1/2""#,
      #"METHOD=SAMPLE-AES,URI="https://drm.example/key?1",KEYFORMAT="com.example.drm""#,
      #"METHOD=SAMPLE-AES,URI="skd://2",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1""#,
    ].map { "#EXT-X-KEY:\($0)" }
    let source =
      ["#EXTM3U"] + keys[0...2] + ["#EXTINF:4,", "a.ts", keys[3], "#EXTINF:4,", "b.ts"]
      + ["#EXT-X-KEY:METHOD=NONE", "#EXTINF:4,", "c.ts", "#EXT-X-ENDLIST"]
    let text = try VirtualHLS(hlsPresentation(source.joined(separator: "\n"))).playlist("video-0")
    let lines = text.split(separator: "\n").map(String.init).filter { $0.hasPrefix("#EXT-X-KEY") }
    // The key that changed is the last in force.
    #expect(lines == Array(keys[0...2]) + [keys[1], keys[2], keys[3], "#EXT-X-KEY:METHOD=NONE"])
    #expect(text.contains("#EXT-X-VERSION:5\n"))
  }

  /// A plain key is a resource of the gateway, beside those of DRM systems.
  @Test func aPlainKeyAmongOthers() throws {
    let hls = try VirtualHLS(
      hlsPresentation(
        """
        #EXTM3U
        #EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://1",KEYFORMAT="com.apple.streamingkeydelivery"
        #EXT-X-KEY:METHOD=SAMPLE-AES,URI="k",IV=0x01
        #EXTINF:4,
        a.ts
        #EXT-X-ENDLIST
        """))
    #expect(
      try hls.playlist("video-0").contains(
        """
        #EXT-X-KEY:METHOD=SAMPLE-AES,URI="key-0.key",IV=0x00000000000000000000000000000001
        #EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://1",KEYFORMAT="com.apple.streamingkeydelivery"
        #EXTINF:4,
        """))
    #expect(try hls.resources("video-0")["key-0.key"]?.url.absoluteString == "https://origin.example/a/b/k")
  }

  /// A relative URI of a DRM system becomes absolute, without the password of the playlist's URL.
  @Test func aRelativeURI() throws {
    let url = try #require(URL(string: "https://me:secret@origin.example/a/b.m3u8"))
    let hls = try VirtualHLS(
      hlsPresentation(
        """
        #EXTM3U
        #EXT-X-KEY:METHOD=SAMPLE-AES,URI="license?x=a:b",KEYFORMAT="com.example.drm"
        #EXTINF:4,
        a.ts
        #EXT-X-ENDLIST
        """, url: url))
    let text = try hls.playlist("video-0")
    #expect(text.contains(#"URI="https://origin.example/a/license?x=a:b""#))
    #expect(!text.contains("secret"))
  }

  /// Other names of SAMPLE-AES-CTR stay; an unknown method, and a system's key without a URI, are refused.
  @Test(arguments: [
    (#"METHOD=SAMPLE-AES-CENC,URI="data:,x",KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed""#, nil),
    (#"METHOD=ISO-23001-7,URI="data:,x",KEYFORMAT="com.microsoft.playready""#, nil),
    (#"METHOD=AES-256,URI="k""#, "encrypted: AES-256"),
    (#"METHOD=AES-256,URI="skd://k",KEYFORMAT="com.apple.streamingkeydelivery""#, "encrypted: AES-256"),
    (
      #"METHOD=SAMPLE-AES,KEYFORMAT="com.apple.streamingkeydelivery""#,
      "encrypted: FairPlay, without the URI of a key"
    ),
  ])
  func methods(key: String, reason: String?) throws {
    let source = "#EXTM3U\n#EXT-X-KEY:\(key)\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST"
    guard let reason else {
      let text = try VirtualHLS(hlsPresentation(source)).playlist("video-0")
      #expect(text.contains("#EXT-X-KEY:\(key)\n"))
      return
    }
    let error = manifestError(.unsupported) { _ = try VirtualHLS(hlsPresentation(source)) }
    #expect(error?.reason == "nothing in it can be presented as HLS: video '0' is left out: \(reason)")
  }

  @Test(arguments: [
    ("hls-aes128/index.m3u8", 1), ("hls-aes128/fmp4.m3u8", 1), ("hls-aes128/rotating.m3u8", 3),
    ("hls-sample-aes/index.m3u8", 1), ("encrypted/hls-ts/rotating.m3u8", 3), ("encrypted/cbcs/video.m3u8", 1),
    ("encrypted/hls-ts/data-key.m3u8", 1),
  ])
  func fixtures(path: String, count: Int) throws {
    let text = try String(contentsOfFile: Fixtures.path(path), encoding: .utf8)
    let source = try mediaPlaylist(text)
    let hls = try VirtualHLS(try hlsPresentation(text))
    let track = try #require(hls.track(named: "video-0"))
    let written = hls.mediaPlaylist(of: track)
    #expect(written.split(separator: "\n").filter { $0.hasPrefix("#EXT-X-KEY") }.count == count)
    let found = try mediaPlaylist(written)
    #expect(found.segments.map(\.encryption) == source.segments.map(\.encryption))
    #expect(
      found.segments.map(\.initialization?.encryption) == source.segments.map(\.initialization?.encryption))
  }
}

extension String {
  /// The quoted value of an attribute.
  fileprivate func quoted(_ name: String) -> String? {
    guard let start = range(of: ",\(name)=\"")?.upperBound ?? range(of: ":\(name)=\"")?.upperBound else {
      return nil
    }
    return String(self[start...].prefix { $0 != "\"" })
  }
}
