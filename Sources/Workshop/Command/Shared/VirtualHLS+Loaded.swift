import Foundation
import ReelCore
import ReelGateway
import ReelManifest
import ReelSources

extension VirtualHLS {
  /// Makes HLS from a loaded manifest, of which it decrypts the media whose keys there are.
  ///
  /// Throws the reason why a rung has no segments if no other rung is left, and `unsupported`.
  init(_ loaded: LoadedManifest, decryption: (any MediaDecrypting)? = nil) throws(ReelError) {
    do throws(ReelError) {
      try self.init(loaded.presentation, decryption: decryption)
    } catch {
      throw loaded.failures.first?.error ?? error.located(at: loaded.url.absoluteString)
    }
    failures = loaded.failures.map(\.error)
  }

  /// Reports omitted parts on standard error.
  func report(quietly: Bool) {
    Console.report(failures)
    if !quietly { for warning in warnings { Console.warn("\(warning)") } }
  }
}
