package import ReelCore
internal import ReelManifest

/// Whether a rung, or a source, was judged.
package enum Judgement: Sendable, Hashable {
  /// A part of its media was decoded.
  case judged
  /// Nothing of it was.
  case unjudged(Unjudged)

  /// The error if no media arrived in time, so that nothing is known of the stream.
  package var silence: ReelError? {
    guard case .unjudged(let reason) = self, reason.kind == .unanswered else { return nil }
    return reason.error
  }
}

/// Why no media of a rung, or of a source, was decoded.
package struct Unjudged: Sendable, Hashable {
  /// The raw values are a contract: scripts compare them. All but `unanswered` are kinds of `not-checked`.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    /// No server delivered it in time, or none could be reached.
    case unanswered
    /// It is missing, or can't be read or decoded, as findings say.
    case faulty
    /// It is encrypted, and there is no key for it.
    case encrypted
    /// Reel does not read its container, or decode its codec.
    case unsupported
    /// It is in another document, which Reel does not read.
    case external
    /// There are no segments, or no tracks with pictures or sound.
    case empty
    /// The time limit was reached although servers answered.
    case time
    /// What was read of it is too little to decode.
    case sample
    /// It was left out on purpose, or is not for playback.
    case leftOut = "left-out"
  }

  package var kind: Kind
  /// A clause without a full stop.
  package var reason: String
  /// The error that it comes from, if there is one.
  package var error: ReelError?

  package init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  /// - Parameter isProtected: True if the manifest says that it is encrypted.
  package init(_ error: ReelError, isProtected: Bool = false) {
    self.error = error
    reason = error.reason
    switch error.found {
    case .reference: kind = .external
    case .encrypted: kind = .encrypted
    case .unsupportedContainer, .otherStreams: kind = isProtected ? .encrypted : .unsupported
    case nil where error.kind == .unsupported: kind = isProtected ? .encrypted : .unsupported
    case nil where TransportFindings.isUnanswered(error): kind = .unanswered
    case nil, .notMedia, .neitherVideoNorAudio, .otherVersion: kind = .faulty
    }
  }

  /// True if the rung should have been judged, so that `--fail-on unchecked` fails for it.
  package var isOmission: Bool { kind != .leftOut && kind != .faulty && kind != .unanswered }

  /// The finding for a source of which nothing was judged.
  var sourceFinding: Finding {
    var finding = finding(rung: nil)
    finding.summary = "no media could be judged: \(reason)"
    return finding
  }

  /// The finding for a rung, or a part of the manifest, that had to be judged.
  func finding(rung: String?) -> Finding {
    Finding(.notChecked, kind.rawValue, .error, rung: rung, url: error?.location, reason, fix: fix)
  }

  private var fix: String {
    switch kind {
    case .encrypted: "give the keys with --key or --key-file"
    case .unsupported: "check it with a player that decodes it, and waive this finding"
    case .external: "check the document that the manifest refers to, or write its content into the manifest"
    case .empty: "publish segments of video or audio, or remove it from the manifest"
    case .time: "allow more time with --timeout"
    case .sample, .leftOut: "read more of it with --sample and --rungs"
    case .unanswered, .faulty: error?.advice ?? "fix the other findings first"
    }
  }
}

extension RungFacts {
  /// Whether it was judged.
  package var judgement: Judgement {
    if content.contains(where: { !$0.frames.isEmpty || !$0.sound.isEmpty }) { return .judged }
    switch status {
    case .excused(let reason): return .unjudged(reason)
    case .cutOff(let reason):
      // What servers refused until then says more.
      let isRefused = !samples.isEmpty && samples.values.allSatisfy { $0.failure?.isUnanswered == false }
      return .unjudged(isRefused ? unjudged : Unjudged(.time, reason))
    case .skipped: return .unjudged(Unjudged(.leftOut, "it was left out by --rungs"))
    case .unlisted(let error): return .unjudged(Unjudged(error))
    case .unread where !segments.isEmpty: return .unjudged(Unjudged(.time, "its turn did not come"))
    case .unread, .read: return .unjudged(unjudged)
    }
  }

  /// Why none of the samples that were read was decoded.
  private var unjudged: Unjudged {
    if samples.isEmpty {
      return Unjudged(
        .empty,
        segments.isEmpty ? "it lists no segments" : "all of its segments are gaps, or outside of its period")
    }
    let failures = samples.values.compactMap(\.failure)
    if failures.count == samples.count,
      let first = failures.first(where: { !$0.isUnanswered }) ?? failures.first
    {
      return Unjudged(first.error, isProtected: declared?.protection != nil)
    }
    if samples.values.contains(where: { $0.isPartial && $0.failure == nil }) {
      return Unjudged(.sample, "what was read of it has no whole key frame")
    }
    let error =
      content.lazy.compactMap(\.failure).first ?? samples.values.lazy.compactMap(\.readingFault).first
    return error.map { Unjudged($0) } ?? Unjudged(.faulty, "nothing in it can be decoded")
  }
}

extension StreamFacts {
  /// Whether media of the source was judged: a part of a rung, or the first frame of its start where no more was read on
  /// purpose, or servers fell silent afterwards.
  ///
  /// - Parameter openingError: Why it could not be opened.
  package func judgement(openingError: ReelError?) -> Judgement {
    var reasons: [Unjudged] = []
    for rung in rungs {
      guard case .unjudged(let reason) = rung.judgement else { return .judged }
      reasons.append(reason)
    }
    if let openingError { return start == nil ? .unjudged(Unjudged(openingError)) : .judged }
    if start != nil, !reasons.isEmpty,
      reasons.allSatisfy({ [.sample, .leftOut, .unanswered].contains($0.kind) })
    {
      return .judged
    }
    reasons += outside
    let wanted = reasons.filter { $0.kind != .leftOut }
    // What servers did not deliver says the least of the stream.
    let first = wanted.first { $0.kind != .unanswered && $0.kind != .time } ?? wanted.first ?? reasons.first
    if let first { return .unjudged(first) }
    // A manifest whose tracks are not known was not read to its end.
    return .unjudged(
      presentation == nil ? late : unjudged(.empty, "it has neither video nor audio"))
  }

  /// Why nothing is known of it when the time is over.
  var late: Unjudged { unjudged(.time, "the time limit was reached before its segments were judged") }

  private func unjudged(_ kind: Unjudged.Kind, _ reason: String) -> Unjudged {
    Unjudged(kind, reason + (startFailure.map { "; the start failed: \($0.reason)" } ?? ""))
  }

  /// The parts of the manifest that are in other documents.
  package var outside: [Unjudged] {
    (presentation?.warnings ?? []).map { Unjudged($0) }.filter { $0.kind == .external }
  }
}

extension Duration {
  /// The time to a tenth of a second: `3.9 s`.
  var text: String { "\((self / .seconds(1)).formatted(places: 1)) s" }
}
