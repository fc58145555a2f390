import Foundation
import ReelCheck
import ReelCore
import ReelFFmpeg
import ReelLab
import ReelManifest

extension CheckedSource {
  var ladderTable: Table {
    let hasStatements = ladder.contains { !$0.says.isEmpty }
    func cell(_ answer: CheckLadderRow.Answer, mark: String = "") -> Table.Cell {
      answer.isFault ? .init(answer.text, .bad, plain: answer.text + mark) : .init(answer.text)
    }
    var table = Table(
      [.left, .left, .left, .left] + self.starts.map { _ in .right } + [.left, .left], indentation: 2)
    table.add(
      cells: ["rung", "", "opens", "decodes"].map { .init($0) }
        + self.starts.map { .init("start, \($0.link)", plain: $0.link) }
        + (hasStatements ? ["declared", "measured"] : ["measured"]).map { .init($0) })
    for row in ladder {
      let first = Table.Cell(row.name, plain: "\(row.name) *", classes: "best")
      // The start was recorded on the rung that a player opens first.
      let isStarted = row.isFirst || ladder.count == 1
      table.add(
        cells: [row.isFirst ? first : .init(row.name), .init(row.detail), cell(row.opens), cell(row.decodes)]
          + self.starts.map { .init(isStarted ? CheckWords.time($0.now.milliseconds) : "") }
          + (hasStatements ? [.init(row.says)] : []) + [cell(row.actual, mark: "  <-")])
    }
    return table
  }
}

/// A rung or rendition in a report: what the manifest says of it, and what it is.
struct CheckLadderRow: Sendable, Hashable {
  /// An answer of a table.
  struct Answer: Sendable, Hashable {
    var text: String
    var isFault = false

    static let yes = Self(text: "yes")
  }

  var name: String
  /// The shown size and the codec, or the codec of audio: `320x180 h264`.
  var detail: String
  /// If its segments are known and can be read.
  var opens: Answer
  /// If they can be decoded.
  var decodes: Answer
  /// The values that the manifest states; empty for a file.
  var says: String
  /// The measured values.
  var actual: Answer
  /// True if it is the one that a player opens first.
  var isFirst = false

  static func rows(of result: CheckResult) -> [Self] {
    let first = result.starts.first?.rung ?? result.facts.startRung?.name
    return result.facts.rungs.map { rung in
      let findings = result.findings.filter { $0.rung == rung.name || result.facts.rungs.count == 1 }
      return Self(
        rung, findings, isFirst: result.facts.rungs.count > 1 && first == rung.name)
    }
  }

  private init(_ rung: RungFacts, _ findings: [Finding], isFirst: Bool) {
    name = rung.name
    self.isFirst = isFirst
    let samples = rung.samples.sorted { $0.key < $1.key }.map(\.value)
    let video = samples.lazy.compactMap(\.video).first
    let audio = samples.lazy.compactMap(\.audio).first
    let frame = rung.content.lazy.flatMap(\.frames).first
    let codecs = [video, audio].compactMap { $0?.stream.codecName }
    let size = frame?.presentationSize ?? video?.stream.size ?? rung.declared?.size
    detail = ([size?.description].compactMap { $0 } + [codecs.joined(separator: " + ")]).filter {
      !$0.isEmpty
    }
    .joined(separator: " ")
    let isDead = findings.contains { $0.id == .rungDead }
    let hasFailed =
      rung.isUnlisted || isDead || (!samples.isEmpty && samples.allSatisfy { $0.failure != nil })
    if rung.status == .skipped || (samples.isEmpty && !hasFailed && !rung.isExcused) {
      opens = Answer(text: "not read")
      decodes = opens
    } else {
      opens = hasFailed && !rung.isExcused ? Answer(text: "no", isFault: true) : .yes
      decodes = Self.decoding(rung, findings, isDead: isDead)
    }
    says = Self.statement(rung)
    actual = Self.measurement(rung, samples, findings)
  }

