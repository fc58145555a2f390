package import ReelPool

extension PriorityGate {
  /// Modelled cores: each packet that goes into a decoder holds one of them for `cost` of the simulation's time.
  ///
  /// - Parameter cores: at least 1.
  package convenience init(cores: Int, cost: DecodeCost, in simulation: SimulatedRuntime) {
    self.init(permits: cores, cost: cost, clock: simulation, runtime: simulation)
  }
}
