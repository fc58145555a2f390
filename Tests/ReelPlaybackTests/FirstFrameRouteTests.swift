import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelReading
@testable import ReelSources

/// The first frame has the same samples on every route from bytes to frames.
@Suite("The first frame on every route", .hangLimit)
struct FirstFrameRouteTests {
  /// All playable fixtures with video, except single segments.
  static let paths =
    Fixtures.names(in: "transport").map { "transport/\($0)" }
    + Fixtures.names(in: "media").filter { !$0.hasPrefix("audio-") }.map { "media/\($0)" }
    + Set(PresentationCase.all.map(\.path)).sorted()

  @Test("Extraction, the player and preloads show the same frame", arguments: paths)
  func routes(path: String) async throws {
    let file = try MediaSource(argument: Fixtures.folder.appending(path: path).path)
    let expected = try #require(try await extract(.first, from: file).frames.first)
    if let golden = Self.golden(of: path) { #expect(expected.md5 == golden) }
    for selection in [FrameSelection.count(1), .count(0), .times([.zero])] {
      #expect(try await extract(selection, from: file).frames.first?.md5 == expected.md5, "\(selection)")
    }
    let url = try #require(URL(string: "http://fixtures.test/\(path)"))
    for chunk in [1, 4096] {
      let fetcher = FixtureFetcher(chunkByteCount: chunk)
      let fetched = try await extract(.first, from: .url(url), fetcher: fetcher).frames.first
      #expect(fetched?.md5 == expected.md5, "pieces of \(chunk)")
    }
    try await Origin.use { origin in
      let fetched = try await extract(.first, from: origin.source(path)).frames.first
      #expect(fetched?.md5 == expected.md5, "over HTTP")
    }
    for stage in [PreloadStage.manifest, .initialization, .firstFrame, .buffered] {
      #expect(try await shown(url, after: stage) == expected.md5, "after \(stage)")
    }
    #expect(try await shown(url, after: nil) == expected.md5, "played")
  }

  /// The first frame that a player hands to an output, after a preload to a stage.
  private func shown(_ url: URL, after stage: PreloadStage?) async throws -> String? {
    let scene = try SimulatedStage(.url(url), fetcher: FixtureFetcher())
    let (player, recording) = (scene.player, scene.recording)
    if let stage {
      try player.detach(recording)
      player.preloadTarget = PreloadTarget(stage: stage)
      player.replaceCurrentItem(with: scene.item)
      try await scene.run(untilLoaded: stage)
      try player.attach(recording)
      player.preloadTarget = nil
      player.setRate(.infinity)
    } else {
      scene.begin(rate: .infinity)
    }
    try await scene.run { !recording.all.isEmpty || scene.events.contains { $0.isEnd } }
    try await scene.close()
    return recording.all.first?.md5
  }

  /// The first frame that ffmpeg decodes, if there is a golden file for this file.
  private static func golden(of path: String) -> String? {
    guard !path.hasSuffix("h264-sets-late.ts") else { return nil }
    let name = path.replacing("media/", with: "").replacing("transport/", with: "transport-")
    return (try? Golden(name))?.frames.first?.md5
  }
}
