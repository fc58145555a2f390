import ReelCore
import ReelManifest

/// Writes the MPD of a live simulation as it is at one time.
struct DASHLiveManifest {
  private let simulation: DASHLiveSimulation
  private let time: WallTime
  private let elapsed: MediaTime
  private let hasEnded: Bool

  /// - Parameter time: On the server's clock.
  init(simulation: DASHLiveSimulation, time: WallTime) {
    self.simulation = simulation
    self.time = time
    elapsed = time - simulation.start
    hasEnded = simulation.hasEnded(after: elapsed)
  }

  /// Nil where there is no Period yet.
  var text: String? {
    let periods = passes.compactMap { period($0) }
    guard !periods.isEmpty else { return nil }
    let content = periods.joined() + (hasEnded ? "" : clockSources)
    return """
      <?xml version="1.0" encoding="UTF-8"?>
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011"\(attributes)>
      \(content)</MPD>

      """
  }

  // MARK: - Private

  private var options: DASHLiveSimulation.Options { simulation.options }
  private var material: LiveMaterial { simulation.material }

  private var attributes: String {
    let longest = material.tracks.flatMap(\.segments).map(\.duration).max() ?? .zero
    var fields = [
      ("type", hasEnded ? "static" : "dynamic"), ("minBufferTime", "PT1S"),
      ("maxSegmentDuration", longest.xml),
    ]
    if hasEnded {
      fields.append(("mediaPresentationDuration", (simulation.end ?? .zero).xml))
    } else {
      fields.append(("availabilityStartTime", simulation.start.description))
      fields.append(("publishTime", publishTime.description))
      if let period = options.minimumUpdatePeriod { fields.append(("minimumUpdatePeriod", period.xml)) }
      if let depth = options.timeShiftBufferDepth { fields.append(("timeShiftBufferDepth", depth.xml)) }
    }
    if let delay = options.suggestedPresentationDelay {
      fields.append(("suggestedPresentationDelay", delay.xml))
    }
    return fields.map { " \($0)=\"\($1)\"" }.joined()
  }

  /// When the newest thing that the MPD tells of came into it: the same text has the same time.
  private var publishTime: WallTime {
    switch options.addressing {
    case .number: return simulation.start + material.duration * (passes.last ?? 0)
    case .timeline:
      let edges = material.tracks.map { track in
        let window = simulation.window(of: track, after: elapsed)
        return window.isEmpty ? .zero : material.occurrence(window.upperBound - 1, of: track).end
      }
      return simulation.start + (edges.max() ?? .zero)
    }
  }

  private var clockSources: String {
    options.timeSchemes.map { scheme in
      let value = scheme == .direct ? time.description : simulation.timePath
      return "  <UTCTiming schemeIdUri=\"\(scheme.rawValue)\" value=\"\(value.xmlEscaped)\"/>\n"
    }.joined()
  }

  /// The passes that may have a Period in the MPD. By number the next one is announced before it begins, as a client
  /// takes the last Period to go on until it reads the MPD again.
  private var passes: ClosedRange<Int64> {
    let last = options.passCount.map { Int64(max($0, 1)) - 1 }
    if options.periods == .single { return 0...0 }
    if hasEnded { return 0...(last ?? 0) }
    let depth = options.timeShiftBufferDepth
    let first = depth.map { max(0, (elapsed - $0).quotient(by: material.duration)) } ?? 0
    let ahead = options.availabilityTimeOffset + (options.minimumUpdatePeriod ?? .zero)
    let newest = max((elapsed + ahead).quotient(by: material.duration), 0)
    let end = last.map { min($0, newest) } ?? newest
    return min(first, end)...end
  }

  /// The Period of a pass; nil where a track has no segment in it.
  private func period(_ pass: Int64) -> String? {
    var sets: [(group: LiveMaterial.Group, representations: String)] = []
    for (place, track) in material.tracks.enumerated() {
      guard let segments = segments(place, track, pass: pass) else { return nil }
      let text = representation(track, segments)
      if let last = sets.indices.last, sets[last].group == track.group {
        sets[last].representations += text
      } else {
        sets.append((track.group, text))
      }
    }
    let content = sets.map { set in
      let language = set.group.language.map { " lang=\"\($0.xmlEscaped)\"" } ?? ""
      return """
            <AdaptationSet id="\(set.group.index)" contentType="\(set.group.kind)"\(language) segmentAlignment="true">
        \(set.representations)    </AdaptationSet>

        """
    }
    return """
        <Period id="p\(pass)" start="\((material.duration * pass).xml)">
      \(content.joined())  </Period>

      """
  }

