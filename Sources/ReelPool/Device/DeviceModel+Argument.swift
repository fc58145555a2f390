internal import Foundation
package import ReelCore

extension DeviceModel {
  /// The built-in device of this name, or the device in the file at this path.
  ///
  /// - Parameter resolve: Makes the path of a file, for instance one relative to another folder.
  /// - Throws: `ReelError` of kind `usage` for a name that is neither, and the errors of `init(path:)`.
  package init(
    argument: String, resolve: (String) -> String = { $0 }
  ) throws(ReelError) {
    if let known = Self.builtIn.first(where: { $0.name == argument.lowercased() }) {
      self = known
      return
    }
    let path = resolve(argument)
    let isPath = argument.contains("/") || argument.contains(".")
    guard isPath || !argument.isEmpty && FileManager.default.fileExists(atPath: path) else {
      let names = Self.builtIn.map(\.name).joined(separator: ", ")
      throw ReelError(
        .usage, "\"\(argument)\" is not a device",
        advice: "write \(names), or the path of a file written by reel calibrate")
    }
    try self.init(path: path)
  }
}
