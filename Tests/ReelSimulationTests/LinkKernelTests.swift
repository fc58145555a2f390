import Foundation
import ReelCore
import ReelSimulation
import ReelTestSupport
import Testing

/// The times that `Benchmarks/link/run` measured over a real kernel's TCP, and those of the model.
@Suite("A modelled link beside a real one")
struct LinkKernelTests {
  private struct Times: Decodable {
    /// By link, connection and bytes, as `10Mbit/50ms new 80000`. Milliseconds.
    let kernel: [String: Double]
    let model: [String: Double]

    private enum CodingKeys: String, CodingKey {
      case kernel = "kernel_ms"
      case model = "model_ms"
    }
  }

  private static func read() throws -> Times {
    let url = Fixtures.folder.deletingLastPathComponent().appending(path: "Benchmarks/link/times.json")
    return try JSONDecoder().decode(Times.self, from: Data(contentsOf: url))
  }

  /// Takes an answer over the link; gives when it has come.
  private func answer(
    _ model: inout LinkModel, _ departure: LinkModel.Departure, _ byteCount: Int
  ) -> Duration {
    let transfer = model.begin(readyAt: departure.time + departure.roundTrip, on: departure.connection)
    model.put(byteCount, of: transfer, at: departure.time)
    _ = model.complete(transfer)
    var end = departure.time
    while let time = model.nextTime {
      while let delivery = model.nextDelivery(by: time) {
        model.read(delivery.byteCount, of: transfer, at: delivery.time)
        end = delivery.time
      }
    }
    model.remove(transfer)
    model.free(departure.connection, at: end)
    return end
  }

  private func modelled(_ name: String) throws -> Double {
    let words = name.split(separator: " ")
    try #require(words.count == 3)
    let count = try #require(Int(words[2]))
    var model = LinkModel(try LinkSpec(parsing: "\(words[0]),tcp"))
    var departure = model.depart(to: "a", handshakes: 1, at: .zero)
    var begin = Duration.zero
    if words[1] != "new" {
      begin = answer(&model, departure, 700_000)
      departure = model.depart(to: "a", handshakes: 1, at: begin)
      if words[1] == "idle" {
        begin = answer(&model, departure, count) + .seconds(2)
        departure = model.depart(to: "a", handshakes: 1, at: begin)
      }
    }
    return (answer(&model, departure, count) - begin) / .milliseconds(1)
  }

  @Test("New and used connections take within 10 % of the kernel's time")
  func comparison() throws {
    let times = try Self.read()
    #expect(times.kernel.count >= 16)
    for (name, real) in times.kernel.sorted(by: { $0.key < $1.key }) {
      let time = try modelled(name)
      let written = times.model[name] ?? 0
      #expect(abs(written - time) < 0.06, "\"\(name)\": \((time * 10).rounded() / 10),")
      if !name.contains("idle") { #expect(abs(time / real - 1) < 0.1, "\(name): \(time) to \(real)") }
    }
  }
}
