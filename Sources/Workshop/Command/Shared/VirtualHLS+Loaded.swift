import Foundation
import ReelCore
import ReelGateway
import ReelManifest
import ReelSources

extension VirtualHLS {
  /// Makes HLS from a loaded manifest, and reports omitted parts on standard error.
  ///
  /// Throws the reason why a rung has no segments if no other rung is left, and `unsupported`.
  init(reporting loaded: LoadedManifest, quietly: Bool) throws(ReelError) {
    do throws(ReelError) {
      try self.init(loaded.presentation)
    } catch {
      throw loaded.failures.first?.error ?? error.located(at: loaded.url.absoluteString)
    }
    Console.report(loaded.failures.map(\.error))
    if !quietly { for warning in warnings { Console.warn("\(warning)") } }
  }
}
