internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelReading
internal import ReelSources

/// Measures the segments of one rung: their tracks by the timestamps of the container, and their pictures and sound.
///
/// Nothing is repaired: a segment is demuxed alone, and decoded after the one before it.
///
/// Confined to one thread; the calls block while they decode.
struct MediaMeter {
  /// A demuxed segment, or a stretch of a file.
  struct Media {
    let index: Int
    /// The codec information and the access units, in decoding order.
    var video: (stream: StreamInfo, packets: [Packet])?
    var audio: (stream: StreamInfo, packets: [Packet])?
    /// The first bytes that were skipped because they are no part of the container.
    var skippedBytes: String?
    /// True if the container ended with them.
    var endsWithSkippedBytes = false
    /// The duration of the longest track in seconds.
    var duration: Double {
      [video, audio].compactMap { track -> Double? in
        guard let track else { return nil }
        let starts = track.packets.compactMap(\.presentationTicks)
        let ends = track.packets.compactMap { packet in
          packet.presentationTicks.map { $0 + packet.durationTicks }
        }
        guard let start = starts.min(), let end = ends.max() else { return nil }
        return Double(end - start) * track.stream.timeBase.value
      }.max() ?? 0
    }
  }

  let name: String
  let logger: Logger
  /// The largest change of a luma sample, from 0 to 1, of a picture that stands still.
  let stillChange: Float
  /// Ends the work when it is cancelled.
  let scope: LoadScope

  /// The memory of a packet besides its bytes, about.
  private static let packetByteCount = 512
  /// The duration of a `SoundFacts` in seconds.
  private static let soundDuration = 0.1

  /// The duration of a packet of audio in seconds, if the container states none.
  private static let usualAudioDuration = 0.021
  /// More packets than a decoder takes before its first audio.
  private static let heldAudioCount = 4

  // MARK: Demuxing

  /// Demuxes a segment.
  ///
  /// - Parameters:
  ///   - bytes: Its initialization, if it has one, and the segment.
  ///   - wantsVideo: False for audio alone.
  ///   - place: Its start by the manifest. Media without timestamps is placed there.
  ///
  /// Throws the errors of `ContainerReader`. What was read before is in `facts`.
  func demux(
    _ bytes: [UInt8], at place: MediaTime, keys: (any SampleKeys)?, wantsVideo: Bool,
    into facts: inout SegmentFacts
  ) throws -> Media {
    guard
      case .media(let format) = SourceSniffer.kind(of: Array(bytes.prefix(SourceSniffer.largestByteCount)))
    else { throw ReelError(found: .notMedia, "not media") }
    var options = ContainerReader.Options()
    options.isSeekable = false
    options.wantsVideo = wantsVideo
    options.wantsAudio = true
    options.keys = keys
    let container = try ContainerReader(
      source: MemoryByteSource(bytes), format: format, options: options, name: name, logger: logger)
    var media = Media(index: facts.index)
    facts.hasTimestamps = container.hasTimestamps
    var loneDamage = 0
    defer {
      if !container.hasTimestamps, let audio = media.audio {
        let ticks = Int64((place.seconds / audio.stream.timeBase.value).rounded())
        for packet in audio.packets { packet.move(by: ticks) }
      }
      facts.video = media.video.map { Self.track($0, in: format) }
      if facts.video?.leadingCount == 0 { facts.video?.leadingCount = loneDamage }
      facts.audio = media.audio.map { Self.track($0, in: format) }
    }
    try read(container, into: &media) { _ in true }
    loneDamage = media.video.map { damageAlone($0) } ?? 0
    return media
  }

