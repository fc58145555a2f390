/// Waits for a condition. Throws after a time that no machine should need, before the test itself is ended.
///
/// - Parameter state: What to tell of a wait in vain.
package func until(_ state: () -> String = { "" }, _ condition: () throws -> Bool) async throws {
  let end = ContinuousClock.now + HangLimit.duration / 2
  while try !condition() {
    guard ContinuousClock.now < end else { throw WaitedInVain(state: state()) }
    try await Task.sleep(for: .milliseconds(1))
  }
}

package struct WaitedInVain: Error, CustomStringConvertible {
  package let state: String

  package var description: String { "waited in vain: \(state)" }
}
