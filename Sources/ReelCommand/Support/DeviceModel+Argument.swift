import Foundation
import ReelCore
import ReelFFmpeg
import ReelPool

extension DeviceModel {
  /// The built-in device of this name, or the device in the file at this path.
  ///
  /// - Throws: `ReelError` of kind `usage` for a name that is neither, and the errors of `init(path:)`.
  init(argument: String) throws(ReelError) {
    if let known = Self.builtIn.first(where: { $0.name == argument.lowercased() }) {
      self = known
      return
    }
    let isPath = argument.contains("/") || argument.contains(".")
    guard isPath || !argument.isEmpty && FileManager.default.fileExists(atPath: argument) else {
      let names = Self.builtIn.map(\.name).joined(separator: ", ")
      throw ReelError(
        .usage, "--device: \"\(argument)\" is no device",
        advice: "write \(names), or the path of a file that reel calibrate has written")
    }
    try self.init(path: argument)
  }

  /// The figures in one line.
  var summary: String {
    var limits: [String] = []
    if let decoderLimit { limits.append("\(decoderLimit) decoders") }
    limits.append(coreCount == 1 ? "1 core" : "\(coreCount) cores")
    if let memoryLimit { limits.append("\(ByteSize(byteCount: memoryLimit))") }
    if let transferLimit { limits.append("\(transferLimit) transfers") }
    var cost = "opening \(DurationText.readable(decodeCost.opening)), a frame \(Self.text(decodeCost.others))"
    if let av1 = decodeCost.codecs[.av1], av1 != decodeCost.others { cost += " (AV1 \(Self.text(av1)))" }
    return "\(limits.joined(separator: ", ")); \(cost)"
  }

  private static func text(_ cost: DecodeCost.Frame) -> String {
    "\(DurationText.readable(cost.constant)) + \(cost.nanosecondsPerPixel.formatted(places: 3)) ns a pixel"
  }
}
