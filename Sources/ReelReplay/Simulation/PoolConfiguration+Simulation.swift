public import ReelPool

extension PoolConfiguration {
  /// Puts a pool made with this configuration into a simulation.
  ///
  /// Its players use the simulation's clock, and decode on `decodingPermits` modelled cores. ``PlayerPool/memory`` then
  /// counts only what is the same in every run: it leaves out the figures of the allocator.
  ///
  /// - Parameters:
  ///   - simulation: The simulation, in which the pool must be used.
  ///   - decodeCost: The simulated time that a decoded frame costs.
  public mutating func enter(_ simulation: SimulatedRuntime, decodeCost: DecodeCost = DecodeCost()) {
    simulation.apply(to: &player)
    self.decodeCost = decodeCost
    countsHeap = false
  }
}