  private func representation(_ track: LiveMaterial.Track, _ segments: String) -> String {
    let rung = track.rung
    var fields = [("id", track.id), ("bandwidth", "\(rung.bitsPerSecond ?? 1)")]
    fields.append(("mimeType", "\(track.group.kind)/\(track.fileType == "webm" ? "webm" : "mp4")"))
    if !rung.codecs.isEmpty { fields.append(("codecs", rung.codecs.joined(separator: ","))) }
    if let size = rung.size { fields += [("width", "\(size.width)"), ("height", "\(size.height)")] }
    if let rate = rung.frameRate { fields.append(("frameRate", rate.description)) }
    return """
            <Representation\(fields.map { " \($0)=\"\($1.xmlEscaped)\"" }.joined())>
      \(segments)      </Representation>

      """
  }

  /// The SegmentTemplate of a track in a pass; nil where there is nothing to list.
  private func segments(_ place: Int, _ track: LiveMaterial.Track, pass: Int64) -> String? {
    let isSingle = options.periods == .single
    let folder = isSingle ? "" : "p\(pass)/"
    let variable = options.addressing == .number ? "$Number$" : "t$Time$"
    var fields = [("timescale", "\(track.timescale)")]
    if !track.initializations.isEmpty { fields.append(("initialization", "\(place)-init.\(track.fileType)")) }
    fields.append(("media", "\(folder)\(place)-\(variable).\(track.fileType)"))
    let offset = (track.mediaStart ?? .zero).ticks(timescale: track.timescale)
    if offset != 0 { fields.append(("presentationTimeOffset", "\(offset)")) }
    if options.availabilityTimeOffset > .zero {
      fields.append(("availabilityTimeOffset", options.availabilityTimeOffset.decimal(9, trimmed: true)))
    }
    var timeline = ""
    if options.addressing == .number {
      fields += [("startNumber", "1"), ("duration", "\(track.segments[0].duration.value)")]
    } else {
      let count = Int64(track.segments.count)
      var window = simulation.window(of: track, after: elapsed)
      if !isSingle { window = window.clamped(to: pass * count..<(pass + 1) * count) }
      guard !window.isEmpty else { return nil }
      timeline = "          <SegmentTimeline>\n\(entries(window, of: track))          </SegmentTimeline>\n"
    }
    return """
              <SegmentTemplate\(fields.map { " \($0)=\"\($1.xmlEscaped)\"" }.joined())>
      \(timeline)        </SegmentTemplate>

      """
  }

  private func entries(_ window: Range<Int64>, of track: LiveMaterial.Track) -> String {
    window.map { index in
      let segment = material.occurrence(index, of: track)
      let start = simulation.ticks(segment, of: track)
      let end = (MediaTime(value: start, timescale: track.timescale) + segment.segment.duration)
      let next = material.occurrence(index + 1, of: track)
      // Where one timeline goes on, a segment ends where the next begins, to the tick.
      let continues = next.pass == segment.pass || options.periods == .single
      let last = continues ? simulation.ticks(next, of: track) : end.ticks(timescale: track.timescale)
      return "            <S t=\"\(start)\" d=\"\(last - start)\"/>\n"
    }.joined()
  }
}

extension MediaTime {
  /// As `xs:duration` has it, in seconds to the nanosecond.
  var xml: String { "PT\(decimal(9, trimmed: true))S" }
}

extension String {
  /// With the characters that mean something in an attribute (XML 1.0 §2.4) written as references.
  fileprivate var xmlEscaped: String {
    reduce(into: "") { text, character in
      switch character {
      case "&": text += "&amp;"
      case "<": text += "&lt;"
      case "\"": text += "&quot;"
      default: text.append(character)
      }
    }
  }
}
