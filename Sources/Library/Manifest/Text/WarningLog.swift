package import ReelCore

/// The warnings of one manifest, no more than a limit of them.
package struct WarningLog: Sendable {
  let limit: Int
  package private(set) var warnings: [ReelError] = []

  init(limit: Int) { self.limit = limit }

  package mutating func add(_ reason: String, place: ReelError.Place? = nil) {
    add(ReelError(.badManifest, reason, place: place))
  }

  package mutating func add(_ warning: ReelError) {
    if warnings.count < limit { warnings.append(warning) }
  }
}
