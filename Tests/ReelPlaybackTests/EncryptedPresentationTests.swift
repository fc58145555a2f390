import Foundation
import ReelCore
import ReelFFmpeg
import ReelManifest
import ReelPlayback
import ReelTesting
import ReelTestSupport
import Testing

@testable import ReelReading
@testable import ReelSources

/// A provider that reads each key from where the playlist says it is.
private struct KeysByURL: KeyProvider {
  func key(for request: KeyRequest) async throws -> ContentKey? {
    guard let url = request.keyURL else { return nil }
    return ContentKey(bytes: try Data(contentsOf: url))
  }
}

/// A provider that answers late.
private final class SlowKeys: KeyProvider {
  let requests = Locked<[KeyRequest]>([])

  func key(for request: KeyRequest) async throws -> ContentKey? {
    requests.withLock { $0.append(request) }
    await Task.yield()
    return try await KeyList.fixtures.key(for: request)
  }
}

@Suite(.hangLimit) struct EncryptedPresentationTests {
  private func configuration(_ keys: (any KeyProvider)?) -> LoadingConfiguration {
    var configuration = LoadingConfiguration()
    configuration.keyProvider = keys
    return configuration
  }

  private func frames(
    _ path: String, _ keys: (any KeyProvider)?, _ selection: FrameSelection = .count(0)
  ) async throws -> [String] {
    let extractor = FrameExtractor(
      fetcher: makeFetcher(), configuration: configuration(keys), logger: silentLogger)
    let md5s = Locked<[String]>([])
    let source = try MediaSource(argument: Fixtures.folder.appending(path: path).path)
    try await extractor.extract(selection, from: source) { frame in
      let md5 = try frame.md5()
      md5s.withLock { $0.append(md5) }
    }
    return md5s.withLock { $0 }
  }

  private func golden() throws -> [String] { try Golden("encrypted-clear").frames.map { $0.md5 } }

  @Test(arguments: [
    "encrypted/cenc/manifest.mpd", "encrypted/cens/manifest.mpd", "encrypted/cbc1/manifest.mpd",
    "encrypted/cbcs/video.mp4", "encrypted/cenc/video.mp4",
  ])
  func `Every scheme gives the frames of the original`(path: String) async throws {
    #expect(try await frames(path, KeyList.fixtures) == golden())
  }

  @Test func `VP9 in WebM`() async throws {
    let golden = try Golden("encrypted-clear-webm").frames.map { $0.md5 }
    #expect(try await frames("encrypted/webm/manifest.mpd", KeyList.fixtures) == golden)
    #expect(try await frames("encrypted/webm/video.webm", nil, .first) == [golden[0]])
  }

  /// The playlist gives the key's URL (KEYFORMAT identity).
  @Test(arguments: ["cbcs/master.m3u8", "hls-ts/master.m3u8", "hls-ts/rotating.m3u8"])
  func `A playlist's own keys`(path: String) async throws {
    #expect(try await frames("encrypted/\(path)", nil) == golden())
  }

  /// A list's only key has another id, so the key at the playlist's URL is used.
  @Test func `A playlist's keys go before a key of another id`() async throws {
    var list = KeyList()
    try list.add(parsing: "31323334353637383930313233343536:6e6f7420746865207269676874206f6e")
    #expect(try await frames("encrypted/hls-ts/data-key.m3u8", list) == Array(golden().suffix(25)))
  }

  @Test func `A provider is asked for the key of each URL if the media names no id`() async throws {
    #expect(try await frames("encrypted/hls-ts/rotating.m3u8", KeysByURL()) == golden())
  }

  @Test(arguments: ["clear-lead/manifest.mpd", "clear-lead/master.m3u8", "rotation/manifest.mpd"])
  func `What is in the clear is given without a key`(path: String) async throws {
    #expect(try await frames("encrypted/\(path)", nil, .first) == Array(golden().prefix(1)))
    #expect(try await frames("encrypted/\(path)", nil, .count(25)) == Array(golden().prefix(25)))
  }

  @Test func `A refusal names scheme, systems and key id, behind all that is in the clear`() async throws {
    let extractor = FrameExtractor(fetcher: makeFetcher(), logger: silentLogger)
    let count = Locked(0)
    let path = "encrypted/clear-lead/manifest.mpd"
    let source = try MediaSource(argument: Fixtures.folder.appending(path: path).path)
    let error = await reelError {
      try await extractor.extract(.count(0), from: source) { _ in count.withLock { $0 += 1 } }
    }
    #expect(count.withLock { $0 } == 25)
    #expect(error?.kind == .unsupported)
    for word in ["cbcs", "Widevine", "PlayReady", "key id 31323334353637383930313233343536", "--key"] {
      #expect(error?.description.contains(word) == true, "\(error?.description ?? "")")
    }
  }

