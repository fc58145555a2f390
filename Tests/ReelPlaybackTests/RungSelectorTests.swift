import Foundation
import ReelCore
import ReelManifest
import ReelSources
import Testing

@Suite("Choosing a rung")
struct RungSelectorTests {
  private func rung(_ id: String, _ bits: Int?, codecs: [String] = ["avc1.64001f"], height: Int? = nil)
    -> Rung
  {
    Rung(
      id: id, bitsPerSecond: bits, codecs: codecs,
      size: height.map { PixelSize(width: $0 * 16 / 9, height: $0) },
      media: .playlist(URL(filePath: "/\(id).m3u8")))
  }

  private func group(
    _ rungs: [Rung], kind: TrackGroup.Kind = .video, roles: [String] = [], unplayable: String? = nil
  ) -> TrackGroup {
    TrackGroup(
      id: nil, kind: kind, language: nil, label: nil, roles: roles, isDefault: false, rungs: rungs,
      unplayableReason: unplayable)
  }

  private func choose(_ groups: [TrackGroup], cap: Int = 3_000_000, height: Int? = nil) throws -> String {
    try RungSelector(peakBitRate: cap, maximumHeight: height).videoRung(
      in: Period(id: nil, start: .zero, duration: nil, trackGroups: groups)
    ).id
  }

  private var ladder: [Rung] {
    [
      rung("mid", 2_000_000, height: 540), rung("low", 500_000, height: 270),
      rung("high", 6_000_000, height: 1080),
      rung("good", 3_000_000, height: 720),
    ]
  }

  @Test(
    "The highest at or under the cap, else the lowest",
    arguments: [
      (3_000_000, "good"), (2_999_999, "mid"), (100_000_000, "high"), (6_000_000, "high"), (500_000, "low"),
      (499_999, "low"), (1, "low"),
    ])
  func cap(cap: Int, expected: String) throws {
    #expect(try choose([group(ladder)], cap: cap) == expected)
  }

  @Test("Rungs with more lines than the limit are left out, where there are others")
  func maximumHeight() throws {
    #expect(try choose([group(ladder)], cap: 10_000_000, height: 1080) == "high")
    #expect(try choose([group(ladder)], cap: 10_000_000, height: 1079) == "good")
    #expect(try choose([group(ladder)], cap: 10_000_000, height: 300) == "low")
    // None is small enough: the smallest.
    #expect(try choose([group(ladder)], cap: 10_000_000, height: 100) == "low")
    // A rung without a size is not left out.
    #expect(
      try choose([group(ladder + [rung("unknown", 9_000_000)])], cap: 10_000_000, height: 300) == "unknown")
  }

  @Test("Of equal rates the first in the manifest")
  func equalRates() throws {
    #expect(try choose([group([rung("a", 1000), rung("b", 1000)])]) == "a")
    #expect(try choose([group([rung("a", 1000), rung("b", 1000)])], cap: 1) == "a")
  }

  @Test("Rungs without a rate")
  func noRate() throws {
    #expect(try choose([group([rung("only", nil)])]) == "only")
    #expect(try choose([group([rung("none", nil), rung("some", 1000)])]) == "some")
    var average = rung("average", nil)
    average.averageBitsPerSecond = 2_000_000
    #expect(try choose([group([rung("some", 1000), average])]) == "average")
  }

  @Test("Codecs that can't be decoded are passed over")
  func codecs() throws {
    let rungs = [
      rung("vvc", 2_900_000, codecs: ["vvc1.1.L51", "mp4a.40.2"]),
      rung("avc", 1_000_000, codecs: ["avc1.64001f", "mp4a.40.2"]),
      rung("evc", 2_000_000, codecs: ["evc1.vprf3"]),
    ]
    #expect(try choose([group(rungs)]) == "avc")
    for codec in [
      "avc1.4d401e", "avc3.640028", "hvc1.2.4.L153.90", "hev1.1.6.L93", "av01.0.04M.08", "vp09.00.10.08",
      "HVC1.1", "vp8", "vp8.0", "vp08.00.41.08", "vp9", "mp4v.20.9", "mp4v.61", "s263",
    ] {
      #expect(RungSelector.isDecodable(rung("x", 1, codecs: [codec])), "\(codec)")
    }
    for codec in ["vvc1.1", "mp4v.a0", "theora", "vp10", "evc1"] {
      #expect(!RungSelector.isDecodable(rung("x", 1, codecs: [codec])), "\(codec)")
    }
    // Without codecs, and with sound only, it is tried.
    #expect(RungSelector.isDecodable(rung("x", 1, codecs: [])))
    #expect(RungSelector.isDecodable(rung("x", 1, codecs: ["mp4a.40.2"])))
  }

  @Test("Where no codec can be decoded, they are named")
  func noCodec() throws {
    let error = #expect(throws: ReelError.self) {
      try choose([group([rung("a", 1, codecs: ["vvc1.1"]), rung("b", 2, codecs: ["theora"])])])
    }
    #expect(error?.kind == .unsupported)
    #expect(error?.reason.contains("theora") == true)
    #expect(error?.reason.contains("vvc1.1") == true)
  }

  @Test("The main role comes first, alternates last")
  func roles() throws {
    let main = group([rung("main", 1_000_000)], roles: ["main"])
    let plain = group([rung("plain", 2_000_000)])
    let alternate = group([rung("alternate", 2_500_000)], roles: ["alternate"])
    let sign = group([rung("sign", 2_600_000)], roles: ["sign"])
    #expect(try choose([alternate, plain, main, sign]) == "main")
    #expect(try choose([alternate, plain, sign]) == "plain")
    #expect(try choose([alternate]) == "alternate")
    // A main group that can't be decoded gives way.
    let vvc = group([rung("vvc", 1, codecs: ["vvc1"])], roles: ["main"])
    #expect(try choose([vvc, plain]) == "plain")
  }

  @Test("Groups that can't be played are passed over, and their reason told where there are no others")
  func unplayable() throws {
    let locked = group([rung("locked", 2_000_000)], unplayable: "encrypted: Widevine")
    #expect(try choose([locked, group([rung("clear", 1)])]) == "clear")
    let error = #expect(throws: ReelError.self) { try choose([locked]) }
    #expect(error?.kind == .unsupported)
    #expect(error?.reason == "encrypted: Widevine")
  }

  @Test("No video at all")
  func noVideo() throws {
    let audio = group([rung("audio", 1, codecs: ["mp4a.40.2"])], kind: .audio)
    let text = group([rung("text", 1, codecs: ["stpp"])], kind: .text)
    let error = #expect(throws: ReelError.self) { try choose([text, audio]) }
    #expect(error?.kind == .unsupported)
    #expect(error?.reason == "no video, only audio and text")
    #expect(throws: ReelError.self) { try choose([]) }
  }

  @Test("Images are no video")
  func images() throws {
    let images = group([rung("tiles", 2_000_000, codecs: [])], kind: .image)
    #expect(try choose([images, group([rung("video", 1)])]) == "video")
    #expect(throws: ReelError.self) { try choose([images]) }
  }
}
