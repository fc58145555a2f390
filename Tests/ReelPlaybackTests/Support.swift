import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelTesting
import ReelTestSupport
import Testing

/// What an extraction gave.
struct Extraction: Sendable {
  let frames: [Shown]
  let report: FrameExtractor.Report
}

/// Extracts from a source.
func extract(
  _ selection: FrameSelection, from source: MediaSource, bandwidthCap: Int? = nil, maximumHeight: Int? = nil,
  fetcher: any Fetching = makeFetcher()
) async throws -> Extraction {
  var configuration = LoadingConfiguration()
  if let bandwidthCap { configuration.bandwidthCap = bandwidthCap }
  configuration.maximumHeight = maximumHeight
  configuration.keyProvider = KeyList.fixtures
  let extractor = FrameExtractor(fetcher: fetcher, configuration: configuration, logger: silentLogger)
  let frames = Locked<[Shown]>([])
  let report = try await extractor.extract(selection, from: source) { frame in
    let shown = try Shown(frame)
    frames.withLock { $0.append(shown) }
  }
  return Extraction(frames: frames.withLock { $0 }, report: report)
}

/// Extracts from a file below Fixtures.
func extract(
  _ selection: FrameSelection, path: String, bandwidthCap: Int? = nil
) async throws -> Extraction {
  try await extract(
    selection, from: MediaSource(argument: Fixtures.folder.appending(path: path).path),
    bandwidthCap: bandwidthCap)
}

/// All frames of a file in Fixtures, decoded only once for all tests.
func frames(of path: String, bandwidthCap: Int? = nil) async throws -> [Shown] {
  let task = extractions.withLock { extractions in
    let key = "\(path) \(bandwidthCap ?? 0)"
    if let task = extractions[key] { return task }
    let task = Task { try await extract(.count(0), path: path, bandwidthCap: bandwidthCap).frames }
    extractions[key] = task
    return task
  }
  return try await task.value
}

private let extractions = Locked<[String: Task<[Shown], any Error>]>([:])

extension Origin {
  /// A path below this origin as a source.
  func source(_ path: String) throws -> MediaSource { try MediaSource(argument: url(path).absoluteString) }
}
