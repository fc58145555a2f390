import ReelCore
import ReelPlayback
import ReelPool
import ReelReplay

/// The JSON record of `reel memory` for a player.
struct MemoryPlayerRecord: Encodable, Sendable {
  /// A player that was closed because its source failed.
  struct Failure: Sendable {
    let number: Int
    let argument: String
    let stage: PreloadStage
    let error: ReelError
  }

  let type = "player"
  /// From 1.
  let player: Int
  let source: String
  var rung: String?
  var stage: String?
  /// When each stage was reached, from the start of loading.
  var stageMs: [String: Double]?
  var memory: MemoryKindsRecord?
  var error: ErrorRecord?

  init(_ player: MemoryPlayer, account: MemoryLedger.Account, plays: Bool) {
    self.player = player.number + 1
    source = player.argument
    rung = player.rung
    stage = plays ? "playing" : player.stage.reportName
    stageMs = player.stageTimes.reduce(into: [:]) { $0[$1.key.reportName] = $1.value.milliseconds }
    memory = MemoryKindsRecord(account)
  }

  init(_ failure: Failure) {
    player = failure.number + 1
    source = failure.argument
    stage = failure.stage.reportName
    error = ErrorRecord(failure.error)
  }
}

/// Bytes by kind.
struct MemoryKindsRecord: Encodable, Sendable {
  var manifestBytes: Int
  var inFlightBytes: Int
  var packetsBytes: Int
  var framesBytes: Int
  var decoderBytes: Int
  /// Nil if the allocator can't tell players apart.
  var internalsBytes: Int?
  var allocatorBytes: Int?
  var outputBytes: Int
  var sumBytes: Int

  init(_ account: MemoryLedger.Account) {
    manifestBytes = account[.manifest]
    inFlightBytes = account[.inFlight]
    packetsBytes = account[.packets]
    framesBytes = account[.frames]
    decoderBytes = account[.decoder]
    internalsBytes = account.knowsInternals ? account[.internals] : nil
    allocatorBytes = account.knowsInternals ? account[.allocator] : nil
    outputBytes = account[.output]
    sumBytes = account.byteCount
  }
}
