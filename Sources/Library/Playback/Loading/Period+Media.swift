internal import ReelCore
internal import ReelManifest

/// The kinds of media in a period.
extension Period {
  /// True if the period has video, whether or not it can be decoded.
  var hasVideo: Bool { trackGroups.contains { $0.kind == .video } }

  /// True if the period has a separate audio stream that can be decoded.
  var hasAudio: Bool {
    trackGroups.contains { group in
      group.kind == .audio && group.unplayableReason == nil
        && group.rungs.contains(where: AudioSelector.isDecodable)
    }
  }

  /// Returns true if the period has the media for a reader with this role. Readers skip other periods.
  func carries(_ role: ReaderRole) -> Bool {
    switch role {
    case .main: hasVideo
    case .audio: hasAudio
    }
  }
}

/// A part of a timeline whose periods lack a kind of media.
struct Absence: Sendable, Hashable {
  var start: MediaTime
  /// The end; nil if it is not known.
  var end: MediaTime?

  func contains(_ time: MediaTime) -> Bool { time >= start && end.map { time < $0 } ?? true }
}

extension Presentation {
  /// Returns the parts that lack the media of a role, in order.
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

  /// Returns the periods that have the media of a role. If none has it, returns all periods, so that the
  /// first one provides the reason.
  func periods(carrying role: ReaderRole) -> [Period] {
    let carrying = periods.filter { $0.carries(role) }
    return carrying.isEmpty ? periods : carrying
  }

  /// The time range of audio before the first frame, if a complete (not live) presentation begins without video.
  var soundBeforeVideo: Range<MediaTime>? {
    guard !isLive, let first = periods.first(where: { $0.hasVideo || $0.hasAudio }), !first.hasVideo,
      let video = periods.first(where: \.hasVideo), first.start < video.start
    else { return nil }
    return first.start..<video.start
  }
}

extension Presentation {
  /// True if there are only image tracks.
  var holdsImagesOnly: Bool {
    let groups = periods.flatMap(\.trackGroups)
    return groups.allSatisfy { $0.kind == .image }
      && groups.contains { $0.rungs.contains { $0.tiles != nil } }
  }

  /// Returns the playlists of I-frames, and the rungs for trick mode, from which stills may be taken in
  /// addition to the rungs of a period.
  func keyFrameRungs(in period: Period, besides ladder: [Rung]) -> [Rung] {
    var rungs = iFrameRungs
    if !isLive {
      let known = Set(ladder.map(\.id))
      rungs += period.trackGroups.filter { $0.isTrickMode && $0.kind == .video }.flatMap(\.rungs).filter {
        $0.protection == nil && !known.contains($0.id)
      }.map { rung in
        var rung = rung
        rung.holdsKeyFramesOnly = true
        return rung
      }
    }
    return rungs.filter(RungSelector.isDecodable)
  }
}

extension Rung {
  /// The error for a playlist of images that did not arrive in time.
  var lateImages: ReelError {
    switch media {
    case .playlist(let url):
      ReelError(.timedOut, "the playlist of the images '\(id)' did not come in time", at: url.reelName)
    case .segments, .index: ReelError(.timedOut, "the index of '\(id)' did not come in time")
    }
  }
}
