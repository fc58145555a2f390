internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Passes reports of readers to the item's logs.
struct SessionLog: ReadingLog {
  weak let session: ItemSession?
  let isVideo: Bool

  func recordRung(_ rung: Rung) { session?.recordRung(rung) }

  func recordTransfer(_ transfer: SegmentTransfer, rung: String) {
    if isVideo { session?.recordTransfer(transfer, rung: rung) }
  }

  func recordFile(requestCount: Int, byteCount: Int64) {
    if isVideo { session?.recordFile(requestCount: requestCount, byteCount: byteCount) }
  }

  func recordFailure(_ error: ReelError, rung: String, outcome: ErrorLogEntry.Outcome?) {
    if let outcome { session?.recordFailure(error, rung: rung, outcome: outcome) }
  }

  func recordDamage(_ error: ReelError, rung: String, in range: Range<MediaTime>?) {
    // Missing or damaged frames are recorded separately.
    let loss = range.map { MediaLoss(kind: isVideo ? .video : .audio, reason: .damaged, range: $0) }
    session?.recordFailure(error, rung: rung, outcome: loss.map(ErrorLogEntry.Outcome.lost) ?? .tolerated)
  }

  func recordHole(_ error: ReelError, rung: String, _ loss: MediaLoss) {
    session?.recordFailure(error, rung: rung, outcome: .lost(loss))
  }

  func recordPassedOver(_ error: ReelError, start: MediaTime, duration: MediaTime) {
    if isVideo { session?.record(.segmentMissed(start: start, duration: duration, error)) }
  }

  func recordAbsence(_ segments: LiveSegments) {
    session?.recordAbsence(segments, of: isVideo ? .video : .audio)
  }

  func recordGap(start: MediaTime, duration: MediaTime) {}

  func recordSegment(duration: MediaTime) { if isVideo { session?.recordSegment(duration: duration) } }
}

extension ItemSession {
  func record(_ event: PlayerEvent) { delegate.event(event) }

  func recordRung(_ rung: Rung) {
    var entry = AccessLogEntry(rung: rung.id)
    entry.indicatedBitRate = rung.bitsPerSecond ?? rung.averageBitsPerSecond
    entry.size = rung.size
    item.beginAccess(entry)
  }

  /// Records the available rungs, before any of them is opened.
  func recordLadder(of presentation: Presentation) {
    let role = ReaderRole.main(wantsAudio: false)
    guard let period = presentation.periods(carrying: role).first,
      let ladder = try? RungMatcher.ladder(of: period, role: role, configuration: environment.loading)
    else { return }
    let rungs = ladder.sorted { $0.ladderBitsPerSecond < $1.ladderBitsPerSecond }.map { rung in
      ItemRung(id: rung.id, bitRate: rung.bitsPerSecond ?? rung.averageBitsPerSecond ?? 0, size: rung.size)
    }
    item.updateLadder { $0.rungs = rungs }
  }

  func recordSegment(duration: MediaTime) {
    item.updateLadder { $0.segmentDuration = .seconds(duration.seconds) }
  }

  func recordTransfer(_ transfer: SegmentTransfer, rung: String) {
    // Video only: transfers of separate audio share the link and would measure only their part of it.
    state.read { $0.controller }?.record(transfer)
    item.updateAccess(rung: rung) { entry in
      entry.byteCount += transfer.byteCount
      entry.requestCount += transfer.requestCount
      entry.measuredByteCount += transfer.freeByteCount
      entry.transferDuration += transfer.freeEnd - transfer.began
    }
  }

  func recordFile(requestCount: Int, byteCount: Int64) {
    // Another session may play the item by now, so nothing more is counted for it.
    guard !state.read({ $0.machine.isStopped }) else { return }
    item.updateAccess(rung: nil) { entry in
      entry.byteCount += byteCount
      entry.requestCount += requestCount
    }
  }

  func recordFailure(_ error: ReelError, rung: String, outcome: ErrorLogEntry.Outcome) {
    item.log(
      ErrorLogEntry(
        error: error, rung: rung.isEmpty ? nil : rung, time: state.read { $0.packets.position },
        outcome: outcome))
  }
}
