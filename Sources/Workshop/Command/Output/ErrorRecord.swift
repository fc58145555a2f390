import ReelCore

/// An error as JSON.
struct ErrorRecord: Encodable {
  let kind: String
  let message: String
  let location: String?
  let exitCode: Int32
  /// The HTTP status, in results files only.
  let status: Int?

  init(_ error: ReelError) { self.init(error, hasStatus: false) }

  init(_ error: ReelError, hasStatus: Bool) {
    kind = error.kind.rawValue
    message = error.description
    location = error.location?.withoutUserInformation
    exitCode = ExitStatus.code(of: error)
    status = hasStatus ? error.status : nil
  }
}
