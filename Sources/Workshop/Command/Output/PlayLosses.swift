import ReelCore
import ReelPlayback

/// The media of a source that `reel play` did not show or play, and the failures that explain it.
struct PlayLosses {
  /// The media between frames, before the first one and after the last one.
  private(set) var media: ShownMedia
  private let failures: [ErrorLogEntry]
  private let damagedCount: Int
  private let source: String

  /// Media that is absent for less than this at the beginning and the end is due to rounded times.
  private static let tolerance = MediaTime(value: 1, timescale: 20)

  /// - Parameters:
  ///   - failures: The log of the item.
  ///   - start: Where playback was to begin; nil for the beginning.
  ///   - isComplete: The source was played to its end.
  init(
    _ account: PlayFrames.Account, failures: [ErrorLogEntry], start: MediaTime?, isComplete: Bool,
    source: String
  ) {
    media = account.media
    damagedCount = account.damagedCount
    self.source = source
    let lastEnd = account.media.end
    self.failures = failures.filter { entry in
      // What was loaded ahead was not to be played.
      guard !isComplete, let lastEnd, let from = entry.loss?.range?.lowerBound else { return true }
      return from < lastEnd
    }
    guard let first = media.firstTime, var end = lastEnd else { return }
    var leading = start ?? .zero
    for loss in self.failures.compactMap(\.loss) where loss.kind == .video {
      guard let range = loss.range else { continue }
      let before = max(range.lowerBound, leading)
      if first - before > Self.tolerance, range.upperBound > before {
        leading = min(range.upperBound, first)
        media.add(MediaLoss(kind: .video, reason: loss.reason, range: before..<leading))
      }
      let after = max(range.lowerBound, end)
      if isComplete, range.upperBound - after > Self.tolerance {
        end = range.upperBound
        media.add(MediaLoss(kind: .video, reason: loss.reason, range: after..<end))
      }
    }
  }

  /// The media that was not shown, in order, each with the failure that explains it.
  var parts: [(range: Range<MediaTime>, reason: MediaLoss.Reason, error: ReelError?)] {
    media.losses.compactMap { loss in
      loss.range.map { range in (range, loss.reason, explanation(of: loss.reason, in: range)) }
    }.sorted { $0.range.lowerBound < $1.range.lowerBound }
  }

  /// The first media that was missed, damaged or skipped, of video or audio, as an error. Frames that were dropped because
  /// they were late do not count.
  var first: ReelError? {
    let logged = failures.compactMap { entry in
      entry.loss.map { (time: $0.range?.lowerBound ?? entry.time ?? .zero, error: entry.error) }
    }
    let unexplained = parts.filter { $0.reason != .dropped && $0.error == nil }.map { part in
      (
        time: part.range.lowerBound,
        error: ReelError(
          .badMedia, "\(part.reason.rawValue): no frame \(PlayText.words(of: part.range))", at: source)
      )
    }
    if let first = (logged + unexplained).min(by: { $0.time < $1.time }) { return first.error }
    guard damagedCount > 0 else { return nil }
    return ReelError(.badMedia, "\(damagedCount) damaged frames were shown", at: source)
  }

  // MARK: - Private

  private func explanation(of reason: MediaLoss.Reason, in range: Range<MediaTime>) -> ReelError? {
    guard reason != .dropped else { return nil }
    return failures.last { entry in
      guard let loss = entry.loss, loss.kind == .video, let lost = loss.range else { return false }
      return loss.reason == reason && lost.overlaps(range)
    }?.error
  }
}
