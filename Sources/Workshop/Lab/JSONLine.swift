internal import Foundation
package import ReelCore

/// One object of JSON Lines: keys in snake_case and in alphabetical order, so that equal values make equal bytes.
///
/// URLs have no user names and passwords, and control characters are escaped.
package enum JSONLine {
  /// - Parameter kind: The kind of value, for the error.
  package static func string(_ value: some Encodable, of kind: String = "result") throws(ReelError) -> String
  {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return String(decoding: try encoder.encode(value), as: UTF8.self).withoutUserInformation.printableJSON
    } catch {
      throw ReelError(.internalFault, "a \(kind) can't be written as JSON: \(error)")
    }
  }
}