  /// Reads units of a container up to its end, another program, or until `goesOn` returns false for a unit of video.
  ///
  /// - Parameter byteLimit: The largest number of bytes of units. `badMedia` is thrown for more, because a file may have
  ///   no end.
  func read(
    _ container: ContainerReader, into media: inout Media, byteLimit: Int = .max,
    while goesOn: (Packet) -> Bool
  ) throws {
    var byteCount = 0
    func count(_ packet: Packet) throws(ReelError) {
      byteCount += packet.byteCount + Self.packetByteCount
      guard byteCount <= byteLimit else {
        throw ReelError(.badMedia, "only the first \(byteLimit >> 20) MiB of the media were read")
      }
    }
    if let stream = container.video { media.video = (stream, []) }
    if let stream = container.audio { media.audio = (stream, []) }
    while true {
      if scope.isCancelled { throw CancellationError() }
      let unit = try container.next()
      if let skipped = container.takeSkippedBytes(), media.skippedBytes == nil {
        media.skippedBytes = skipped
        if case .end = unit { media.endsWithSkippedBytes = true }
      }
      switch unit {
      case .video(let packet):
        if media.video == nil, let stream = container.video { media.video = (stream, []) }
        try count(packet)
        media.video?.packets.append(packet)
        guard goesOn(packet) else { return }
      case .audio(let packet):
        if media.audio == nil, let stream = container.audio { media.audio = (stream, []) }
        try count(packet)
        media.audio?.packets.append(packet)
      case .programChanged, .end:
        return
      }
    }
  }

  /// Describes a track by its access units.
  static func track(
    _ track: (stream: StreamInfo, packets: [Packet]), in format: ContainerFormat
  ) -> TrackFacts {
    let (stream, packets) = track
    // In fragments, libavformat only moves what an edit list cuts off to times below 0: the priming of audio.
    let isCutAtZero = format == .mp4 && stream.kind == .audio
    var facts = TrackFacts(stream: stream)
    facts.firstEnd = packets.first.flatMap { first in first.position.map { $0 + Int64(first.byteCount) } }
    let unit = stream.timeBase.value
    var shown: [(packet: Packet, ticks: Int64)] = []
    for packet in packets {
      facts.byteCount += Int64(packet.byteCount)
      guard let ticks = packet.presentationTicks ?? packet.decodingTicks else { continue }
      if packet.isDiscarded || isCutAtZero && ticks < 0 && ticks + packet.durationTicks <= 0 {
        if shown.isEmpty { facts.hiddenSampleCount += 1 }
      } else {
        shown.append((packet, ticks))
      }
    }
    let decoded = packets.compactMap { packet in
      (packet.decodingTicks ?? packet.presentationTicks).map { (ticks: $0, duration: packet.durationTicks) }
    }
    if let first = decoded.first, let last = decoded.last {
      let before = decoded.count > 1 ? last.ticks - decoded[decoded.count - 2].ticks : 0
      facts.decodingStart = Double(first.ticks) * unit
      facts.decodingEnd = Double(last.ticks + (last.duration > 0 ? last.duration : before)) * unit
    }
    shown.sort { $0.ticks < $1.ticks }
    facts.samples = shown.enumerated().map { place, sample in
      let next = place + 1 < shown.count ? shown[place + 1].ticks : nil
      let before = place > 0 ? sample.ticks - shown[place - 1].ticks : 0
      let duration =
        sample.packet.durationTicks > 0
        ? sample.packet.durationTicks : next.map { $0 - sample.ticks } ?? before
      return SampleFacts(
        start: Double(sample.ticks) * unit, end: Double(sample.ticks + duration) * unit,
        byteCount: sample.packet.byteCount, isKey: sample.packet.isKey)
    }
    if stream.kind == .video { describeEntry(of: packets, stream, in: &facts) }
    facts.codecString = stream.codecString(openedBy: packets.first)
    return facts
  }

