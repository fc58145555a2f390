public import ReelCore

/// A published score that sums up a walk in one number.
///
/// Scores compare walks of the same viewer through the same feed: they grow with the length of the walk and depend on
/// the feed's bit rates. Reel has no score of its own.
public enum WalkScore: String, Sendable, Hashable, CaseIterable {
  /// The score of the ACM Multimedia 2022 Grand Challenge "Short Video Streaming".
  ///
  /// `S = Σ (r - |Δr|) - 1.85 × w - 0.5 × b`: the sum is over the seconds of media shown, with the bit rate r in Mbit/s
  /// and its change Δr since the second before, or since the end of the item before; w is the time spent waiting in
  /// seconds, and b the traffic in Mbit, wasted bytes included. Higher is better.
  ///
  /// Source: `run.py` of https://github.com/AItransCompetition/Short-Video-Streaming-Challenge and
  /// https://www.aitrans.online/MMGC2022/.
  ///
  /// - r is the rung's stated bit rate. Media without one adds nothing to the sum.
  /// - w is the sum of all stalls and of all waits for a first frame, that of the first item included. A wait that the
  ///   viewer gave up counts until then. An item that failed before its first frame does not count.
  /// - The challenge counts media in chunks of 1 s, the last one as a whole. This score counts the time that was shown.
  /// - In the challenge, a viewer watches a fixed amount of media, however long that takes. In a walk, a viewer leaves
  ///   after a fixed time, so a wait also reduces the sum.
  ///
  /// The score leaves out the second frame, how waits are distributed, memory, decoding and failed items.
  case mmgc2022

  /// A phrase that explains the score.
  public var meaning: String {
    switch self {
    case .mmgc2022:
      "Mbit/s of each second shown, less its changes, 1.85 x seconds waited and 0.5 x Mbit fetched; leaves out second "
        + "frames, memory, decoding and failures; of ACM Multimedia's challenge 2022 "
        + "(github.com/AItransCompetition/Short-Video-Streaming-Challenge)"
    }
  }

  /// The score with this name, in any letter case.
  ///
  /// - Throws: `ReelError` of kind `usage`, with the names of all scores, if there is none.
  public static func named(_ name: String) throws(ReelError) -> WalkScore {
    if let score = WalkScore(rawValue: name.lowercased()) { return score }
    throw ReelError(
      .usage, "\"\(name)\" is not a score",
      advice: "there are \(allCases.map(\.rawValue).joined(separator: ", "))")
  }

  /// The score of a walk; `nil` if no media with a stated bit rate was shown.
  public func value(of totals: WalkTotals) -> Double? {
    switch self {
    case .mmgc2022:
      guard let mean = totals.meanBitRate else { return nil }
      let quality = mean * (totals.ratedDuration / .seconds(1)) / 1e6
      let waited = (totals.stallDuration + totals.firstFrameWait) / .seconds(1)
      let traffic = Double(totals.fetchedByteCount) * 8 / 1e6
      return quality - totals.bitRateChange / 1e6 - 1.85 * waited - 0.5 * traffic
    }
  }
}
