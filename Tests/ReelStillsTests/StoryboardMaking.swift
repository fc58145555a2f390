import ReelCore
import ReelSources
import ReelReading
import ReelStills
import ReelTestSupport

/// A storyboard with its tiles.
struct MadeStoryboard: Sendable {
  let storyboard: Storyboard.Report
  let tiles: [Storyboard.Tile]

  var times: [Double] { tiles.map(\.time.seconds) }
  var slots: [Int] { tiles.map(\.slot) }
  var missing: [Int] { storyboard.missing.map(\.slot) }
}

/// Makes a storyboard.
///
/// - Parameters:
///   - stillLimit: How long a still may take by `clock`; nil for no limit.
///   - recordTile: Called after each tile.
func makeStoryboard(
  _ spacing: Storyboard.Spacing = .every(1), of source: MediaSource,
  from fetcher: any Fetching = makeFetcher(), configuration: LoadingConfiguration = LoadingConfiguration(),
  size: SizeLimit = .square(160), stillLimit: Duration? = nil,
  clock: any MonotonicClock = SystemMonotonicClock(), recordTile: @escaping @Sendable () -> Void = {}
) async throws -> MadeStoryboard {
  let extractor = StillExtractor(
    TrackOpener(fetcher: fetcher, configuration: configuration, logger: silentLogger), size: size,
    stillLimit: stillLimit, clock: clock)
  return try await extractor.storyboard(spacing, of: source) { tiles in
    var found: [Storyboard.Tile] = []
    while let tile = try tiles.next() {
      found.append(tile)
      recordTile()
    }
    return MadeStoryboard(storyboard: try tiles.report(), tiles: found)
  }
}
