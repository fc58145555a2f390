internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelReading
internal import ReelSources

/// One thread that reads key frames and converts them to tiles.
final class StoryboardWorker {
  let reader: FrameReader
  /// The start of the storyboard.
  var start = MediaTime.zero
  private let work: StoryboardWork
  private var limit: ReadingLimit
  /// The error that ended a scan.
  private var scanError: ReelError?
  /// The number of key frames without progress in time after which the source is given up.
  private static let standstillLimit = 3
  /// The fraction of the time to a segment by which its frame may come before it.
  private static let toleratedShare = 0.1
  private static let undecodable = "the key frame can't be decoded"
  private let renderer = StillRenderer()

  private typealias Losses = (faults: Int, segments: Int, decoding: Int)

  init(_ work: StoryboardWork, sharing shared: SharedTracks? = nil) {
    self.work = work
    limit = work.makeLimit()
    reader = FrameReader(work.opening, sharing: shared, scope: limit.scope)
  }

  /// Opens the source. Returns the fault of its first segment if that can't be read, but its playlist can.
  func open() throws -> ReelError? {
    do {
      try limited { try reader.prepare() }
      guard !reader.source.status.containerStreams.isEmpty || reader.track != nil else {
        throw ReelError(.badMedia, "no video in the media", at: work.name)
      }
      return nil
    } catch let error as ReelError where reader.track != nil && error.concernsOneStill {
      try restart()
      return error
    }
  }

  /// Goes back to the beginning.
  func restart() throws { try seek(to: KeyFramePlace(time: .zero, seekTime: .zero)) }

  /// Reads key frames of a plan until there are no more.
  func read(_ plan: StoryboardPlan, _ queue: StoryboardQueue) throws {
    while let job = queue.take() {
      queue.put(try outcome(of: job, in: plan, isFirst: false), at: job)
    }
  }

  /// Reads forward, and takes the first key frame of each slot.
  func scan(_ plan: StoryboardPlan, _ queue: StoryboardQueue) throws {
    var (count, lastSlot, standstillCount) = (0, -1, 0)
    var gaps = StoryboardGaps(plan)
    func put(_ outcome: StoryboardQueue.Outcome) -> Bool {
      guard let job = queue.take() else { return false }
      queue.put(outcome, at: job)
      count += 1
      return true
    }
    reader.recordKeyTimes()
    while true {
      let before = losses
      guard let frame = try nextKeyFrame(isFirst: lastSlot < 0) else {
        putEnd(&gaps, after: lastSlot, since: before, isDurationKnown: plan.duration != nil, put)
        break
      }
      let time = frame.time - start
      // If packets have times, the reader continues with the next slot.
      if plan.slot(at: time) <= lastSlot { standstillCount += 1 }
      guard standstillCount < Self.standstillLimit else {
        throw ReelError(
          .unsupported, "its frames have no timestamps, so stills can't be placed",
          advice: "remux it to MP4 or MPEG-TS first")
      }
      guard let slot = plan.slot(at: time, after: lastSlot) else { break }
      let lost = gaps.slots(
        of: keyTimes, between: lastSlot, and: slot, hasFailed: losses.decoding > before.decoding,
        hasDamage: losses.faults > before.faults)
      lastSlot = slot
      for slot in lost {
        guard put(.missing(Storyboard.Missing(slot: slot, error: lossError(since: before)))) else { return }
      }
      guard put(try outcome(of: frame, slot: slot)) else { return }
      reader.skipPackets(before: start + plan.firstTime(of: slot + 1))
    }
    if let end = reader.readEnd { work.record(readDuration: (end - start).seconds) }
    if lastSlot < 0, reader.hasPackets, reader.failedKeyFrameCount == 0 {
      throw ReelError(
        .badMedia, "no key frame in the media: every picture needs others before it", at: work.name,
        advice: "reel frames --every decodes all of them")
    }
    queue.setCount(count)
  }

  /// - Parameter isFirst: True if the reader is before its first frame, which is wanted.
  func outcome(of index: Int, in plan: StoryboardPlan, isFirst: Bool) throws -> StoryboardQueue.Outcome {
    let job = plan.jobs[index]
    let next = index + 1 < plan.jobs.count ? plan.jobs[index + 1].place : nil
    do {
      if work.isGivenUp {
        throw ReelError(.timedOut, "not tried, because nothing came for the stills before it")
      }
      if !isFirst { try seek(to: job.place) }
      // Do not wait for anything after the last segment of a live window.
      if let end = next?.time ?? (reader.isLive ? job.place.segmentEnd : nil) {
        reader.source.end(before: end)
      }
      let outcome = try limited { try read(job, before: next, isFirst: isFirst) }
      if case .tile = outcome { work.record(isSilent: false) }
      return outcome
    } catch let error as ReelError where error.concernsOneStill || index > 0 && error.kind == .unsupported {
      // Media that begins in the clear may be encrypted later, or continue in another codec.
      if error.kind == .timedOut { work.record(isSilent: true) }
      return missing(job, error)
    }
  }

  /// Runs `body`, which reads, and ends it when its time has expired.
  ///
  /// Throws the error of `body`, or `ReelError.timedOut`.
  func limited<Result: ~Copyable>(_ body: () throws -> Result) throws -> Result {
    limit.begin()
    defer { limit.end() }
    do {
      return try body()
    } catch  where limit.isLate && !work.isCancelled {
      throw ReelError(
        .timedOut, "nothing came for \(work.stillLimit?.readableSeconds ?? "")",
        at: reader.source.status.segmentURL?.reelName ?? work.name)
    }
  }

  // MARK: - Private

