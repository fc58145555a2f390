import Foundation
import ReelCore
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("Mixes of links")
struct LinkMixTests {
  @Test(
    "A share ends a link, and other commas belong to it",
    arguments: [
      ("lte", ["lte": 1.0]), ("10Mbit/50ms,ideal", ["10Mbit/50ms,ideal": 1]),
      ("wifi:60%,lte:30%,3g:10%", ["wifi": 0.6, "lte": 0.3, "3g": 0.1]),
      ("lte,ideal:62.5%,10Mbit/50ms:37.5%", ["lte,ideal": 0.625, "10Mbit/50ms": 0.375]),
    ] as [(String, [String: Double])])
  func parsing(text: String, expected: [String: Double]) throws {
    let mix = try LinkMix(parsing: text)
    #expect(Dictionary(uniqueKeysWithValues: mix.parts.map { ($0.link.text, $0.share) }) == expected)
  }

  @Test(
    "What is no mix",
    arguments: [
      "", "wifi:60%,lte:30%", "wifi:60%,lte:60%", "wifi:60%,lte", "wifi:60%,lte%", "wifi:60,lte:40%",
      "fast:100%", ":100%", "wifi:-10%,lte:110%", "wifi,lte:100%",
    ])
  func malformed(text: String) {
    let error = #expect(throws: ReelError.self) { try LinkMix(parsing: text) }
    #expect(error?.kind == .usage)
  }

  @Test("Viewers get links by their order, as many as the shares are")
  func shares() throws {
    let mix = try LinkMix(parsing: "wifi:60%,lte:30%,3g:10%")
    let order = [3, 1, 4, 9, 0, 5, 2, 6, 8, 7]
    let links = try mix.links(of: order, seed: 7)
    let rates = links.map(\.bitsPerSecond)
    let expected = Dictionary(
      uniqueKeysWithValues: order.enumerated().map { index, viewer in
        (viewer, index < 6 ? 30_000_000 : index < 9 ? 12_000_000 : 1_600_000)
      })
    #expect(rates.count == 10)
    for viewer in 0..<10 { #expect(rates[viewer] == expected[viewer].map(Int64.init)) }
    // Jitter differs from viewer to viewer.
    #expect(Set(links.map(\.seed)).count == 10)
    #expect(try mix.links(of: order, seed: 7) == links)
  }

  @Test("Shares are rounded to whole viewers, and all get a link", arguments: 0...7)
  func rounding(count: Int) throws {
    let mix = try LinkMix(parsing: "wifi:33.4%,lte:33.3%,3g:33.3%")
    let rates = try mix.links(of: Array(0..<count), seed: 1).map(\.bitsPerSecond)
    #expect(rates.count == count)
    #expect(rates == rates.sorted(by: >))
    let numbers = [30_000_000, 12_000_000, 1_600_000].map { rate in rates.count { $0 == Int64(rate) } }
    #expect(numbers.allSatisfy { abs(Double($0) - Double(count) / 3) <= 1 })
  }

  @Test("The viewers of a folder get its recordings in turn")
  func folder() throws {
    let folder = try TemporaryFolder()
    for (name, rate) in [("a", 1), ("b", 2)] {
      let url = URL(filePath: folder.path + "/" + name)
      try "0 \(rate)\n10 \(rate)\n".write(to: url, atomically: true, encoding: .utf8)
    }
    let mix = try LinkMix(parsing: "\(folder.path):75%,3g:25%")
    let rates = try mix.links(of: Array(0..<4), seed: 1).map(\.bitsPerSecond)
    #expect(rates == [1_000_000, 2_000_000, 1_000_000, 1_600_000])
  }
}
