public import Foundation
public import Logging
public import ReelCore
internal import ReelFFmpeg
internal import ReelReading
public import ReelSources

/// Makes storyboards of sources, as `reel storyboard` does.
///
/// You can begin any number of extractions at once. Each has several threads while it runs, so only some run at a time, as
/// `FrameExtractor` says.
public struct StoryboardExtractor: Sendable {
  private let extractor: StillExtractor

  /// Creates an extractor.
  ///
  /// - Parameters:
  ///   - fetcher: Fetches manifests and media; by default, over HTTP(S) and from local files.
  ///   - configuration: The configuration of loading.
  ///   - logger: Receives the messages of FFmpeg's libraries.
  public init(
    fetcher: (any Fetching)? = nil, configuration: LoadingConfiguration = LoadingConfiguration(),
    logger: Logger = Logger(label: "reel.stills")
  ) {
    extractor = StillExtractor(fetcher, configuration, logger)
  }

  /// Returns the key frame nearest to the beginning of each interval, none of them twice.
  ///
  /// From segments, MP4 and Matroska, only the index and these frames are fetched, several at a time. Other sources are
  /// read to their end. A frame that can't be read, or does not arrive within 30 s, is left out.
  ///
  /// - Parameters:
  ///   - url: An `http`, `https` or `file` URL of a media file, an HLS playlist or a DASH MPD. Of a live presentation,
  ///     the current window is read.
  ///   - interval: The distance between frames: from 0.1 s, and such that there are at most 10,000.
  ///   - maximumSize: The size that each frame must fit into. None is enlarged. The cheapest rung that is large enough
  ///     is read, whatever the bandwidth cap. If nil, frames are up to 320 pixels wide.
  /// - Throws: `ReelError`, or `CancellationError`. The error's kind is `badMedia` if no frame can be read, `usage` for an
  ///   interval below 0.1 s, and `unsupported` for too many frames, a stream without an end, and Dolby Vision of
  ///   profile 5.
  public func storyboard(
    of url: URL, every interval: MediaTime = .seconds(10), maximumSize: PixelSize? = nil
  ) async throws -> Storyboard {
    guard Storyboard.intervals.contains(interval.seconds) else {
      throw ReelError(
        .usage, "the interval of a storyboard is from 0.1 s to 1000000 s", at: url.absoluteString)
    }
    return try await storyboard(.every(interval.seconds), of: url, maximumSize)
  }

  /// Like ``storyboard(of:every:maximumSize:)``, with frames evenly over the duration.
  ///
  /// - Parameters:
  ///   - url: The source.
  ///   - count: The number of frames, from 1 to 10,000; fewer if there are not as many key frames.
  ///   - maximumSize: The size that each frame must fit into.
  /// - Throws: Also `ReelError` of kind `usage` for another count, and `unsupported` if the duration is not known.
  public func storyboard(
    of url: URL, count: Int, maximumSize: PixelSize? = nil
  ) async throws -> Storyboard {
    guard (1...Storyboard.slotLimit).contains(count) else {
      throw ReelError(
        .usage, "a storyboard has 1 to \(Storyboard.slotLimit) frames, not \(count)", at: url.absoluteString)
    }
    return try await storyboard(.count(count), of: url, maximumSize)
  }

  // MARK: - Private

  private func storyboard(
    _ spacing: Storyboard.Spacing, of url: URL, _ maximumSize: PixelSize?
  ) async throws -> Storyboard {
    var extractor = extractor
    extractor.size = maximumSize.map { .box($0) }
    return try await extractor.storyboard(spacing, of: .url(url)) { tiles in
      var found: [Storyboard.Tile] = []
      while let tile = try tiles.next() { found.append(tile) }
      let report = try tiles.report()
      return Storyboard(
        frames: try found.map { try VideoFrame($0.still, time: report.start + $0.time) },
        interval: MediaTime(value: Int64(report.interval), timescale: 1000),
        faults: report.faults + report.missing.map(\.error) + [report.endFault].compactMap(\.self))
    }
  }
}
