package import ReelCore
package import ReelModels
package import ReelPlayback
internal import ReelReading
internal import ReelSimulation

/// How viewers load and play: as Reel's player does, or by the rules of another player's model.
package struct ViewerSettings: Sendable {
  /// Loading, thresholds, retries, the clock and the runtime. `adaptsBitRate` is true unless it is changed.
  package var player: PlayerConfiguration
  /// The media to load ahead: 3 s, or that of the model.
  package var buffer: Duration
  /// Its start condition, buffer and choice of rungs replace Reel's own. Requests are sent in Reel's order, and the time that
  /// the model's player takes for itself is left out.
  package let model: PlayerModel?
  /// How requests have CMCD; nil for none.
  package var cmcd: CMCD.Transmission?

  /// - Throws: `ReelError` of kind `usage` that names what the model does and viewers do not.
  package init(
    _ player: PlayerConfiguration = PlayerConfiguration(), model: PlayerModel? = nil
  ) throws(ReelError) {
    if let model, model.start.opens == .all {
      throw ReelError(
        .usage, "\(model.name) opens all rungs before its first frame (start.opens): viewers open one",
        advice: "use another model")
    }
    self.player = player
    self.player.adaptsBitRate = true
    self.model = model
    buffer = model.map { .seconds($0.buffer.forwardS) } ?? .seconds(3)
  }

  // MARK: - Internal

  var rules: LinkPlayback.Rules {
    guard var rules = model?.rules else {
      return LinkPlayback.Rules(player.thresholds, target: buffer)
    }
    rules.target = buffer / .seconds(1)
    rules.costs = LinkPlayback.Costs()
    return rules
  }

  /// The configuration of a player that decodes. Its rungs are chosen by Reel's own rules.
  var decodingPlayer: PlayerConfiguration {
    var configuration = player
    guard let model else { return configuration }
    configuration.thresholds.start = .seconds(model.start.playMs / 1000)
    configuration.thresholds.resume = .seconds(model.start.resumeMs / 1000)
    configuration.thresholds.refillShare = model.buffer.refill
    return configuration
  }

  /// - Parameter first: The id of the rung that the manifest lists first.
  func controller(
    firstListed first: String?, conditions: @escaping @Sendable () -> RungConditions
  ) -> RungController {
    if let model {
      return RungController(adaptation: ModelledRungs(model, firstListed: first), conditions: conditions)
    }
    let choice = RungController.Choice.adaptive(estimate: player.initialBandwidth.map { Int($0) })
    return RungController(player.adaptsBitRate ? choice : .fixed, conditions: conditions)
  }
}

/// The choice of rungs by the model of a player.
private struct ModelledRungs: RungAdaptation {
  private let start: PlayerModel.FirstRung
  /// Nil for a player that stays with its first rung.
  private let adaptation: LinkPlayback.Adaptation?
  private let firstListed: String?
  private var measuredRate: Double?

  init(_ model: PlayerModel, firstListed: String?) {
    start = model.start.rung
    adaptation = model.rules.adaptation
    self.firstListed = firstListed
  }

  var estimatedBandwidth: Double? { measuredRate ?? adaptation?.initialEstimate }

  mutating func choose(among candidates: [RungCandidate], _ state: AdaptationState) -> RungCandidate {
    if let current = state.current {
      guard adaptation != nil else { return candidates.first { $0.index == current } ?? candidates[0] }
      return affordable(among: candidates)
    }
    return switch start {
    case .first: candidates.first { $0.id == firstListed } ?? candidates[0]
    case .lowest: candidates[0]
    case .highest: candidates[candidates.count - 1]
    case .estimate: affordable(among: candidates)
    }
  }

  mutating func recordTransfer(_ sample: TransferSample) {
    guard let adaptation, sample.duration > .zero else { return }
    let seconds = sample.duration / .seconds(1)
    measuredRate = adaptation.mean(of: measuredRate, Double(sample.byteCount) * 8 / seconds, in: seconds)
  }

  private func affordable(among candidates: [RungCandidate]) -> RungCandidate {
    let rates = candidates.map { Double($0.demand) }
    return candidates[adaptation?.rung(of: rates, measuredRate: measuredRate) ?? 0]
  }
}
