public import ReelPool

extension PriorityGate {
  /// Modelled cores: each packet that goes into a decoder holds one of them for `cost` of the world's time.
  ///
  /// - Parameter cores: at least 1.
  public convenience init(cores: Int, cost: DecodeCost, in world: VirtualWorld) {
    self.init(permits: cores, cost: cost, clock: world, execution: world)
  }
}
