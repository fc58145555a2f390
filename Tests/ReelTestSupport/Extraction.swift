import Foundation
package import ReelCore
import ReelFFmpeg
package import ReelPlayback
package import ReelReading
package import ReelSources
package import ReelTesting

/// What an extraction gave.
package struct Extraction: Sendable {
  package let frames: [Shown]
  package let report: FrameExtractor.Report
}

/// Extracts from a source.
package func extract(
  _ selection: FrameSelection, from source: MediaSource, peakBitRate: Int? = nil, maximumHeight: Int? = nil,
  fetcher: any Fetching = makeFetcher()
) async throws -> Extraction {
  var configuration = LoadingConfiguration()
  if let peakBitRate { configuration.preferredPeakBitRate = peakBitRate }
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
package func extract(
  _ selection: FrameSelection, path: String, peakBitRate: Int? = nil
) async throws -> Extraction {
  try await extract(
    selection, from: MediaSource(argument: Fixtures.folder.appending(path: path).path),
    peakBitRate: peakBitRate)
}

/// All frames of a file in Fixtures, decoded only once for all tests.
package func frames(of path: String, peakBitRate: Int? = nil) async throws -> [Shown] {
  let task = extractions.withLock { extractions in
    let key = "\(path) \(peakBitRate ?? 0)"
    if let task = extractions[key] { return task }
    let task = Task { try await extract(.count(0), path: path, peakBitRate: peakBitRate).frames }
    extractions[key] = task
    return task
  }
  return try await task.value
}

private let extractions = Locked<[String: Task<[Shown], any Error>]>([:])

extension Origin {
  /// A path below this origin as a source.
  package func source(_ path: String) throws -> MediaSource {
    try MediaSource(argument: url(path).absoluteString)
  }
}

extension KeyList {
  /// The keys of Fixtures/encrypted. Key rotation rotates the id and the key by one byte.
  package static let fixtures: KeyList = {
    var list = KeyList()
    for (id, key) in [
      ("1234567890123456", "2345678901234567"), ("2345678901234561", "3456789012345672"),
      ("3456789012345612", "4567890123456723"),
      ("key-id-of-anothe", "another key, yes"),
    ] {
      if let key = ContentKey(bytes: key.utf8) { list.add(key, for: KeyID(bytes: id.utf8)) }
    }
    return list
  }()
}

/// Calls `body` with the first frames of a clip, as the player gets them; 0 for all of them.
package func withFrames(
  of path: String, count: Int = 0, _ body: @escaping @Sendable (VideoFrame) throws -> Void
) async throws {
  let extractor = FrameExtractor(fetcher: makeFetcher(), logger: silentLogger)
  let source = try MediaSource(argument: Fixtures.folder.appending(path: path).path)
  try await extractor.extract(count == 0 ? .count(0) : .count(count), from: source) { try body($0) }
}

/// Shows the first frames of a clip; 0 for all of them.
///
/// - Parameter start: Added to the output times of the frames.
package func show(
  _ path: String, count: Int = 0, on output: any FrameOutput, from start: MediaTime = .zero
) async throws {
  try await withFrames(of: path, count: count) { frame in
    var placed = frame
    placed.outputTime = frame.time + start
    try output.show(placed)
  }
}
