import ReelLab
import ReelSimulation

/// Random numbers that are the same in every run and on every machine.
public struct SplitMix: RandomNumberGenerator, Sendable {
  private var generator: SplitMix64

  public init(seed: some BinaryInteger) { generator = SplitMix64(seed: UInt64(truncatingIfNeeded: seed)) }

  public mutating func next() -> UInt64 { generator.next() }

  /// From 0 to below `bound`.
  public mutating func next(below bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
