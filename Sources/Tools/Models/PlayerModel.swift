internal import Foundation
package import ReelCore
package import ReelSimulation

/// How a player behaves in a feed, as data: its requests, what it waits for, how far it loads, and the time that it takes for
/// itself.
///
/// `Docs/PlayerModels.md` describes the fields. Each value has a source (``Source``).
package struct PlayerModel: Sendable, Hashable, Codable {
  /// Something that a player requests. What an item does not have is left out.
  package enum Resource: String, Choice {
    /// The document at the item's URL: a multivariant playlist, a media playlist alone, or an MPD.
    case manifest
    case playlist
    case audioPlaylist = "audio_playlist"
    /// The `sidx` of a rung, or the `moov` of a file that ends with it.
    case index
    case audioIndex = "audio_index"
    case initialization
    case audioInitialization = "audio_initialization"
    case segment
    case audioSegment = "audio_segment"

    var isMedia: Bool { self == .segment || self == .audioSegment }
    var isInitialization: Bool { self == .initialization || self == .audioInitialization }
  }

  package enum Delivery: String, Choice {
    /// A segment is used once all of it has arrived.
    case segments
    /// Bytes are used as they come.
    case bytes
  }

  package enum FirstRung: String, Choice {
    /// The one that is listed first.
    case first
    case lowest
    case highest
    /// The highest within the expected rate of the link (``Adaptation``).
    case estimate
  }

  /// What holds the media of an item.
  package enum Container: String, Choice {
    case ts, fmp4
    /// A file that is played by itself.
    case file
  }

  package enum OpenRungs: String, Choice {
    /// The one that it plays.
    case one
    /// All of them, by their playlists and first segments, before the first frame.
    case all
  }

  /// What the first frame needs.
  package struct FirstFrame: Sendable, Hashable, Codable {
    package enum Need: String, Choice {
      /// The bytes up to its end.
      case frame
      /// The whole first segment.
      case segment
    }

    package var needs: Need
    /// True if audio must have come as well.
    package var audio: Bool
    /// The media that must be loaded of a presentation, and of a file, in milliseconds.
    package var aheadMs: Double
    package var fileAheadMs: Double
  }

  package enum Format: String, Choice {
    case hls, dash, file
  }

  package struct Start: Sendable, Hashable, Codable {
    package var formats: [Format]
    /// The requests: those of a step are sent together, and a step begins when the one before has arrived.
    package var requests: [[Resource]]
    package var media: Delivery
    package var rung: FirstRung
    package var opens: OpenRungs
    /// How many segments of a track are requested at a time: 1, or 2 to request one while the one before arrives.
    package var segmentsAtOnce: Int
    package var firstFrame: FirstFrame
    /// The containers in which its clock begins at the decode time of the first frame: the second frame comes later by
    /// the time for which frames are reordered.
    package var decodeTime: [Container]
    /// The media that must be loaded before it plays, and before it goes on after a stall, in milliseconds.
    package var playMs: Double
    package var resumeMs: Double
  }

  package struct Buffer: Sendable, Hashable, Codable {
    /// The media ahead at which loading pauses, in seconds.
    package var forwardS: Double
    /// The share of it below which loading continues.
    package var refill: Double
  }

  package struct Adaptation: Sendable, Hashable, Codable {
    /// The rate that is expected before anything was measured.
    package var initialBitsPerSecond: Double
    /// The share of the expected rate that a rung may use.
    package var share: Double
    /// The seconds of loading after which an older rate counts half; 0 for the last rate alone.
    package var halfLifeS: Double
    /// True if the players of a feed share what was measured.
    package var shared: Bool
  }

  package struct Connections: Sendable, Hashable, Codable {
    package enum HTTP: String, Choice {
      case one = "1.1"
      case two = "2"
    }

    package var http: HTTP
    /// The most connections to a host.
    package var perHost: Int
    /// True if they are kept for the next request.
    package var kept: Bool
  }

  package struct Preload: Sendable, Hashable, Codable {
    package enum Beginning: String, Choice {
      /// When its first frame is on show.
      case shown
      /// When its buffer is full.
      case buffered
    }

    package enum FirstSight: String, Choice {
      /// The one that it has drawn before.
      case drawn
      /// The next one, with which the item begins to move.
      case moving
    }

    package struct Neighbour: Sendable, Hashable, Codable {
      /// The distance from the current item in the direction of travel.
      package var offset: Int
      /// The media that is loaded of it, in seconds.
      package var forwardS: Double
      /// The item that it waits for, by its offset: 0 for the current one. Nil to share the link from the swipe on.
      package var after: Int?

      package init(offset: Int, forwardS: Double, after: Int? = nil) {
        (self.offset, self.forwardS, self.after) = (offset, forwardS, after)
      }
    }

    /// Beginnings of items that are put on disk, without a player.
    package struct Disk: Sendable, Hashable, Codable {
      /// The media of each item, in seconds.
      package var forwardS: Double
      /// The number of items, half of them on each side of the current one. The others are removed from the disk.
      package var items: Int
      /// True if what is on disk stays there for the next visit.
      package var kept: Bool
    }

    /// The number of players, that of the current item included.
    package var players: Int
    /// True if a preloaded player decodes its first frame.
    package var decodes: Bool
    /// What counts as the first frame of a preloaded player.
    package var firstFrame: FirstSight
    /// When the current item has come far enough for those that wait for it.
    package var waitsUntil: Beginning
    /// The most important first. Only as many as there are players beside the current one are preloaded.
    package var items: [Neighbour]
    /// What is put on disk once `items` are loaded, if the program has given the player a cache. Nil for nothing.
    package var disk: Disk?
  }

  /// The time that a player takes for itself, in milliseconds.
  package struct Costs: Sendable, Hashable, Codable {
    package var createMs: Double
    package var parseMs: Double
    package var appendMs: Double
    package var openDecoderMs: Double
    package var decodeMs: Double
    package var presentMs: Double
    package var playMs: Double
    /// From a swipe to a preloaded player until its first frame is on show.
    package var swapMs: Double
    /// Stopping a player, before another one is created.
    package var stopMs: Double
  }

  /// Where values come from: exactly one of `measurement`, `documentation`, `code` and `recording`.
  package struct Source: Sendable, Hashable, Codable {
    /// The benchmark.
    package var measurement: String?
    package var documentation: String?
    /// The place in the player's source code.
    package var code: String?
    /// The file of a recording of the user's.
    package var recording: String?
    /// The version of what was measured, described or read.
    package var version: String?
    package var date: String?
    package var note: String?

    package init(recording: String, version: String? = nil, date: String? = nil) {
      (self.recording, self.version, self.date) = (recording, version, date)
    }

    var isMeasured: Bool { measurement != nil || recording != nil }
  }

  /// The schema, for editors.
  package var schema: String?
  package var name: String
  package var version: String
  package var start: Start
  package var buffer: Buffer
  /// Nil for a player that stays with its first rung.
  package var adaptation: Adaptation?
  package var connections: Connections
  /// True if it keeps answers, so that an item that comes again is not requested again.
  package var cache: Bool
  package var preload: Preload
  package var costs: Costs
  /// The sources by the coding paths of values; a path stands for all values in it.
  package var sources: [String: Source]

  private enum CodingKeys: String, CodingKey {
    case schema = "$schema"
    case name, version, start, buffer, adaptation, connections, cache, preload, costs, sources
  }

  /// True if its costs were measured or recorded; false for a model that is made of documentation alone.
  package var isMeasured: Bool {
    sources.contains { ($0.key == "costs" || $0.key.hasPrefix("costs.")) && $0.value.isMeasured }
  }

  /// True if it keeps on disk what it fetches, or beginnings of items, once the program gives it a cache.
  package var stores: Bool { cache || preload.disk != nil }

  /// The name for reports, with a remark if nothing of the model was measured.
  package var title: String { isMeasured ? name : "\(name) (from documentation, not measured)" }
}

