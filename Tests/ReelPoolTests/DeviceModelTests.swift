import Foundation
import ReelCore
import ReelFFmpeg
import ReelPool
import ReelTestSupport
import Testing

@Suite("Devices")
struct DeviceModelTests {
  private static let text = """
    {
      "name": "a device",
      "decoders": 3,
      "cores": 2,
      "memory_bytes": 64000000,
      "transfers": 4,
      "decoder_open_ms": 12.5,
      "decode": {
        "h264": { "frame_ms": 0.25, "pixel_ns": 3.5 },
        "others": { "frame_ms": 1, "pixel_ns": 10 }
      }
    }
    """

  @Test("JSON and back again", arguments: DeviceModel.builtIn)
  func builtIn(device: DeviceModel) throws {
    #expect(try DeviceModel(json: Array(device.json.utf8)) == device)
  }

  @Test("What the fields mean, and that limits may be left out")
  func fields() throws {
    let device = try DeviceModel(json: Array(Self.text.utf8))
    #expect(device.name == "a device")
    #expect(device.decoderLimit == 3)
    #expect(device.memoryLimit == 64_000_000)
    #expect(device.transferLimit == 4)
    let cost = device.decodeCost
    #expect(cost.opening == .microseconds(12_500))
    #expect(cost.duration(of: .packet(.h264, pixelCount: 1_000_000)) == .microseconds(3_750))
    #expect(cost.duration(of: .packet(.av1, pixelCount: 1_000_000)) == .milliseconds(11))
    #expect(cost.duration(of: .packet(nil, pixelCount: 0)) == .milliseconds(1))
    #expect(cost.duration(of: .opening(.av1)) == .microseconds(12_500))
    #expect(cost.duration(of: .receiving) == .zero)
    let open = Self.text.replacingOccurrences(of: "\"decoders\": 3,", with: "")
      .replacingOccurrences(of: "64000000", with: "null")
    #expect(try DeviceModel(json: Array(open.utf8)).decoderLimit == nil)
    #expect(try DeviceModel(json: Array(open.utf8)).memoryLimit == nil)
    var named = device
    named.name = "\"a\\b\"\n\u{1}é"
    #expect(try DeviceModel(json: Array(named.json.utf8)) == named)
    var configuration = PoolConfiguration()
    configuration.apply(limitsOf: device)
    #expect(configuration.maximumOpenDecoders == 3)
    #expect(configuration.decodingPermits == 2)
    #expect(configuration.memoryLimit == 64_000_000)
    #expect(configuration.maximumTransfers == 4)
  }

  @Test(
    "What is wrong is named with its line and its field",
    arguments: [
      ("\"decoders\": 3", "\"decoders\": 0", "line 3: decoders: a device without a decoder"),
      ("\"decoders\": 3", "\"decoders\": -1", "line 3: decoders: must be a whole number from 1"),
      ("\"decoders\": 3", "\"decoders\": 1.5", "line 3: decoders: "),
      ("\"cores\": 2", "\"cores\": \"2\"", "line 4: cores: must be a whole number, not a string"),
      ("\"cores\": 2", "\"cores\": 1e9", "line 4: cores: must be a whole number from 1 to 256, not 1e9"),
      ("\"cores\": 2,", "", "line 1: cores: the field is missing"),
      ("64000000", "-5", "line 5: memory_bytes: "), ("64000000", "1e99", "line 5: memory_bytes: "),
      ("\"transfers\": 4", "\"transfers\": 0", "line 6: transfers: "),
      ("12.5", "-0.1", "line 7: decoder_open_ms: must be a number from 0 to 10000, not -0.1"),
      ("12.5", "10001", "line 7: decoder_open_ms: "), ("12.5", "true", "line 7: decoder_open_ms: "),
      ("\"pixel_ns\": 3.5", "\"pixel_ns\": -3.5", "line 9: decode.h264.pixel_ns: must be a number"),
      (
        "\"pixel_ns\": 3.5", "\"pixels\": 3.5",
        "line 9: decode.h264.pixels: unknown field; the fields are frame_ms"
      ),
      ("\"frame_ms\": 0.25, ", "", "line 9: decode.h264.frame_ms: the field is missing"),
      ("h264", "h265", "line 9: decode.h265: unknown field"),
      ("\"others\"", "\"vp8\"", "line 8: decode.others: the field is missing"),
      ("\"a device\"", "\" \"", "line 2: name: must be a string of 1 to 100 characters"),
      ("\"a device\"", "3", "line 2: name: must be a string, not a number"),
      ("\"name\"", "\"nome\"", "line 2: nome: unknown field"),
      ("\"decoder_open_ms\": 12.5", "\"cores\": 2", "the key \"cores\" appears twice"),
      ("{\n  \"name\"", "{\n  name", "line 2, column 3"), ("}\n}", "}\n", "line "),
    ])
  func faults(old: String, new: String, message: String) throws {
    let text = Self.text.replacingOccurrences(of: old, with: new)
    try #require(text != Self.text)
    let error = #expect(throws: ReelError.self) { try DeviceModel(json: Array(text.utf8)) }
    #expect(error?.kind == .badManifest)
    #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
  }

  @Test(
    "What is no object, and what is no JSON", arguments: ["[]", "3", "", "null", "\"low\"", "\u{feff}{}"])
  func noObject(text: String) {
    #expect(throws: ReelError.self) { try DeviceModel(json: Array(text.utf8)) }
  }

  @Test("A file is named in the error; a folder and a missing file are no devices")
  func files() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/device.json"
    try Self.text.replacingOccurrences(of: "\"cores\": 2", with: "\"cores\": 0").write(
      toFile: path, atomically: true, encoding: .utf8)
    let error = #expect(throws: ReelError.self) { try DeviceModel(path: path) }
    #expect(error?.description.hasPrefix("\(path): line 4: cores: ") == true)
    #expect(#expect(throws: ReelError.self) { try DeviceModel(path: folder.path) }?.kind == .noSuchFile)
    #expect(#expect(throws: ReelError.self) { try DeviceModel(path: path + "x") }?.kind == .noSuchFile)
  }
}