  private static func describeEntry(of packets: [Packet], _ stream: StreamInfo, in facts: inout TrackFacts) {
    var first: Packet?
    for (index, packet) in packets.enumerated() {
      let unit = stream.facts(of: packet)
      guard unit.hasPicture else { continue }
      if first == nil {
        first = packet
        facts.entry = unit.entry
        facts.hasParameterSets = unit.hasParameterSets
      } else if let start = first?.presentationTicks, let own = packet.presentationTicks, own < start,
        facts.entry == .openGOP, stream.videoCodec != .hevc || unit.isSkippedAtStart
      {
        facts.leadingCount += 1
      }
      if facts.firstEntryIndex == nil, unit.entry != .none {
        facts.firstEntryIndex = index
        facts.firstEntryTime = packet.presentationTicks.map { Double($0) * stream.timeBase.value }
      }
      // Leading pictures follow the first one directly.
      if index > 64, facts.firstEntryIndex != nil { break }
    }
  }

  // MARK: Decoding

  /// The number of frames at the beginning of a segment of H.264 that can't be decoded without the segment before. Some
  /// muxers give the leading pictures of an open GOP the times of others, so times do not tell.
  private func damageAlone(_ track: (stream: StreamInfo, packets: [Packet])) -> Int {
    guard track.stream.videoCodec == .h264, let first = track.packets.first,
      case let unit = track.stream.facts(of: first), unit.entry == .openGOP,
      let decoder = try? VideoDecoder(
        stream: track.stream, source: UnitList(Array(track.packets.prefix(12)), stream: track.stream),
        name: name, logger: logger)
    else { return 0 }
    while let frame = try? decoder.nextFrame(), case .element = frame {}
    return decoder.damagedCount
  }

  /// Decodes neighbouring segments, one after the other. Times are those of the container, in seconds.
  func decode(_ run: [Media]) -> ContentFacts {
    var content = ContentFacts(segments: (run.first?.index ?? 0)..<((run.last?.index ?? -1) + 1))
    do {
      try decodeVideo(run, into: &content)
    } catch {
      content.failure = error as? ReelError
    }
    do {
      try decodeAudio(run, into: &content)
    } catch {
      content.failure = content.failure ?? error as? ReelError
    }
    return content
  }

  private func decodeVideo(_ run: [Media], into content: inout ContentFacts) throws {
    var comparison = FrameComparison(stillChange: stillChange)
    for part in parts(run.compactMap { media in media.video.map { (media.index, $0.stream, $0.packets) } }) {
      let unit = part.stream.timeBase.value
      var segments: [Int64: Int] = [:]
      var durations: [Int64: Int64] = [:]
      for (index, packet) in part.packets {
        guard let ticks = packet.presentationTicks else { continue }
        segments[ticks] = index
        durations[ticks] = packet.durationTicks
      }
      let units = UnitList(part.packets.map(\.packet), stream: part.stream)
      let decoder = try VideoDecoder(stream: part.stream, source: units, name: name, logger: logger)
      var last = part.packets.first?.index ?? 0
      func recordLoss(_ loss: FrameAccount.Loss?) {
        guard let loss else { return }
        let first = segments.keys.filter { loss.ticks.contains($0) }.min()
        content.undecodable.append(
          UndecodableFacts(
            time: Double(loss.ticks.lowerBound) * unit, duration: Double(loss.ticks.count) * unit,
            unitCount: loss.count, segment: first.flatMap { segments[$0] } ?? last))
      }
      while !scope.isCancelled, case .element(let frame) = try decoder.nextFrame() {
        if let ticks = frame.presentationTicks {
          recordLoss(units.account.take(frameAt: ticks, lasting: frame.durationTicks))
        }
        let ticks = frame.presentationTicks ?? 0
        last = segments[ticks] ?? last
        let duration = frame.durationTicks > 0 ? frame.durationTicks : durations[ticks] ?? 0
        content.frames.append(
          try comparison.facts(
            of: frame, stream: part.stream, time: Double(ticks) * unit, duration: Double(duration) * unit,
            segment: last))
      }
      recordLoss(units.account.finish())
      content.profile = decoder.facts.profileName ?? content.profile
      content.level = decoder.facts.level ?? content.level
      if content.frames.isEmpty, let fault = decoder.takeFrameFault() { content.failure = fault }
      if content.failure == nil { content.failure = decoder.sizeFault }
    }
    // A duration that the container does not state is that up to the next frame.
    for index in content.frames.indices where content.frames[index].duration <= 0 {
      let next = index + 1 < content.frames.count ? content.frames[index + 1].time : nil
      let before = index > 0 ? content.frames[index - 1].duration : 0
      content.frames[index].duration = max(0, next.map { $0 - content.frames[index].time } ?? before)
    }
  }

