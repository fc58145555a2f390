import Foundation
import ReelCore
import ReelLab
import ReelManifest
import ReelPlayback

/// A `SourceDescription` as text.
enum ProbeText {
  static func text(for description: SourceDescription, source: String) -> String {
    var lines = [source.printable, headline(description)]
    let record = ProbeRecord(source: source, description)
    if let periods = record.periodList, periods.count > 1 {
      for (index, period) in periods.enumerated() {
        let facts: [String?] = [
          period.id, "at \(period.start.formatted(places: 3)) s",
          period.duration.map { "\($0.formatted(places: 3)) s long" },
          period.media.isEmpty ? "nothing to play" : period.media.joined(separator: " and "),
        ]
        lines.append("    period \(index + 1)  \(join(facts))")
      }
    }
    for rung in record.rungs ?? [] {
      let facts = [
        rung.bandwidth.map(bitRate), size(rung.width, rung.height), rung.frameRate.map(frameRate),
        rung.codecs, rung.videoRange, rung.unplayable.map { "(\($0))" },
        rung.protection.map(protection),
      ]
      let text = join(facts)
      lines.append(
        "  \(rung.chosen ? "*" : " ") video  \(rung.id.printable)  \(text.isEmpty ? "nothing stated" : text)")
    }
    for (name, renditions) in [("audio", record.audio ?? []), ("text", record.text ?? [])] {
      for rendition in renditions {
        let facts = [
          rendition.language, rendition.label, rendition.bandwidth.map(bitRate), rendition.codecs,
          rendition.channels.map { "\($0) \($0 == "1" ? "channel" : "channels")" },
          rendition.default ? "default" : nil,
          rendition.unplayable.map { "(\($0))" }, rendition.protection.map(protection),
        ]
        lines.append(
          "    \(name.padding(toLength: 6, withPad: " ", startingAt: 0)) \(rendition.id.printable)  \(join(facts))"
        )
      }
    }
    for images in record.images ?? [] {
      let layout = images.columns.flatMap { columns in
        images.rows.flatMap { columns * $0 == 1 ? nil : "\(columns)x\($0) tiles per image" }
      }
      let facts = [
        images.bandwidth.map(bitRate), size(images.width, images.height), layout, images.mimeType,
        images.codecs, images.unplayable.map { "(\($0))" },
      ]
      let text = join(facts)
      lines.append("    images \(images.id.printable)  \(text.isEmpty ? "nothing stated" : text)")
    }
    if let segments = record.segments {
      var line = "  segments \(segments.count), \(segments.shortestDuration.formatted(places: 3))"
      if segments.longestDuration != segments.shortestDuration {
        line += "-\(segments.longestDuration.formatted(places: 3))"
      }
      line += " s"
      if segments.discontinuities > 0 {
        line += ", \(segments.discontinuities.counted("discontinuity", "discontinuities"))"
      }
      lines.append(line)
    }
    for stream in record.streams ?? [] {
      let facts = [
        stream.codecName, stream.codecTag, size(stream.width, stream.height),
        stream.avgFrameRate.map(frameRate),
        stream.channels.map { $0.counted("channel") },
        stream.sampleRate.map { "\($0) Hz" }, stream.language,
      ]
      lines.append("  stream \(stream.index) \(stream.codecType)  \(join(facts))")
    }
    if let frame = record.firstFrame { lines.append(contentsOf: self.frame(frame)) }
    for warning in record.warnings ?? [] {
      lines.append("  \(Terminal.layout.styled("warning", .warning))  \(warning)")
    }
    return lines.joined(separator: "\n")
  }

  // MARK: - Private

  private static func headline(_ description: SourceDescription) -> String {
    let kind = ["hls": "HLS", "dash": "DASH"][description.kind] ?? description.kind
    var parts = [kind, description.presentation == nil ? nil : description.isLive ? "live" : "on demand"]
    parts.append(description.duration.map { "\($0.formatted(places: 3)) s" })
    if let periods = description.presentation?.periods.count, periods > 1 {
      parts.append(periods.counted("period"))
    }
    return "  " + join(parts)
  }

  private static func frame(_ frame: ProbeRecord.Frame) -> [String] {
    let codec = [
      frame.codecName, frame.profile, frame.level.map { "level \($0)" }, frame.pixFmt,
      "\(frame.bitDepth) bit",
    ]
    let shape = [
      "\(frame.width)x\(frame.height)",
      frame.sampleAspectRatio.flatMap { $0 == "1:1" ? nil : "pixels \($0)" },
      frame.rotation == 0 ? nil : "rotated \(frame.rotation)", frame.mirrored ? "mirrored" : nil,
      "shown \(frame.displayWidth)x\(frame.displayHeight)", frame.frameRate.map(frameRate),
      frame.interlaced ? "interlaced" : nil,
    ]
    let color = [
      "matrix \(frame.colorSpace ?? "unspecified, \(frame.matrixUsed) used")",
      frame.colorPrimaries.map { "primaries \($0)" }, frame.colorTransfer.map { "transfer \($0)" },
      frame.colorRange == "pc" ? "full range" : "limited range", frame.hdr ? "HDR, not tone mapped" : nil,
    ]
    let start = [
      frame.bytes.map { "\($0) bytes to its end" },
      frame.ptsTime.map { "pts \($0.formatted(places: 6))" },
      frame.gop.map { $0 == "none" ? "no clean start" : "\($0) GOP" },
      "reorder depth \(frame.reorderDepth)",
      frame.damaged ? "damaged" : nil,
    ]
    return [
      "  first frame  \(join(codec))", "                 \(join(shape))", "                 \(join(color))",
      "                 \(join(start))",
    ]
  }

  private static func join(_ parts: [String?]) -> String {
    parts.compactMap { $0?.printable }.joined(separator: ", ")
  }

  private static func size(_ width: Int?, _ height: Int?) -> String? {
    guard let width, let height else { return nil }
    return "\(width)x\(height)"
  }

  private static func protection(_ protection: ProtectionRecord) -> String {
    "(encrypted: \(protection.schemes.joined(separator: ", ")))"
  }

  private static func bitRate(_ bitsPerSecond: Int) -> String {
    WalkValue.text(bitsPerSecond: Double(bitsPerSecond))
  }

  private static func frameRate(_ text: String) -> String {
    let parts = text.split(separator: "/").compactMap { Double($0) }
    guard let first = parts.first, first > 0 else { return text }
    return "\((parts.count > 1 && parts[1] > 0 ? first / parts[1] : first).formatted(places: 3)) fps"
  }
}
