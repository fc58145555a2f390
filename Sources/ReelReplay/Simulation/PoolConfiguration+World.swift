public import ReelPool

extension PoolConfiguration {
  /// Has a pool live in this world: its players by the world's clock, decoding on modelled cores
  /// (`decodingPermits`). The ledger counts what is the same in every run.
  public mutating func enter(_ world: VirtualWorld, decodeCost: DecodeCost = DecodeCost()) {
    world.apply(to: &player)
    self.decodeCost = decodeCost
    countsHeap = false
  }
}
