public import ReelCore
internal import ReelFFmpeg

/// Devices as JSON.
///
/// ```json
/// {
///   "name": "mid",
///   "decoders": 6,
///   "cores": 2,
///   "memory_bytes": 192000000,
///   "transfers": 6,
///   "decoder_open_ms": 60,
///   "decode": {
///     "h264": { "frame_ms": 1, "pixel_ns": 12 },
///     "others": { "frame_ms": 1, "pixel_ns": 12 }
///   }
/// }
/// ```
///
/// `decoders`, `memory_bytes` and `transfers` are limits; without one, or with `null`, there is no such limit. `decode`
/// has an object for each codec, by ``ReelFFmpeg/VideoCodec``'s names, and `others` for the rest.
extension DeviceModel {
  /// The largest file of a device: 1 MiB.
  package static let fileByteLimit = 1 << 20

  /// Reads a device from JSON.
  ///
  /// - Parameter bytes: The JSON, in UTF-8.
  /// - Throws: `ReelError` of kind `badManifest` with the line, and with the path of the field (`decode.h264.pixel_ns`),
  ///   if the text is not JSON, a field is missing, unknown or out of its range, or the device has no decoder.
  public init(json bytes: [UInt8]) throws(ReelError) {
    let root = try JSONField(json: bytes, of: "a device")
    try root.allow(["name", "decoders", "cores", "memory_bytes", "transfers", "decoder_open_ms", "decode"])
    let decode = try root.required("decode")
    try decode.allow(VideoCodec.allCases.map(\.rawValue) + ["others"])
    var codecs: [VideoCodec: DecodeCost.Frame] = [:]
    for codec in VideoCodec.allCases {
      codecs[codec] = try decode.optional(codec.rawValue)?.frameCost()
    }
    let decoders = root.optional("decoders")
    if let decoders, try decoders.number(in: -1e9...1e9) == 0 {
      throw decoders.failure("a device without a decoder can't show anything")
    }
    self.init(
      name: try root.required("name").text(), decoderLimit: try decoders?.count(in: 1...10_000),
      coreCount: try root.required("cores").count(in: 1...256),
      memoryLimit: try root.optional("memory_bytes")?.count(in: 1...1_000_000_000_000_000),
      transferLimit: try root.optional("transfers")?.count(in: 1...10_000),
      decodeCost: DecodeCost(
        opening: try root.required("decoder_open_ms").milliseconds(), codecs: codecs,
        others: try decode.required("others").frameCost()))
  }

  /// Reads a device from a local file.
  ///
  /// - Throws: The errors of `init(json:)` with the file's path, and `noSuchFile` if the file can't be read.
  public init(path: String) throws(ReelError) {
    let bytes = try LocalText.bytes(path: path, limit: Self.fileByteLimit)
    do throws(ReelError) {
      try self.init(json: bytes)
    } catch {
      throw error.located(at: path)
    }
  }

  /// The device as JSON that `init(json:)` reads. Times are written to the nanosecond, costs per pixel to a thousandth
  /// of one.
  public var json: String {
    func frame(_ cost: DecodeCost.Frame) -> String {
      "{ \"frame_ms\": \(Self.milliseconds(cost.constant)), "
        + "\"pixel_ns\": \(cost.nanosecondsPerPixel.formatted(places: 3)) }"
    }
    func limit(_ value: Int?) -> String { value.map { "\($0)" } ?? "null" }
    let codecs = VideoCodec.allCases.compactMap { codec in
      decodeCost.codecs[codec].map { "    \"\(codec.rawValue)\": \(frame($0)),\n" }
    }
    return """
      {
        "name": \(Self.quoted(name)),
        "decoders": \(limit(decoderLimit)),
        "cores": \(coreCount),
        "memory_bytes": \(limit(memoryLimit)),
        "transfers": \(limit(transferLimit)),
        "decoder_open_ms": \(Self.milliseconds(decodeCost.opening)),
        "decode": {
      \(codecs.joined())    "others": \(frame(decodeCost.others))
        }
      }
      """
  }

  // MARK: - Private

  private static func milliseconds(_ duration: Duration) -> String {
    (duration / .nanoseconds(1) / 1e6).formatted(places: 6)
  }

  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)"
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}

extension JSONField {
  /// A time in milliseconds, up to 10 s.
  fileprivate func milliseconds() throws(ReelError) -> Duration {
    .nanoseconds(Int64((try number(in: 0...10_000) * 1e6).rounded()))
  }

  fileprivate func frameCost() throws(ReelError) -> DecodeCost.Frame {
    try allow(["frame_ms", "pixel_ns"])
    return DecodeCost.Frame(
      constant: try required("frame_ms").milliseconds(),
      nanosecondsPerPixel: try required("pixel_ns").number(in: 0...100_000))
  }
}