  private func decodeAudio(_ run: [Media], into content: inout ContentFacts) throws {
    for part in parts(run.compactMap { media in media.audio.map { (media.index, $0.stream, $0.packets) } }) {
      let decoder = try AudioDecoder(stream: part.stream, name: name, logger: logger)
      let unit = part.stream.timeBase.value
      var window = SoundWindow(duration: Self.soundDuration)
      func reject(_ packet: Packet, of index: Int) {
        content.rejectedAudioSegments.insert(index)
        content.rejectedAudioCount += 1
        content.rejectedAudioDuration +=
          packet.durationTicks > 0 ? Double(packet.durationTicks) * unit : Self.usualAudioDuration
      }
      for (place, (index, packet)) in part.packets.enumerated() where !scope.isCancelled {
        let count = decoder.rejectedPacketCount
        for buffer in try decoder.decode(packet) { window.add(buffer, unit: unit) }
        // The first packet may need one before it.
        if decoder.rejectedPacketCount > count, place > 0 || packet.isNoise { reject(packet, of: index) }
      }
      for buffer in try decoder.drain() { window.add(buffer, unit: unit) }
      let sound = window.finish()
      content.sound += sound
      if sound.isEmpty, content.rejectedAudioCount == 0, part.packets.count > Self.heldAudioCount {
        for (index, packet) in part.packets { reject(packet, of: index) }
      }
      content.audioProfile = decoder.profileName ?? content.audioProfile
    }
  }

  /// Joins what one decoder decodes: segments with the same coding.
  private func parts(
    _ tracks: [(index: Int, stream: StreamInfo, packets: [Packet])]
  ) -> [(stream: StreamInfo, packets: [(index: Int, packet: Packet)])] {
    var parts: [(stream: StreamInfo, packets: [(index: Int, packet: Packet)])] = []
    for track in tracks {
      let packets = track.packets.map { (index: track.index, packet: $0) }
      if let last = parts.last, last.stream.hasSameCoding(as: track.stream) {
        parts[parts.count - 1].packets += packets
      } else {
        parts.append((track.stream, packets))
      }
    }
    return parts
  }
}

/// Reduces frames to what is compared.
private struct FrameComparison {
  let stillChange: Float
  /// The longer side of `FrameFacts.luma`.
  private static let lumaSide = 40
  /// The last frame that differed from the one before it: a slow fade is a change, even if each step is small.
  var reference: LumaPlane?

  mutating func facts(
    of frame: Frame, stream: StreamInfo, time: Double, duration: Double, segment: Int
  ) throws(ReelError) -> FrameFacts {
    let plane = try LumaPlane(frame)
    let change = reference.map { self.change(from: $0, to: plane) } ?? 1
    if change > stillChange { reference = plane }
    var dark = 0
    for sample in plane.samples where sample < 0.1 { dark += 1 }
    let (luma, lumaSize) = Self.reduced(plane)
    var facts = FrameFacts(
      time: time, duration: duration, segment: segment, isDamaged: frame.isDamaged,
      darkShare: Float(dark) / Float(max(1, plane.samples.count)), change: change, luma: luma,
      lumaSize: lumaSize, size: frame.size, presentationSize: Self.presentationSize(of: frame, stream))
    facts.isInterlaced = frame.isInterlaced
    facts.brightest = plane.samples.max() ?? 0
    return facts
  }

