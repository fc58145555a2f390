internal import ReelCore
internal import ReelManifest

/// What a period has, of what can be played by itself.
extension Period {
  /// Pictures, or what may have them, whether or not they can be decoded.
  var hasVideo: Bool { trackGroups.contains { $0.kind == .video } }

  /// Sound that is a stream of its own, and can be decoded.
  var hasAudio: Bool {
    trackGroups.contains { group in
      group.kind == .audio && group.unplayableReason == nil
        && group.rungs.contains(where: AudioSelector.isDecodable)
    }
  }

  /// True where it has what a reader is for. A period that has not is passed through.
  func carries(_ role: ReaderRole) -> Bool {
    switch role {
    case .main: hasVideo
    case .audio: hasAudio
    }
  }
}

/// A stretch of a timeline whose periods lack a kind of media.
struct Absence: Sendable, Hashable {
  var start: MediaTime
  /// Nil where it is not known.
  var end: MediaTime?

  func contains(_ time: MediaTime) -> Bool { time >= start && end.map { time < $0 } ?? true }
}

extension Presentation {
  /// The stretches without what a reader is for, in order.
  func absences(of role: ReaderRole) -> [Absence] {
    var absences: [Absence] = []
    var isAbsent = false
    for period in periods {
      if period.carries(role) == isAbsent {
        if isAbsent {
          absences[absences.count - 1].end = period.start
        } else {
          absences.append(Absence(start: period.start))
        }
        isAbsent.toggle()
      }
    }
    return absences
  }

  /// The periods that have what a reader is for; all of them where none has, as the first then tells why.
  func periods(carrying role: ReaderRole) -> [Period] {
    let carrying = periods.filter { $0.carries(role) }
    return carrying.isEmpty ? periods : carrying
  }

  /// The sound that is played before the first picture, where a complete presentation begins without video.
  var soundBeforeVideo: Range<MediaTime>? {
    guard !isLive, let first = periods.first(where: { $0.hasVideo || $0.hasAudio }), !first.hasVideo,
      let video = periods.first(where: \.hasVideo), first.start < video.start
    else { return nil }
    return first.start..<video.start
  }
}
