package import Foundation
package import ReelCore
internal import Synchronization

/// The location to try first, of several with the same media. There is one value per track.
package final class ServiceLocation: Sendable {
  /// True to try the next location at once after a failure; false to leave that decision to the caller.
  package let roams: Bool
  private let value = Atomic(0)

  package init(roams: Bool = true) { self.roams = roams }

  package var index: Int {
    get { value.load(ordering: .relaxed) }
    set { value.store(newValue, ordering: .relaxed) }
  }

  /// Returns the result of `body` for the first of some locations that has one, beginning with the one of `index`, which
  /// becomes that one.
  ///
  /// - Parameters:
  ///   - urls: The locations, at least one.
  ///   - leadsOn: Returns true if the next location is tried after an error; nil if it is after each `ReelError`.
  ///
  /// Throws the first error, or with `leadsOn` the last one.
  package func first<Result: Sendable>(
    of urls: [URL], where leadsOn: ((ReelError) -> Bool)? = nil, _ body: (URL) async throws -> Result
  ) async throws -> Result {
    let start = index < urls.count ? index : 0
    var step = 0
    var firstError: ReelError?
    while true {
      let place = (start + step) % urls.count
      do {
        let result = try await body(urls[place])
        if step > 0 { index = place }
        return result
      } catch let error as ReelError {
        step += 1
        if leadsOn == nil { firstError = firstError ?? error }
        guard step < urls.count, leadsOn?(error) ?? true else { throw firstError ?? error }
      }
    }
  }
}
