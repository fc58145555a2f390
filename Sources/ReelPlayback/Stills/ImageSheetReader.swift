internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Fetches and decodes images in order. Each is fetched once, a few ahead.
///
/// Confined to a thread that may block.
final class ImageSheetReader {
  /// The number of bytes of all images that were fetched.
  private(set) var byteCount: Int64 = 0
  /// The time spent waiting for images, and decoding them.
  private(set) var timing = StartupReport.Timing()

  private let opening: TrackOpening
  private let keys: KeyStore
  private let sheets: [ImageTrack.Sheet]
  /// The sheets that are still to be fetched.
  private var upcoming: ArraySlice<Int>
  private var transfers: [(sheet: Int, task: Task<[UInt8], any Error>)] = []
  /// The last sheet, or why it can't be read.
  private var current: (sheet: Int, outcome: Result<ReadSheet, ReelError>)?
  /// The size of the tiles of the first sheet.
  private var expected: PixelSize?

  /// An image with its tiles.
  struct ReadSheet {
    let image: ImageSheet
    let grid: TileGrid
    let byteCount: Int
  }

  /// Images that are fetched at the same time.
  private static let transferLimit = 4
  /// Of one image.
  private static let byteLimit = 32 << 20

  /// - Parameter tiles: The tiles that will be asked for, in this order.
  init(_ listing: ImageTrack.Listing, tiles: [ImageTrack.Tile], opening: TrackOpening) {
    self.opening = opening
    keys = KeyStore(
      fetcher: opening.context.fetcher, headers: opening.context.configuration.headers,
      runtime: opening.context.scope.runtime)
    sheets = listing.sheets
    var order: [Int] = []
    for tile in tiles where order.last != tile.sheet { order.append(tile.sheet) }
    upcoming = order[...]
  }

  deinit {
    for transfer in transfers { transfer.task.cancel() }
  }

  func url(of tile: ImageTrack.Tile) -> String { sheets[tile.sheet].segment.url.reelName }

  /// The image that a tile is in.
  ///
  /// - Parameter limit: Ends the wait for it.
  ///
  /// Throws `ReelError`, located at the image, or `CancellationError`. The error of an image is the same for all its tiles.
  func sheet(of tile: ImageTrack.Tile, limit: ReadingLimit? = nil) throws -> ReadSheet {
    if let current, current.sheet == tile.sheet { return try current.outcome.get() }
    current = nil
    do {
      let read = try read(tile.sheet, limit: limit)
      current = (tile.sheet, .success(read))
      return read
    } catch let error as ReelError where error.kind != .cancelled {
      let located = error.located(at: sheets[tile.sheet].segment.url.reelName)
      current = (tile.sheet, .failure(located))
      throw located
    }
  }

  /// A tile as a frame.
  ///
  /// Throws `ReelError`, located at the image.
  func frame(of tile: ImageTrack.Tile, in sheet: ReadSheet) throws(ReelError) -> TimedFrame {
    guard let origin = sheet.grid.origin(of: tile.index) else {
      throw ReelError(
        .badMedia, "the image of \(sheet.image.size) ends before tile \(tile.index + 1)", at: url(of: tile))
    }
    let frame = try sheet.image.part(x: origin.x, y: origin.y, size: sheet.grid.tile)
    return TimedFrame(frame, time: tile.time, stream: sheet.image.stream, frameRate: nil)
  }

  // MARK: - Private

  private func read(_ index: Int, limit: ReadingLimit?) throws -> ReadSheet {
    let bytes = try bytes(of: index, limit: limit)
    byteCount += Int64(bytes.count)
    let (context, sheet) = (opening.context, sheets[index])
    let start = context.recorder.clock.now
    defer { timing.decode += context.recorder.clock.now - start }
    context.gate?.acquire()
    defer { context.gate?.release(afterPacket: true) }
    let image = try ImageSheet(
      decoding: bytes, name: sheet.segment.url.reelName, logger: context.logger)
    let grid = try TileGrid(
      image.size, sheet.tiles, expected: expected ?? sheet.tiles.size, neededCount: sheet.tileCount)
    expected = expected ?? grid.tile
    return ReadSheet(image: image, grid: grid, byteCount: bytes.count)
  }

  /// Waits for an image.
  private func bytes(of index: Int, limit: ReadingLimit?) throws -> [UInt8] {
    let clock = opening.context.recorder.clock
    let start = clock.now
    defer { timing.source += clock.now - start }
    fetchAhead()
    while let next = transfers.first, next.sheet != index {
      next.task.cancel()
      transfers.removeFirst()
      fetchAhead()
    }
    guard let transfer = transfers.first else {
      throw ReelError(.internalFault, "an image that is not planned")
    }
    transfers.removeFirst()
    limit?.begin()
    defer { limit?.end() }
    do {
      let bytes = try BlockingThread.wait(scope: limit?.scope ?? opening.context.scope) {
        try await withTaskCancellationHandler {
          try await transfer.task.value
        } onCancel: {
          transfer.task.cancel()
        }
      }
      fetchAhead()
      return bytes
    } catch  where limit?.isLate == true && !opening.context.scope.isCancelled {
      fetchAhead()
      throw ReelError(.timedOut, "the image did not come in time")
    } catch {
      fetchAhead()
      throw error
    }
  }

  private func fetchAhead() {
    while transfers.count < Self.transferLimit, let index = upcoming.first {
      upcoming = upcoming.dropFirst()
      let (segment, resolver, keys) = (sheets[index].segment, opening.resolver, keys)
      let task = opening.context.scope.runtime.throwingTask {
        try await resolver.firstOf([segment.url] + segment.alternateURLs) { url in
          try await Self.fetch(segment, at: url, resolver, keys)
        }
      }
      transfers.append((index, task))
    }
  }

  private static func fetch(
    _ segment: SegmentReference, at url: URL, _ resolver: SourceResolver, _ keys: KeyStore
  ) async throws -> [UInt8] {
    let range = segment.byteRange
    let request = FetchRequest(
      url: url, range: range, headers: resolver.configuration.headers, purpose: .segment)
    let response = try await resolver.fetcher.fetch(request)
    var bytes: [UInt8] = []
    do {
      if range == nil, response.bodyByteCount ?? 0 > Int64(byteLimit) { throw tooLarge }
      for try await chunk in response.ranged(range) {
        bytes += chunk
        guard bytes.count <= byteLimit else { throw tooLarge }
      }
    } catch let error as ReelError {
      throw error.located(at: response.url.reelName)
    }
    resolver.recorder.add(.segment, requests: response.requestCount, bytes: Int64(bytes.count))
    guard let decryption = try await keys.decryption(for: segment.encryption, at: url) else { return bytes }
    return try decryption.plain(bytes)
  }

  private static var tooLarge: ReelError {
    ReelError(.badMedia, "an image of more than \(byteLimit >> 20) MiB")
  }
}

extension ImageTrack {
  /// Throws `badMedia` if the tiles of a sheet are smaller than stills of this size, and there are key frames that may be
  /// larger. A pixel or two may have been lost in rounding.
  func check(_ sheet: ImageSheetReader.ReadSheet, for size: StillSize?) throws(ReelError) {
    guard !isAlone, let size else { return }
    let tile = sheet.grid.tile
    let rounded = PixelSize(width: tile.width + 2, height: tile.height + 2)
    guard !size.isReached(by: rounded) else { return }
    throw ReelError(.badMedia, "their tiles have \(tile) pixels, fewer than the manifest states")
  }
}