// MARK: - Reading

extension PlayerModel {
  /// The largest file of a model: 1 MiB.
  package static let byteLimit = 1 << 20

  /// Reads a model from JSON.
  ///
  /// - Parameter path: The path of the file, for errors.
  /// - Throws: `ReelError` of kind `badManifest` with the coding path of the first value that is wrong.
  package init(json bytes: [UInt8], path: String) throws(ReelError) {
    do {
      self = try StrictJSON.decode(Self.self, from: Data(bytes))
      try check()
    } catch {
      throw error.located(at: path)
    }
  }

  /// The model as JSON, with sorted keys.
  package func json() throws(ReelError) -> String { try StrictJSON.text(self) }

  /// Throws for a value out of range, preloads that wait for each other, and a value without a source.
  private func check() throws(ReelError) {
    try checkRequests()
    try checkPreload()
    let values = try StrictJSON.values(in: self).filter { value in
      !Self.descriptions.contains { value.path.hasPrefix($0) }
    }
    for (path, value) in values {
      let isAmount = path.hasSuffix("_ms") || path.hasSuffix("_s")
      guard isAmount, let value = (value as? NSNumber)?.doubleValue, !(value >= 0 && value <= 1e6) else {
        continue
      }
      throw Self.failure(
        path, value < 0 ? "can't be negative: \(value)" : "must be at most 1000000, not \(value)")
    }
    for (path, share) in [("buffer.refill", buffer.refill), ("adaptation.share", adaptation?.share ?? 1)]
    where !(share > 0 && share <= 1) {
      throw Self.failure(path, "must be above 0 and at most 1, not \(share)")
    }
    if let rate = adaptation?.initialBitsPerSecond, !(rate > 0 && rate <= 1e13) {
      throw Self.failure("adaptation.initial_bits_per_second", "must be above 0, not \(rate)")
    }
    if start.rung == .estimate, adaptation == nil {
      throw Self.failure("start.rung", "\"estimate\" needs an adaptation")
    }
    guard (1...2).contains(start.segmentsAtOnce) else {
      throw Self.failure("start.segments_at_once", "must be 1 or 2, not \(start.segmentsAtOnce)")
    }
    guard (1...1000).contains(connections.perHost) else {
      throw Self.failure("connections.per_host", "must be from 1 to 1000, not \(connections.perHost)")
    }
    try checkSources(of: values.map { String($0.path.prefix { $0 != "[" }) })
  }

