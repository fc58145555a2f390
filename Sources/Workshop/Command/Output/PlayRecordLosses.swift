import ReelCore
import ReelPlayback

extension PlayRecordSummary {
  /// Media that was not shown.
  struct SkippedPart: Encodable {
    let from: Double
    let to: Double
    let reason: String
    /// The failure that explains it.
    let error: ErrorRecord?
  }

  /// The media that was not shown, by reason. The parts add up to `skipped`.
  struct SkippedReasons: Encodable {
    let missing: Double
    let damaged: Double
    let jumped: Double
    let dropped: Double

    init(_ skipped: [MediaLoss.Reason: MediaTime] = [:]) {
      func seconds(_ reason: MediaLoss.Reason) -> Double {
        (skipped[reason] ?? .zero).seconds.rounded(places: 6)
      }
      missing = seconds(.missing)
      damaged = seconds(.damaged)
      jumped = seconds(.jumped)
      dropped = seconds(.dropped)
    }
  }

  /// A failure of a request, a segment or a part of the media.
  struct Failure: Encodable {
    /// The position on show then; nil before anything was loaded.
    let position: Double?
    let rung: String?
    /// What followed: `retried`, `other_rung`, `other_location`, `tolerated`, `missing`, `damaged`, `jumped` or `failed`.
    let outcome: String
    /// The kind of media that is lost.
    let kind: String?
    /// The media that is affected.
    let from: Double?
    let to: Double?
    let error: ErrorRecord

    init(_ entry: ErrorLogEntry) {
      position = entry.time?.seconds.rounded(places: 6)
      rung = entry.rung
      outcome =
        switch entry.outcome {
        case .retried: "retried"
        case .otherRung: "other_rung"
        case .otherLocation: "other_location"
        case .tolerated: "tolerated"
        case .lost(let loss): loss.reason.rawValue
        case .failed: "failed"
        }
      kind = entry.loss?.kind.rawValue
      from = entry.loss?.range?.lowerBound.seconds.rounded(places: 6)
      to = entry.loss?.range?.upperBound.seconds.rounded(places: 6)
      error = ErrorRecord(entry.error)
    }
  }

  /// The number of failures that are listed: the first and the last half of it.
  static let failureLimit = 200

  /// The first and the last failures.
  static func listed(_ entries: [ErrorLogEntry]) -> [Failure] {
    guard entries.count > failureLimit else { return entries.map(Failure.init) }
    return (entries.prefix(failureLimit / 2) + entries.suffix(failureLimit / 2)).map(Failure.init)
  }

  /// Sets the played and the skipped media.
  mutating func set(_ losses: PlayLosses) {
    played = losses.media.played.seconds.rounded(places: 6)
    skipped = losses.media.allSkipped.seconds.rounded(places: 6)
    skippedReasons = SkippedReasons(losses.media.skipped)
    skippedParts = losses.parts.map { part in
      SkippedPart(
        from: part.range.lowerBound.seconds.rounded(places: 6),
        to: part.range.upperBound.seconds.rounded(places: 6), reason: part.reason.rawValue,
        error: part.error.map(ErrorRecord.init))
    }
    let omitted = losses.media.omittedLossCount
    skippedPartsOmitted = omitted > 0 ? omitted : nil
    loss = losses.first.map(ErrorRecord.init)
  }
}
