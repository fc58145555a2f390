package import ReelCore
package import ReelModels
internal import ReelPool

/// Settings for the player of a model, with the figures of a lab's walks that speak for each.
///
/// The number of players and the media that is preloaded are those of ``LabVerdict/advised``. The first rung and the buffer of
/// the current item are changed from the model's if the walks tell a gain.
package struct Advice: Sendable, Encodable {
  package struct Setting: Sendable, Hashable, Encodable {
    package let name: String
    package let value: String
    /// What other values cost or gain.
    package let reasons: [String]
  }

  package let player: String
  package let version: String
  package let settings: [Setting]
  /// The settings in the player's own terms, to paste.
  package let code: String

  // MARK: - The walks

  /// The preloads that are walked if a lab names none: cheap to expensive.
  private static let preloads = [
    "none", "ahead:1,1s", "ahead:1,3s", "ahead:1,10s", "ahead:2,1s", "ahead:2,3s", "ahead:3,3s",
    "adjacent:1s",
    "adjacent:3s",
  ]
  /// The preload with which other settings are tried.
  private static let usual = "ahead:1,3s"
  private static let shortBuffer = 10.0
  private static let (lowest, short) = ("lowest rung first", "buffer of 10 s")
  /// The seeds of a lab that names none.
  package static let seeds: [UInt64] = Array(1...10)

  /// The policies to walk for advice: preloads, then other settings with one of them.
  package static func policies(for model: PlayerModel) throws(ReelError) -> [ModelledPreload] {
    var policies = try preloads.map { text throws(ReelError) in try ModelledPreload(parsing: text, of: model)
    }
    var variant = model
    variant.start.rung = .lowest
    if variant != model {
      policies.append(try ModelledPreload(parsing: usual, of: variant, variant: lowest))
    }
    variant = model
    variant.buffer.forwardS = min(variant.buffer.forwardS, shortBuffer)
    if variant != model {
      policies.append(try ModelledPreload(parsing: usual, of: variant, variant: short))
    }
    return policies
  }

  // MARK: - The choice

  /// - Parameter policies: Those of the lab.
  /// - Returns: Nil without waits, and if no frame came to most swipes.
  package init?(
    _ summary: LabSummary, _ scene: LabScene, of model: PlayerModel, _ policies: [ModelledPreload]
  ) {
    let answer = LabAnswer(summary, scene)
    guard let verdict = answer.verdict, answer.abandonedShare(of: verdict.advised, verdict) < 0.5 else {
      return nil
    }
    let pools = summary.overall?.rows.map(\.pool) ?? []
    let models = pools.compactMap { pool -> (pool: LabPool, model: PlayerModel, variant: String?)? in
      guard let policy = policies.first(where: { $0.description == pool.policy }),
        let model = try? policy.model(players: pool.slotCount)
      else { return nil }
      return (pool, model, policy.variant)
    }
    guard let advised = models.first(where: { $0.pool == verdict.advised }) else { return nil }
    let items = Array(advised.model.preloadedItems)
    let seconds = items.first?.forwardS ?? 0
    func reasons(_ isOther: (PlayerModel) -> Bool) -> [String] {
      models.filter { $0.variant == nil && $0.pool != advised.pool && isOther($0.model) }
        .map { answer.addition(of: $0.pool, to: advised.pool, verdict) }
    }
    func isEquallyLong(_ model: PlayerModel) -> Bool {
      items.isEmpty || model.preloadedItems.first.map { $0.forwardS == seconds } ?? true
    }
    func trial(_ variant: String) -> Trial? {
      guard let other = models.first(where: { $0.variant == variant }),
        let base = models.first(where: { $0.variant == nil && $0.pool.policy == Self.usual }),
        let gain = verdict.difference(LabVerdict.delay, of: other.pool, minus: base.pool)
      else { return nil }
      let rates = [other.pool, base.pool].map { verdict.mean(WalkFigures["rung.mean"], of: $0) }
      let rate =
        rates[0] == rates[1]
        ? ""
        : ", at \(WalkValue.text(bitsPerSecond: rates[0])) on average "
          + "instead of \(WalkValue.text(bitsPerSecond: rates[1]))"
      return Trial(
        gain: gain,
        words: "with \(Self.usual): " + answer.addition(of: other.pool, to: base.pool, verdict) + rate,
        stalls: verdict.difference(WalkFigures["rebuffering"], of: other.pool, minus: base.pool))
    }
    var values = Values(
      items: items, startsLowest: model.start.rung == .lowest, buffer: model.buffer.forwardS)
    var settings = [
      Setting(
        name: "players", value: "\(items.count + 1)",
        reasons: reasons { $0.preloadedItems.count != items.count && isEquallyLong($0) }),
      Setting(
        name: "preload", value: items.isEmpty ? "0 s" : "\(seconds.formatted(places: 1)) s",
        reasons: reasons { $0.preloadedItems.count == items.count }),
    ]
    if let trial = trial(Self.lowest) {
      let isBetter = answer.isTold(trial.gain) && trial.gain.mean < -LabVerdict.unnoticed
      if isBetter { values.startsLowest = true }
      settings.append(
        Setting(
          name: "first rung", value: isBetter ? "lowest" : model.start.rung.rawValue, reasons: [trial.words]))
    } else {
      settings.append(Setting(name: "first rung", value: model.start.rung.rawValue, reasons: []))
    }
    var bufferReasons: [String] = []
    if let trial = trial(Self.short) {
      let stalls = trial.stalls.map { ($0.interval?.lower ?? $0.mean) > 0 } ?? false
      let isSlower = (trial.gain.interval?.lower ?? trial.gain.mean) > LabVerdict.unnoticed
      if !stalls, !isSlower { values.buffer = min(values.buffer, Self.shortBuffer) }
      bufferReasons = [trial.words + (stalls ? ", and stalls more" : ", and stalls no more")]
    }
    settings.append(
      Setting(
        name: "buffer", value: "\(values.buffer.formatted(places: 1)) s", reasons: bufferReasons))
    values.keepsBuffer = values.buffer == model.buffer.forwardS
    if let plan = scene.visits, let reason = answer.visits(of: advised.pool) {
      let isWorth = plan.isWorth(summary.visits.first { $0.pool == advised.pool }?.walks ?? [])
      values.disk = isWorth ? model.preload.disk : nil
      settings.append(
        Setting(
          name: "cache", value: isWorth ? ByteSize(byteCount: Int(plan.byteLimit)).description : "none",
          reasons: [reason]))
    }
    (player, version, self.settings) = (model.title, model.version, settings)
    code = Self.code(for: model, values, settings)
  }

  /// A setting other than the model's, against the model's.
  private struct Trial {
    let gain: LabDifference.Figure
    let words: String
    let stalls: LabDifference.Figure?
  }

  // MARK: - In the player's terms

  private struct Values {
    var items: [PlayerModel.Preload.Neighbour]
    var startsLowest: Bool
    var buffer: Double
    /// True if the buffer is the model's.
    var keepsBuffer = true
    /// What is put on disk of further items; nil for nothing.
    var disk: PlayerModel.Preload.Disk?

    var players: Int { items.count + 1 }
    var isPreloading: Bool { !items.isEmpty }
    /// The media that is loaded of a preloaded item, and of the current one.
    var seconds: String { (items.first?.forwardS ?? 0).formatted(places: 1) }
    var bufferSeconds: String { buffer.formatted(places: 1) }

    static func milliseconds(_ seconds: Double) -> String { "\(Int((seconds * 1000).rounded()))" }
  }

  /// The code with the reasons of each setting as comments, where a line of the template names the setting: `@players`.
  private static func code(for model: PlayerModel, _ values: Values, _ settings: [Setting]) -> String {
    let name = PlayerModel.shippedNames.first { model.name.lowercased().hasPrefix($0) }
    let (mark, template) =
      switch name {
      case "hls.js": ("//", hlsJS(values))
      case "video.js": ("//", videoJS(values))
      case "chromium": ("//", chromium(values))
      case "media3": ("//", media3(values, model))
      case "avplayer": ("//", avPlayer(values))
      case "mpv": ("#", mpv(values))
      case "playbin3": ("#", playbin3(values))
      default: ("#", own(values))
      }
    var lines = ["\(mark) \(model.title), \(model.version)"]
    for line in template.split(separator: "\n", omittingEmptySubsequences: false) {
      let indentation = line.prefix { $0 == " " }
      let word = line.dropFirst(indentation.count)
      if let setting = settings.first(where: { "@\($0.name)" == word }) {
        lines += setting.reasons.map { "\(indentation)\(mark) \($0)" }
      } else {
        lines.append(String(line))
      }
    }
    // It is the program's, and no setting of most players.
    for setting in settings where setting.name == "cache" {
      lines += setting.reasons.map { "\(mark) \($0)" }
    }
    return lines.joined(separator: "\n")
  }

  private static func hlsJS(_ values: Values) -> String {
    let preloading = """

      @preload
      const preloading = { ...playing, maxBufferLength: \(values.seconds), maxMaxBufferLength: \(values.seconds) };
      // new Hls(preloading) once the current item shows a frame; at the swipe: Object.assign(hls.config, playing)
      """
    return """
      @players
      const instances = \(values.players); // of Hls, each with its <video>
      const playing = {
        @buffer
        maxBufferLength: \(values.bufferSeconds),
        maxMaxBufferLength: \(values.bufferSeconds), // without it, hls.js loads up to maxBufferSize: 60 MB
        @first rung
        \(values.startsLowest ? "startLevel: 0," : "// startLevel: left out, so hls.js chooses it")
      };\(values.isPreloading ? preloading : "")
      """
  }

  private static func videoJS(_ values: Values) -> String {
    """
    @players
    const players = \(values.players);
    @buffer
    videojs.Hls.GOAL_BUFFER_LENGTH = \(values.bufferSeconds);
    videojs.Hls.MAX_GOAL_BUFFER_LENGTH = \(values.bufferSeconds);
    @preload
    // How far a preloaded player loads has no counterpart: all players of a page have GOAL_BUFFER_LENGTH.
    const options = {
      preload: "auto",
      @first rung
      html5: { hls: { overrideNative: true, enableLowInitialPlaylist: \(values.startsLowest) } },
    };
    """
  }

  private static func chromium(_ values: Values) -> String {
    """
    @players
    const videos = \(values.players); // <video> elements
    @preload
    const preload = "\(values.isPreloading ? "auto" : "none")"; // of those that are not on show
    // How far a <video> loads has no counterpart: Chromium decides it.
    @first rung
    @buffer
    // The first rung and the buffer have no counterpart either.
    """
  }

  private static func media3(_ values: Values, _ model: PlayerModel) -> String {
    let targets = values.items.map { item in
      let range = Values.milliseconds(item.forwardS)
      return "\n      \(item.offset) -> DefaultPreloadManager.PreloadStatus.specifiedRangeLoaded(\(range)L)"
    }.joined()
    let others =
      values.disk.map { "specifiedRangeCached(\(Values.milliseconds($0.forwardS))L)" }
      ?? "PRELOAD_STATUS_NOT_PRELOADED"
    let buffer = Values.milliseconds(values.buffer)
    let (start, resume) = (
      Values.milliseconds(model.start.playMs / 1000), Values.milliseconds(model.start.resumeMs / 1000)
    )
    let meter =
      values.startsLowest
      ? "val meter = DefaultBandwidthMeter.Builder(context).setInitialBitrateEstimate(100_000).build()"
      : "// The initial estimate of DefaultBandwidthMeter stays as it is."
    return """
      class FeedPreload : TargetPreloadStatusControl<Int, DefaultPreloadManager.PreloadStatus> {
        var currentIndex = 0

        @players
        @preload
        override fun getTargetPreloadStatus(rankingData: Int): DefaultPreloadManager.PreloadStatus =
          when (rankingData - currentIndex) {\(targets)
            else -> DefaultPreloadManager.PreloadStatus.\(others)
          }
      }

      val feedPreload = FeedPreload()
      @buffer
      val loadControl = DefaultLoadControl.Builder()
        .setBufferDurationsMs(\(buffer), \(buffer), \(start), \(resume)) // min, max, to start, after a stall
        .build()
      @first rung
      \(meter)
      val builder = DefaultPreloadManager.Builder(context, feedPreload)
        .setLoadControl(loadControl)\(values.disk == nil ? "" : "\n  .setCache(cache)")\(values.startsLowest ? "\n  .setBandwidthMeter(meter)" : "")
      val preloadManager = builder.build()
      val player = builder.buildExoPlayer() // one is enough: the manager preloads sources, not players
      // At a swipe: feedPreload.currentIndex = index
      //   preloadManager.setCurrentPlayingIndex(index); preloadManager.invalidate()
      """
  }

  private static func avPlayer(_ values: Values) -> String {
    let preloaded = """

      @preload
      preloadedItem.preferredForwardBufferDuration = \(values.seconds) // until the swipe
      """
    return """
      @players
      let playerCount = \(values.players)
      @buffer
      currentItem.preferredForwardBufferDuration = \(values.keepsBuffer ? "0 // AVPlayer decides" : values.bufferSeconds)\
      \(values.isPreloading ? preloaded : "")
      @first rung
      item.preferredPeakBitRate = \
      \(values.startsLowest ? "1 // the lowest rung until the first frame; then 0, no limit" : "0 // no limit")
      """
  }

  private static func mpv(_ values: Values) -> String {
    let preloaded = """

      @preload
      # Of a preloaded instance, until the swipe: cache-secs=\(values.seconds)
      """
    return """
      @players
      # \(values.players.counted("instance")) of mpv in the program; those that are not on show have pause=yes
      @buffer
      cache-secs=\(values.bufferSeconds)\(values.isPreloading ? preloaded : "")
      @first rung
      hls-bitrate=\(values.startsLowest ? "min" : "max")
      # prefetch-playlist opens the next item only when the current one is loaded to its end: not modelled
      """
  }

  private static func playbin3(_ values: Values) -> String {
    let property = "demuxer.set_property(\"max-buffering-time\","
    let preloaded = """

      @preload
      # of a preloaded one, until the swipe:
      \(property) \(Values.milliseconds(values.items.first?.forwardS ?? 0)) * Gst.MSECOND)
      """
    return """
      @players
      players = \(values.players)  # of playbin3; those that are not on show are in Gst.State.PAUSED
      @buffer
      playbin.set_property("buffer-duration", \(Values.milliseconds(values.buffer)) * Gst.MSECOND)  # files
      # HLS and DASH: of hlsdemux2 and dashdemux2, which the signal deep-element-added brings
      \(property) \(Values.milliseconds(values.buffer)) * Gst.MSECOND)\(values.isPreloading ? preloaded : "")
      @first rung
      demuxer.set_property("start-bitrate", \(values.startsLowest ? "1)  # the lowest rung" : "0)  # automatic")
      """
  }

  private static func own(_ values: Values) -> String {
    """
    # Reel does not know what this player calls its settings.
    @players
    players: \(values.players)
    @preload
    preload: \(values.seconds) s
    @first rung
    first rung: \(values.startsLowest ? "lowest" : "as in the model")
    @buffer
    buffer: \(values.bufferSeconds) s
    """
  }
}