  /// The fields that describe the model.
  private static let descriptions = ["$schema", "name", "version", "sources"]

  private func checkRequests() throws(ReelError) {
    var known: Set<Resource> = []
    for (step, resources) in start.requests.enumerated() {
      // Some players request the manifest twice.
      for (place, resource) in resources.enumerated()
      where !known.insert(resource).inserted && resource != .manifest {
        throw Self.failure("start.requests[\(step)][\(place)]", "\(resource.rawValue) appears twice")
      }
      let media = resources.first(where: \.isMedia)
      if let media, !resources.allSatisfy({ $0.isMedia || $0.isInitialization }) {
        throw Self.failure(
          "start.requests[\(step)]", "\(media.rawValue) can only be requested together with initializations")
      }
    }
    guard known.contains(.manifest), known.contains(.segment) else {
      throw Self.failure("start.requests", "must have manifest and segment")
    }
    guard start.requests.first == [.manifest] else {
      throw Self.failure("start.requests", "must begin with manifest, which names the others")
    }
  }

  private func checkPreload() throws(ReelError) {
    guard (1...1000).contains(preload.players) else {
      throw Self.failure("preload.players", "must be from 1 to 1000, not \(preload.players)")
    }
    if let items = preload.disk?.items, !(0...1000).contains(items) {
      throw Self.failure("preload.disk.items", "must be from 0 to 1000, not \(items)")
    }
    var waits: [Int: Int] = [:]
    for (place, item) in preload.items.enumerated() {
      let path = "preload.items[\(place)]"
      guard item.offset != 0, abs(item.offset) <= 1000 else {
        throw Self.failure("\(path).offset", "must be from -1000 to 1000, and not 0, the current item")
      }
      guard waits[item.offset] == nil else {
        throw Self.failure("\(path).offset", "\(item.offset) appears twice")
      }
      waits[item.offset] = item.after ?? 0
    }
    for (place, item) in preload.items.enumerated() {
      let path = "preload.items[\(place)].after"
      var (next, count) = (item.after ?? 0, 0)
      while next != 0 {
        guard let after = waits[next] else {
          throw Self.failure(path, "\(next) is not the offset of a preloaded item, or 0")
        }
        count += 1
        guard count <= waits.count else {
          throw Self.failure(path, "a cycle: preloads that wait for each other never begin")
        }
        next = after
      }
    }
  }

