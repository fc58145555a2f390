package import ReelFFmpeg
internal import ReelPlayback
public import ReelPool

extension PoolConfiguration {
  /// Puts a pool made with this configuration into a simulation.
  ///
  /// Its players use the simulation's clock, and decode on `decodingPermits` modelled cores. ``PlayerPool/memory`` is then
  /// computed from the sizes of packets and frames, which are the same in every run: it leaves out the figures of the
  /// allocator, and a decoder holds the frame that it decodes, and those that it holds back for their order or its
  /// references, whichever are more.
  ///
  /// - Parameters:
  ///   - simulation: The simulation, in which the pool must be used.
  ///   - decodeCost: The simulated time that decoding costs.
  public mutating func enter(_ simulation: SimulatedRuntime, decodeCost: DecodeCost = DecodeCost()) {
    simulation.apply(to: &player)
    self.decodeCost = decodeCost
    modelsMemory = true
  }

  /// Has the players of a simulation decode the first frames of each item only, and after each seek.
  ///
  /// What decoding costs is charged as if all frames were decoded, so the course of events is the same. All other frames
  /// have the pixels of the last decoded one. Damage is not noticed in them. H.264, HEVC, AV1, VP8, MJPEG and ProRes are
  /// treated so; frames of other codecs are all decoded.
  ///
  /// - Parameter cache: Where first frames are kept, for this and other simulations.
  package mutating func decodeFirstFramesOnly(_ cache: FirstFrameCache) { player.firstFrames = cache }

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