  private static func decoding(_ rung: RungFacts, _ findings: [Finding], isDead: Bool) -> Answer {
    if isDead { return Answer(text: "no", isFault: true) }
    let words: [(FindingID, String)] = [
      (.segmentMissing, "missing"), (.segmentTruncated, "cut off"), (.decodeError, "damaged"),
    ]
    for (id, word) in words {
      // A segment that broke off and went on is whole.
      let places = findings.filter { $0.id == id && ($0.level == .error || id != .segmentTruncated) }
      guard let first = places.first else { continue }
      let text = first.segment.map { "segment \($0) \(word)" } ?? word
      return Answer(text: places.count > 1 ? "\(text) +\(places.count - 1)" : text, isFault: true)
    }
    if rung.isExcused { return Answer(text: "not checked") }
    let isDecoded = rung.content.contains { !$0.frames.isEmpty || !$0.sound.isEmpty }
    return isDecoded ? .yes : Answer(text: "not checked")
  }

  private static func statement(_ rung: RungFacts) -> String {
    guard let declared = rung.declared else { return "" }
    var parts: [String] = []
    if let size = declared.size { parts.append(size.description) }
    if let rate = declared.bitsPerSecond { parts.append(bitRate(Double(rate))) }
    if let frames = declared.frameRate, frames.isPositive {
      parts.append("\(frames.value.formatted(places: 3)) fps")
    }
    if !declared.codecs.isEmpty { parts.append(declared.codecs.joined(separator: ",")) }
    return parts.joined(separator: ", ")
  }

  private static func measurement(
    _ rung: RungFacts, _ samples: [SegmentFacts], _ findings: [Finding]
  ) -> Answer {
    var parts: [String] = []
    let content = rung.content.first { !$0.frames.isEmpty || !$0.sound.isEmpty }
    if let frame = content?.frames.first { parts.append(frame.size.description) }
    if let rate = peak(of: rung, samples, findings) { parts.append(bitRate(rate)) }
    let video = samples.lazy.compactMap(\.video).first
    if let frames = video?.stream.averageFrameRate, frames.isPositive {
      parts.append("\(frames.value.formatted(places: 3)) fps")
    }
    if let video {
      parts.append(
        [video.stream.codecName, content?.profile].compactMap { $0 }.joined(separator: " "))
    }
    if let audio = samples.lazy.compactMap(\.audio).first {
      parts.append(
        [audio.stream.codecName, content?.audioProfile].compactMap { $0 }.joined(
          separator: " "))
    }
    if let peak = rung.content.lazy.flatMap(\.sound).map(\.peak).max(), peak > 0, video == nil {
      parts.append("peak \((20 * log10(Double(peak))).formatted(places: 0)) dBFS")
    }
    let differs: Set<FindingID> = [
      .bandwidthMismatch, .codecsMismatch, .resolutionMismatch, .frameRateMismatch, .aspectDiffers,
    ]
    return Answer(
      text: parts.joined(separator: ", "),
      isFault: findings.contains { differs.contains($0.id) && $0.level > .note })
  }

  /// The peak bit rate of the segments whose size is known, in bits per second.
  private static func peak(
    of rung: RungFacts, _ samples: [SegmentFacts], _ findings: [Finding]
  ) -> Double? {
    for finding in findings where finding.id == .bandwidthMismatch {
      for (name, value) in finding.evidence where name == "measured_bps" {
        if case .number(let rate) = value { return rate }
      }
    }
    var rates: [Double] = []
    for sample in samples where rung.segments.indices.contains(sample.index) && !sample.isPartial {
      let seconds = rung.segments[sample.index].duration.seconds
      if sample.byteCount > 0, seconds >= 0.5 { rates.append(Double(sample.byteCount) * 8 / seconds) }
    }
    return rates.max()
  }

  private static func bitRate(_ bitsPerSecond: Double) -> String {
    WalkValue.text(bitsPerSecond: bitsPerSecond)
  }
}