  private func checkSources(of paths: [String]) throws(ReelError) {
    for (path, source) in sources.sorted(by: { $0.key < $1.key }) {
      guard paths.contains(where: { $0 == path || $0.hasPrefix(path + ".") }) else {
        throw Self.failure("sources", "\"\(path)\" is not a value of the model")
      }
      let kinds = [source.measurement, source.documentation, source.code, source.recording]
      guard kinds.compactMap(\.self).count == 1 else {
        throw Self.failure(
          "sources[\"\(path)\"]", "must have one of measurement, documentation, code and recording")
      }
      guard source.recording != nil || source.version != nil else {
        throw Self.failure("sources[\"\(path)\"].version", "the field is missing")
      }
    }
    for path in paths where source(of: path) == nil {
      throw Self.failure(
        path, "has no source",
        advice: "add an entry to sources for \"\(path)\", or for \"\(path.prefix { $0 != "." })\"")
    }
  }

  package func source(of path: String) -> Source? {
    var path = path[...]
    while true {
      if let source = sources[String(path)] { return source }
      guard let dot = path.lastIndex(of: ".") else { return nil }
      path = path[..<dot]
    }
  }

  private static func failure(_ path: String, _ reason: String, advice: String? = nil) -> ReelError {
    ReelError(.badManifest, "\(path): \(reason)", advice: advice)
  }
}

// MARK: - Engine

extension PlayerModel {
  /// The rules of a player of this model.
  package var rules: LinkPlayback.Rules {
    var rules = LinkPlayback.Rules(target: .milliseconds(1000 * buffer.forwardS))
    (rules.start, rules.resume, rules.refillShare) = (
      start.playMs / 1000, start.resumeMs / 1000, buffer.refill
    )
    rules.loadsWholeSegments = start.media == .segments
    rules.loadsNextSegmentBeside = start.segmentsAtOnce > 1
    let (video, audio) = (step(of: .segment), step(of: .audioSegment))
    rules.loadsInitializationFirst = step(of: .initialization) != video
    rules.audioFollowsVideo = audio.map { $0 > video ?? 0 } ?? false
    rules.opensConnectionsAhead = false
    rules.firstFrame = LinkPlayback.FirstFrame(
      wholeSegment: start.firstFrame.needs == .segment, audio: start.firstFrame.audio,
      ahead: start.firstFrame.aheadMs / 1000)
    rules.adaptation = adaptation.map {
      LinkPlayback.Adaptation(
        initialEstimate: $0.initialBitsPerSecond, share: $0.share, halfLife: $0.halfLifeS)
    }
    rules.costs.create = .milliseconds(costs.createMs)
    rules.costs.parse = .milliseconds(costs.parseMs)
    rules.costs.append = .milliseconds(costs.appendMs)
    rules.costs.openDecoder = .milliseconds(costs.openDecoderMs)
    rules.costs.decode = .milliseconds(costs.decodeMs)
    rules.costs.present = .milliseconds(costs.presentMs)
    rules.costs.play = .milliseconds(costs.playMs)
    return rules
  }

  package var client: LinkTraffic.Client {
    var client = LinkTraffic.Client()
    client.connectionLimit = connections.perHost
    client.multiplexes = connections.http == .two
    client.keepsConnections = connections.kept
    return client
  }

  private func step(of resource: Resource) -> Int? { start.requests.firstIndex { $0.contains(resource) } }
}

extension Duration {
  /// A number of milliseconds, to the microsecond.
  static func milliseconds(_ count: Double) -> Duration { .microseconds(Int64((count * 1000).rounded())) }
}
