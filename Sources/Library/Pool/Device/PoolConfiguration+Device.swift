extension PoolConfiguration {
  /// Takes over the limits of a device: open decoders, cores, memory and transfers. Costs apply only in a simulation.
  public mutating func apply(limitsOf device: DeviceModel) {
    maximumOpenDecoders = device.decoderLimit
    decodingPermits = device.coreCount
    memoryLimit = device.memoryLimit
    maximumTransfers = device.transferLimit
  }
}