  @Test func `A wrong key is named as that`() async throws {
    var list = KeyList()
    list.add(try #require(ContentKey(bytes: "not the right on".utf8)))
    for path in ["cbcs/video.mp4", "cenc/manifest.mpd", "hls-ts/video.m3u8"] {
      for selection in [FrameSelection.first, .count(0)] {
        let error = await reelError { _ = try await frames("encrypted/\(path)", list, selection) }
        #expect(error?.kind == .badMedia, "\(path)")
        #expect(error?.description.contains("key") == true, "\(error?.description ?? "")")
      }
    }
  }

  @Test func `A provider is asked once for each key`() async throws {
    let keys = SlowKeys()
    #expect(try await frames("encrypted/rotation/manifest.mpd", keys) == golden())
    let requests = keys.requests.withLock { $0 }
    #expect(
      requests.compactMap(\.id?.description) == [
        "31323334353637383930313233343536", "32333435363738393031323334353631",
      ])
    #expect(
      requests.allSatisfy { $0.scheme == "cenc" && $0.systems.contains("ClearKey") && !$0.systemData.isEmpty }
    )
  }

  @Test(arguments: ["cbcs/master.m3u8", "rotation/manifest.mpd", "hls-ts/rotating.m3u8", "cbcs/video.mp4"])
  func `A player seeks back and forth and plays on`(path: String) async throws {
    let stage = try SimulatedStage("encrypted/\(path)") { $0.loading.keyProvider = KeyList.fixtures }
    stage.player.replaceCurrentItem(with: stage.item)
    try await stage.run { stage.item.status.value != .unknown }
    for seconds: Int64 in [2, 1] {
      #expect(try await stage.seek(to: MediaTime(value: seconds, timescale: 1)))
    }
    stage.recording.frames.withLock { $0 = [] }
    stage.player.setRate(.infinity)
    try await stage.end()
    try await stage.close()
    let shown = stage.recording.all.map(\.md5)
    #expect(try golden().suffix(49).elementsEqual(shown.suffix(49)))
  }

  /// The reader stops when the buffer is full, so that it never comes to the end of the audio.
  @Test(arguments: [Double.infinity, 4]) func `A wrong key ends playback after the clear lead`(rate: Double)
    async throws
  {
    var list = KeyList()
    list.add(try #require(ContentKey(bytes: "not the right on".utf8)))
    let stage = try SimulatedStage.local("encrypted/clear-lead/video.mp4") { [list] in
      $0.loading.keyProvider = list
    }
    stage.item.preferredForwardBufferDuration = .milliseconds(100)
    stage.begin(rate: rate)
    let end = try await stage.end()
    try await stage.close()
    guard case .failed(let error) = end else {
      Issue.record("\(end)")
      return
    }
    #expect(error.description.contains("key may be wrong"))
    #expect(stage.recording.all.map(\.md5) == Array(try golden().prefix(25)))
  }

  // MARK: Rungs

  private func rung(_ id: String, bitRate: Int, _ protection: ContentProtection?) throws -> Rung {
    Rung(
      id: id, bitsPerSecond: bitRate, protection: protection,
      media: .playlist(try #require(URL(string: "https://a.test/\(id)"))))
  }

  @Test func `Rungs that can be decrypted go before others`() throws {
    let held = ContentProtection(
      schemes: ["Common Encryption (cenc)"], keyIDs: [try #require(KeyID(bytes: "1234567890123456".utf8))])
    let other = ContentProtection(
      schemes: ["Widevine"], keyIDs: [try #require(KeyID(bytes: "other-key-id-16b".utf8))])
    let group = { (rungs: [Rung]) in
      TrackGroup(
        id: nil, kind: .video, language: nil, label: nil, roles: [], isDefault: false, rungs: rungs)
    }
    let chosen = { (groups: [TrackGroup], keys: KeyList?) in
      let period = Period(id: nil, start: .zero, duration: nil, trackGroups: groups)
      return try RungSelector(peakBitRate: 5, maximumHeight: nil, keyProvider: keys).videoRung(in: period).id
    }
    let groups = [
      group([try rung("locked", bitRate: 4, other), try rung("keyed", bitRate: 3, held)]),
      group([try rung("clear", bitRate: 2, nil)]),
    ]
    #expect(try chosen(groups, nil) == "clear")
    #expect(try chosen(groups, .fixtures) == "keyed")
    // The media may begin in the clear.
    #expect(try chosen([groups[0]], nil) == "locked")
  }
}
