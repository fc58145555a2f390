public import ReelPool

extension PoolConfiguration {
  /// Has a pool live in this simulation: its players by the simulation's clock, decoding on modelled cores
  /// (`decodingPermits`). The ledger counts what is the same in every run.
  public mutating func enter(_ simulation: SimulatedRuntime, decodeCost: DecodeCost = DecodeCost()) {
    simulation.apply(to: &player)
    self.decodeCost = decodeCost
    countsHeap = false
  }
}