  /// Returns the largest change of a sample, from 0 to 1. Coding a still picture again, as at each key frame, changes
  /// samples here and there by several steps: they count as a sixth if the average change is small.
  private func change(from a: LumaPlane, to b: LumaPlane) -> Float {
    guard a.size == b.size, !a.samples.isEmpty else { return 1 }
    var largest: Float = 0
    var sum: Float = 0
    a.samples.withUnsafeBufferPointer { a in
      b.samples.withUnsafeBufferPointer { b in
        for index in 0..<min(a.count, b.count) {
          let change = abs(a[index] - b[index])
          largest = max(largest, change)
          sum += change
        }
      }
    }
    return sum / Float(a.samples.count) < stillChange / 4 ? largest / 6 : largest
  }

  /// Averages a plane to `lumaSide` columns or rows, the longer side.
  private static func reduced(_ plane: LumaPlane) -> ([UInt8], PixelSize) {
    let side = lumaSide
    let (width, height) = (plane.size.width, plane.size.height)
    let longer = max(width, height)
    guard longer > 0 else { return ([], PixelSize(width: 0, height: 0)) }
    let size = PixelSize(
      width: max(1, min(width, width * side / longer)), height: max(1, min(height, height * side / longer)))
    var luma = [UInt8](repeating: 0, count: size.width * size.height)
    for row in 0..<size.height {
      let rows =
        (row * height / size.height)..<max(row * height / size.height + 1, (row + 1) * height / size.height)
      for column in 0..<size.width {
        let start = column * width / size.width
        let columns = start..<max(start + 1, (column + 1) * width / size.width)
        var sum: Float = 0
        for y in rows { for x in columns { sum += plane.samples[y * width + x] } }
        luma[row * size.width + column] = UInt8(
          max(0, min(255, (sum / Float(rows.count * columns.count) * 255).rounded())))
      }
    }
    return (luma, size)
  }

  private static func presentationSize(of frame: Frame, _ stream: StreamInfo) -> PixelSize {
    let ratio = (stream.sampleAspectRatio ?? frame.sampleAspectRatio)?.value ?? 1
    let width = Int((Double(frame.size.width) * ratio).rounded())
    let size = PixelSize(width: max(1, width), height: frame.size.height)
    return stream.rotation % 180 == 0 ? size : size.transposed
  }
}

/// The peaks of sound, in windows of equal length.
private struct SoundWindow {
  let duration: Double
  var sounds: [SoundFacts] = []
  var current: SoundFacts?
  var end = 0.0

  mutating func add(_ buffer: PCMBuffer, unit: Double) {
    guard buffer.sampleRate > 0, buffer.frameCount > 0 else { return }
    let start = buffer.ticks.map { Double($0) * unit } ?? end
    let length = Double(buffer.frameCount) / Double(buffer.sampleRate)
    var peak: Float = 0
    for sample in buffer.samples where abs(sample) > peak { peak = abs(sample) }
    // A hole begins another window.
    if let last = current, abs(start - (last.time + last.duration)) > duration || last.duration >= duration {
      sounds.append(last)
      current = nil
    }
    var window = current ?? SoundFacts(time: start, duration: 0, peak: 0)
    window.duration = start + length - window.time
    window.peak = max(window.peak, peak)
    current = window
    end = start + length
  }

  mutating func finish() -> [SoundFacts] {
    if let last = current.take() { sounds.append(last) }
    return sounds
  }
}

/// Access units that are all there.
private final class UnitList: AccessUnitSource {
  private let packets: [Packet]
  private var next = 0
  var account: FrameAccount

  init(_ packets: [Packet], stream: StreamInfo) {
    self.packets = packets
    account = FrameAccount(stream: stream)
  }

  func nextUnit() -> Pulled<Packet> {
    guard next < packets.count else { return .end }
    let packet = packets[next]
    next += 1
    if let ticks = packet.presentationTicks {
      account.feed(packet, at: ticks, lasting: packet.durationTicks)
    }
    return .element(packet)
  }

  func didOpen(_ opening: OpeningPicture) {}
}
