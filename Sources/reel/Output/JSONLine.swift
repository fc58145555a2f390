import Foundation
import ReelCore

/// One object of JSON Lines: keys in snake_case, in alphabetical order.
enum JSONLine {
  static func string(_ value: some Encodable) throws(ReelError) -> String {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return String(decoding: try encoder.encode(value), as: UTF8.self)
    } catch {
      throw ReelError(.internalFault, "a result can't be written as JSON: \(error)")
    }
  }
}

/// An error as JSON.
struct ErrorRecord: Encodable {
  let kind: String
  let message: String
  let location: String?
  let exitCode: Int32

  init(_ error: ReelError) {
    kind = error.kind.rawValue
    message = error.description
    location = error.location
    exitCode = ExitStatus.code(of: error)
  }
}
