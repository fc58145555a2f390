import Foundation
import ReelCore
import ReelFFmpeg
import ReelLab
import ReelManifest
import ReelReading

/// A `SourceDescription` as text.
enum ProbeText {
  static func text(for description: SourceDescription, source: String) -> String {
    var lines = [source.printable, headline(description)]
    if let presentation = description.presentation {
      lines += presentationLines(presentation, chosen: description.chosenPlace)
    }
    if let segments = description.segments {
      var line = "  segments \(segments.count), \(segments.shortest.formatted(places: 3))"
      if segments.longest != segments.shortest { line += "-\(segments.longest.formatted(places: 3))" }
      line += " s"
      if segments.discontinuityCount > 0 {
        line += ", \(segments.discontinuityCount.counted("discontinuity", "discontinuities"))"
      }
      lines.append(line)
    }
    for stream in description.streams {
      let facts = [
        stream.codecName, stream.codecTag, size(stream.size), stream.averageFrameRate.map(frameRate),
        stream.channelCount.map { $0.counted("channel") }, stream.sampleRate.map { "\($0) Hz" },
        stream.language,
      ]
      lines.append("  stream \(stream.index) \(stream.kind.rawValue)  \(join(facts))")
    }
    if let frame = description.firstFrame { lines += self.frame(frame) }
    for warning in description.warnings {
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

  /// - Parameter chosen: The place of the chosen rung among those of video.
  private static func presentationLines(_ presentation: Presentation, chosen: Int?) -> [String] {
    var lines: [String] = []
    if presentation.periods.count > 1 {
      for (index, period) in presentation.periods.enumerated() {
        let media = period.mediaKinds
        let facts: [String?] = [
          period.id, "at \(period.start.seconds.formatted(places: 3)) s",
          period.duration.map { "\($0.seconds.formatted(places: 3)) s long" },
          media.isEmpty ? "nothing to play" : media.joined(separator: " and "),
        ]
        lines.append("    period \(index + 1)  \(join(facts))")
      }
    }
    for (place, found) in presentation.rungs(of: .video).enumerated() {
      let (rung, group) = (found.rung, found.group)
      let facts = [
        rung.bitsPerSecond.map(bitRate), size(rung.size), rung.frameRate.map(frameRate), rung.codecText,
        rung.videoRange, group.unplayableReason.map { "(\($0))" }, rung.protection.map(protection),
      ]
      let mark = place == chosen ? "*" : " "
      lines.append("  \(mark) video  \(rung.id.printable)  \(join(facts, or: "nothing stated"))")
    }
    for (name, kind) in [("audio", TrackGroup.Kind.audio), ("text", .text)] {
      for (_, group, rung) in presentation.rungs(of: kind) {
        let facts = [
          group.language, group.label, rung.bitsPerSecond.map(bitRate), rung.codecText,
          rung.channels.map { "\($0) \($0 == "1" ? "channel" : "channels")" },
          group.isDefault ? "default" : nil, group.unplayableReason.map { "(\($0))" },
          rung.protection.map(protection),
        ]
        let column = name.padding(toLength: 6, withPad: " ", startingAt: 0)
        lines.append("    \(column) \(rung.id.printable)  \(join(facts))")
      }
    }
    for (_, group, rung) in presentation.rungs(of: .image) {
      guard let tiles = rung.tiles else { continue }
      let layout = rung.tileLayout.flatMap { columns, rows in
        columns * rows == 1 ? nil : "\(columns)x\(rows) tiles per image"
      }
      let facts = [
        rung.bitsPerSecond.map(bitRate), size(tiles.size), layout, rung.mimeType, rung.codecText,
        group.unplayableReason.map { "(\($0))" },
      ]
      lines.append("    images \(rung.id.printable)  \(join(facts, or: "nothing stated"))")
    }
    return lines
  }

  private static func frame(_ frame: SourceDescription.FirstFrame) -> [String] {
    let color = frame.color
    let codec = [
      frame.codec, frame.profile, frame.levelText.map { "level \($0)" }, frame.pixelFormat,
      "\(color.bitDepth) bit",
    ]
    let shape = [
      size(frame.size),
      frame.sampleAspectRatio.flatMap { $0.ratioText == "1:1" ? nil : "pixels \($0.ratioText)" },
      frame.rotation == 0 ? nil : "rotated \(frame.rotation)", frame.isMirrored ? "mirrored" : nil,
      size(frame.displaySize).map { "shown \($0)" }, frame.frameRate.map(frameRate),
      frame.isInterlaced ? "interlaced" : nil,
    ]
    let colors = [
      "matrix \(color.matrix ?? "unspecified, \(color.assumedMatrix) used")",
      color.primaries.map { "primaries \($0)" }, color.transfer.map { "transfer \($0)" },
      color.isFullRange ? "full range" : "limited range", color.isHDR ? "HDR, not tone mapped" : nil,
    ]
    let start = [
      frame.byteCount.map { "\($0) bytes to its end" },
      frame.presentationTime.map { "pts \($0.formatted(places: 6))" },
      frame.gopText.map { $0 == "none" ? "no clean start" : "\($0) GOP" },
      "reorder depth \(frame.reorderDepth)", frame.isDamaged ? "damaged" : nil,
    ]
    return ["  first frame  \(join(codec))"] + [shape, colors, start].map { "                 \(join($0))" }
  }

  private static func join(_ parts: [String?], or nothing: String = "") -> String {
    let text = parts.compactMap { $0?.printable }.joined(separator: ", ")
    return text.isEmpty ? nothing : text
  }

  private static func size(_ size: PixelSize?) -> String? { size.map { "\($0.width)x\($0.height)" } }

  private static func protection(_ protection: ContentProtection) -> String {
    "(encrypted: \(protection.schemes.joined(separator: ", ")))"
  }

  private static func bitRate(_ bitsPerSecond: Int) -> String {
    WalkValue.text(bitsPerSecond: Double(bitsPerSecond))
  }

  private static func frameRate(_ rate: Rational) -> String {
    rate.isPositive ? "\(rate.value.formatted(places: 3)) fps" : rate.description
  }
}
