import ReelPool
import ReelSimulation
import Testing

@Suite("Devices")
struct DeviceModelTests {
  @Test("The limits of a device are those of a pool")
  func limits() throws {
    var configuration = PoolConfiguration()
    configuration.apply(limitsOf: try DeviceModel(argument: "Low"))
    #expect(configuration.maximumOpenDecoders == 2)
    #expect(configuration.decodingPermits == 1)
    #expect(configuration.memoryLimit == 96_000_000)
    #expect(configuration.maximumTransfers == 4)
  }
}
