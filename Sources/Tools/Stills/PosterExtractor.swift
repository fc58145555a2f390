public import Foundation
public import Logging
public import ReelCore
internal import ReelFFmpeg
public import ReelReading
public import ReelSources
internal import ReelTransport

/// Finds a good frame of a source, as `reel poster` does.
///
/// You can begin any number of extractions at once. Each has a thread while it runs, so only some run at a time, as
/// `FrameExtractor` says.
public struct PosterExtractor: Sendable {
  /// The number of key frames that are compared with the first frame.
  private static let candidateCount = 6

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

  /// Returns the best of the first frame and six key frames of the first 30 s: upright, with square pixels, in RGB, HDR
  /// mapped to SDR.
  ///
  /// Black, uniform, faded, blurred and damaged frames are rejected. If all are, the result is the least bad one. Of
  /// segments and MP4 files, only the bytes of these frames are fetched. A frame that does not arrive within 30 s is
  /// left out.
  ///
  /// - Parameters:
  ///   - url: An `http`, `https` or `file` URL of a media file, an HLS playlist or a DASH MPD.
  ///   - maximumSize: The size that the frame must fit into. It is not enlarged. The cheapest rung that is large enough
  ///     is read, whatever the bandwidth cap. If nil, the frame has its own size.
  /// - Throws: `ReelError`, or `CancellationError`. The error's kind is `badMedia` if the source has no frame, and
  ///   `unsupported` for Dolby Vision of profile 5.
  public func poster(of url: URL, maximumSize: PixelSize? = nil) async throws -> VideoFrame {
    var extractor = extractor
    extractor.size = maximumSize.map { .box($0) }
    return try await extractor.poster(.best(of: Self.candidateCount), of: .url(url)) { poster in
      let frame = poster.frame
      let size = maximumSize.map { SizeLimit.box($0).fitted(frame.presentationSize) }
      let still = try StillRenderer().render(
        frame.decoded, geometry: frame.geometry(target: size, gravity: .resize),
        orientation: frame.orientation)
      return try frame.replacingPixels(with: still)
    }.result
  }
}

extension StillExtractor {
  /// The extractor of a program, with the limit for each still that the commands have by default.
  ///
  /// - Parameter fetcher: Nil for one over HTTP(S) and local files.
  init(_ fetcher: (any Fetching)?, _ configuration: LoadingConfiguration, _ logger: Logger) {
    let opener = TrackOpener(
      fetcher: fetcher ?? TransportFetcher(logger: logger), configuration: configuration, limit: .sources,
      logger: logger)
    self.init(opener, size: nil, stillLimit: .seconds(30))
  }
}