  /// The key frame times from the start of the storyboard.
  private var keyTimes: [MediaTime] { reader.takeKeyTimes().map { $0 - start } }

  /// Returns the reason why key frames of a scan are missing.
  private func lossError(since before: Losses) -> ReelError {
    fault(since: before) ?? ReelError(.badMedia, "no key frame")
  }

  /// Delivers the errors for the stills that are missing at the end of a scan, and records why it ended.
  private func putEnd(
    _ gaps: inout StoryboardGaps, after lastSlot: Int, since before: Losses, isDurationKnown: Bool,
    _ put: (StoryboardQueue.Outcome) -> Bool
  ) {
    let (hasFailed, hasDamage) = (losses.decoding > before.decoding, losses.faults > before.faults)
    let readEnd = reader.readEnd.map { $0 - start }
    let lost = gaps.slots(
      of: keyTimes + (hasFailed || hasDamage ? [readEnd].compactMap(\.self) : []), between: lastSlot,
      and: .max, hasFailed: hasFailed, hasDamage: hasDamage)
    var missing = lost.map { Storyboard.Missing(slot: $0, error: lossError(since: before)) }
    let end = scanError ?? reader.source.status.cut
    if let end {
      let slots = gaps.slots(after: lost.last ?? lastSlot, behind: readEnd)
      missing += slots.map { Storyboard.Missing(slot: $0, error: end) }
    }
    for found in missing { guard put(.missing(found)) else { return } }
    guard let end else { return }
    // If the duration is known, the stills after a cut are counted. Otherwise the number of missing stills is unknown.
    if end == scanError, end.kind != .badMedia || !isDurationKnown {
      work.record(end: end)
    } else {
      work.record(fault: end)
    }
  }

  private func seek(to place: KeyFramePlace) throws {
    limit = work.makeLimit()
    try limited { try reader.seek(to: place, scope: limit.scope) }
  }

  private func missing(_ job: StoryboardPlan.Job, _ error: ReelError) -> StoryboardQueue.Outcome {
    .missing(
      Storyboard.Missing(
        slot: job.slot, error: reader.source.status.segmentURL.map { error.located(at: $0.reelName) } ?? error
      ))
  }

  /// - Parameter next: The position of the next job, whose key frame must not be taken.
  private func read(
    _ job: StoryboardPlan.Job, before next: KeyFramePlace?, isFirst: Bool
  ) throws -> StoryboardQueue.Outcome {
    let before: Losses = isFirst ? (0, 0, 0) : losses
    // An index lists each key frame; a segment may have several.
    guard let frame = try reader.keyFrame(isOnly: reader.track == nil) else {
      if let fault = fault(since: before) { return missing(job, fault) }
      // A valid segment need not have a key frame.
      if reader.track != nil, reader.hasPackets, !reader.hasKeyPackets { return .nothing }
      let what =
        if reader.hasKeyPackets { Self.undecodable } else if reader.track == nil { "no key frame" } else {
          "no video in the segment"
        }
      return missing(job, ReelError(.badMedia, what))
    }
    if let fault = fault(since: before) {
      // The frame may belong to another still.
      let end = next.map { next in
        next.time - MediaTime(seconds: (next.time - job.place.time).seconds * Self.toleratedShare)
      }
      if let end, frame.time >= end { return missing(job, fault) }
      if losses.decoding > before.decoding { work.record(fault: fault) }
    }
    return try outcome(of: frame, slot: job.slot)
  }

  /// The number of faults, missed segments, and key frames that could not be decoded.
  private var losses: Losses {
    (reader.faultCount, reader.source.status.missedSegmentCount, reader.failedKeyFrameCount)
  }

  private func fault(since before: Losses) -> ReelError? {
    let now = losses
    if now.faults > before.faults, let last = reader.faults.last { return last }
    if now.segments > before.segments { return ReelError(.badMedia, "the segment can't be read") }
    if now.decoding > before.decoding { return ReelError(.badMedia, Self.undecodable) }
    return nil
  }

  /// Returns the next key frame of a scan; nil at its end. Frames read before a fault count.
  private func nextKeyFrame(isFirst: Bool) throws -> VideoFrame? {
    do {
      return try limited { try reader.keyFrame() }
    } catch let error as ReelError where !isFirst && (error.concernsOneStill || error.kind == .unsupported) {
      scanError = error
      return nil
    }
  }

  private func outcome(
    of frame: VideoFrame, slot: Int
  ) throws(ReelError) -> StoryboardQueue.Outcome {
    try frame.stream.checkColors()
    if frame.isDamaged {
      let error = ReelError(.badMedia, "the key frame is damaged")
      return .missing(
        Storyboard.Missing(
          slot: slot, error: reader.source.status.segmentURL.map { error.located(at: $0.reelName) } ?? error))
    }
    if let hdr = frame.color.hdrTransfer { work.record(hdr: hdr) }
    let still = try work.still(of: frame, renderer)
    return .tile(
      Storyboard.Tile(
        slot: slot, time: frame.time - start, byteCount: reader.keyByteCount, still: still))
  }
}

extension KeyFramePlace {
  /// The end of a segment. A seek to a segment goes to its middle.
  fileprivate var segmentEnd: MediaTime { time + (seekTime - time) * 2 }
}

extension ReelError {
  /// True if other stills of the source may still arrive.
  fileprivate var concernsOneStill: Bool {
    switch kind {
    case .internalFault, .unsupported: false
    default: true
    }
  }
}

extension Duration {
  fileprivate var readableSeconds: String { "\((self / .seconds(1)).formatted(places: 3)) s" }
}
