internal import Foundation
internal import ReelCore
internal import ReelFFmpeg

/// The video track of one media file.
final class ResourceTrackReader: VideoTrackReader {
  private let resource: MediaResource
  private let context: TrackContext
  private let reader: PictureReader
  private let isSeekable: Bool
  /// The time of the timeline's beginning, in the stream's ticks; nil before the first picture of a container whose
  /// timestamps begin anywhere.
  private var origin: Int64?
  /// The end of the last frame, which is the time of a next frame without a timestamp.
  private var end: MediaTime?

  /// Seeking pays from here on: key frames are seldom further apart than a few seconds.
  private static let worthwhileDistance = MediaTime(value: 2, timescale: 1)

  /// - Parameter seeks: times other than the first are wanted.
  init(_ resource: MediaResource, seeks: Bool, context: TrackContext) throws {
    self.resource = resource
    self.context = context
    let needsSeek = resource.layout == .indexLast || resource.layout == .unknown && resource.format == .mp4
    // A seekable source makes mov visit every fragment of a fragmented file before its first packet.
    let wantsSeek = needsSeek || seeks && resource.layout != .indexFirst(isFragmented: true)
    let source: any ByteSource
    let scope = context.scope
    switch resource.access {
    case .file(let path):
      source = CountedByteSource(
        try FileByteSource(path: path, isCancelled: { scope.isCancelled }), recorder: context.recorder)
    case .spooled(let file):
      source = FileByteSource(file, isCancelled: { scope.isCancelled })
    case .standardInput:
      source = CountedByteSource(
        FileByteSource.standardInput(isCancelled: { scope.isCancelled }), recorder: context.recorder)
    case .response(let response, let read):
      source = ResourceByteSource(
        response: response, read: read, isSeekable: wantsSeek, fetcher: context.fetcher,
        headers: context.configuration.headers, scope: scope, recorder: context.recorder)
    }
    isSeekable = wantsSeek && source.isSeekable
    do {
      reader = try PictureReader(
        source: source, format: resource.format,
        options: context.options(isSeekable: wantsSeek, keys: context.keys(of: resource, scope: scope)),
        name: resource.name, logger: context.logger)
    } catch let error as ReelError {
      throw error.located(at: resource.name)
    }
    switch resource.format {
    // MP4 and Matroska timelines begin at 0.
    case .mp4, .matroska: origin = 0
    default: break
    }
  }

  var picture: PictureReader? { reader }
  var timing: PictureReader.Timing { reader.timing }
  var damagedCount: Int { reader.damagedCount }

  func firstPicture() throws -> TimedPicture? { try timed { try reader.firstPicture() } }

  func nextPicture() throws -> TimedPicture? { try timed { try reader.nextPicture() } }

  func seek(to time: MediaTime) throws {
    guard isSeekable else { return }
    let stream = reader.stream
    guard stream.timeBase.numerator > 0 else { return }
    let ticks = time.ticks(timescale: stream.timeBase.denominator) / Int64(stream.timeBase.numerator)
    _ = try reader.seek(toKeyFrameAtOrBefore: ticks + (origin ?? 0))
  }

  func isSeekWorthwhile(to time: MediaTime, from position: MediaTime) -> Bool {
    isSeekable && origin != nil && (time < position || time - position > Self.worthwhileDistance)
  }

  // MARK: - Private

  private func timed(_ read: () throws -> Frame?) throws -> TimedPicture? {
    do {
      guard let frame = try read() else { return nil }
      let ticks = frame.presentationTicks
      if origin == nil { origin = ticks ?? 0 }
      let time = ticks.map { reader.stream.time(ticks: $0 - (origin ?? 0)) } ?? end ?? .zero
      let picture = TimedPicture(
        frame: frame, time: time, stream: reader.stream, frameRate: reader.frameRate)
      end = time + picture.displayTime
      return picture
    } catch let error as ReelError {
      throw error.located(at: resource.name)
    }
  }
}
