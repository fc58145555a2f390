import ReelCore

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
