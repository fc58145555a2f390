internal import ReelPlayback
public import ReelPool

extension PoolConfiguration {
  /// Puts a pool made with this configuration into a simulation.
  ///
  /// Its players use the simulation's clock, and decode on `decodingPermits` modelled cores. Of each start, of an item or
  /// after a seek, they decode two frames. All other frames come when they would come, but have the pixels of the last
  /// decoded one, and damage is not noticed in them.
  ///
  /// ``PlayerPool/memory`` is computed from the sizes of packets and frames, which are the same in every run: it leaves out
  /// the figures of the allocator, and a decoder holds the frame that it decodes, and those that it holds back for their
  /// order or its references, whichever are more.
  ///
  /// - Parameters:
  ///   - simulation: The simulation, in which the pool must be used.
  ///   - decodeCost: The simulated time that decoding costs.
  public mutating func enter(_ simulation: SimulatedRuntime, decodeCost: DecodeCost = DecodeCost()) {
    enter(simulation, decoders: ModelledDecoders(cost: decodeCost, in: simulation))
  }

  package mutating func enter(_ simulation: SimulatedRuntime, decoders: ModelledDecoders) {
    simulation.apply(to: &player)
    player.decoders = decoders
    keepsAccounts = false
  }

  /// Puts a pool made with this configuration into a simulation of a device: with its limits, its cores, and its costs
  /// of decoding.
  ///
  /// - Parameters:
  ///   - simulation: The simulation, in which the pool must be used.
  ///   - device: The device.
  public mutating func enter(_ simulation: SimulatedRuntime, device: DeviceModel) {
    apply(limitsOf: device)
    enter(simulation, decodeCost: device.decodeCost)
  }
}
