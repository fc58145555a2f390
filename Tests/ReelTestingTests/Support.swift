import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import ReelTesting

/// When the simulations of the tests begin: 2026-01-31T12:00:00Z.
let launch = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)

func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value, timescale: 1_000_000) }

/// A live stream of a fixture, and what tells it the time.
func hlsSimulation(
  _ name: String = "hls-fmp4/master.m3u8", _ options: HLSLiveSimulation.Options = .init()
) throws -> (HLSLiveSimulation, ManualClock) {
  let clock = ManualClock(launch)
  let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: name))
  return (try HLSLiveSimulation(material, start: launch, options: options) { clock.now }, clock)
}

/// A live presentation of a fixture, and what tells it the time.
func dashSimulation(
  _ name: String = "dash-number/manifest.mpd", _ options: DASHLiveSimulation.Options = .init()
) throws -> (DASHLiveSimulation, ManualClock) {
  let clock = ManualClock(launch)
  let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: name))
  return (try DASHLiveSimulation(material, start: launch, options: options) { clock.now }, clock)
}

extension HLSLiveSimulation {
  /// The lines of the playlist of the first track so long after the start.
  func lines(after elapsed: Double, track: Int = 0) -> [String] {
    mediaPlaylist(ofTrack: track, at: launch + seconds(elapsed)).split(separator: "\n").map(String.init)
  }

  /// What Reel reads out of it.
  func segments(after elapsed: Double, track: Int = 0) throws -> MediaPlaylistSegments {
    let text = mediaPlaylist(ofTrack: track, at: launch + seconds(elapsed))
    return try ManifestReader().mediaPlaylist(
      from: Array(text.utf8), url: URL(filePath: "/live/\(material.tracks[track].id)"))
  }
}

extension DASHLiveSimulation {
  func text(after elapsed: Double) throws -> String {
    guard let text = manifest(atServerTime: launch + seconds(elapsed)) else {
      throw ReelError(.badManifest, "no MPD yet")
    }
    return text
  }

  /// The status of the answer to a path below the simulation's.
  func status(_ path: String) -> Int { response(at: "/live/\(path)")?.status ?? 404 }
}

extension String {
  /// The values of an attribute, in their order.
  func values(of attribute: String) -> [String] {
    components(separatedBy: " \(attribute)=\"").dropFirst().map { String($0.prefix { $0 != "\"" }) }
  }
}
